"""The controller's doors: what clients, people and workers may ask of it, and who of them may.

Translates and checks. What follows from a request is `act`'s.
"""
