"""What navarch does: the tick, one applier for each effect, the ears for agents and the hands for operators.

Everything here re-checks before it acts and makes a change durable before the world hears of it. What should be done is
decided in `decide`; how a cloud or a scheduler is spoken to stands behind ports.
"""
