"""Controllers of navarch: the fleet controller, one applier for each effect, agents' reports and operators' actions.

Each checks its records again before it acts, and makes a change durable before its effect. `decide` plans the changes, and
clouds and schedulers are behind ports.
"""
