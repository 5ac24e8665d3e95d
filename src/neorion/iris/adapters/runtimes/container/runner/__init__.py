"""The runner: the first process of an attempt's container. It runs one attempt and reports it to its worker.

It knows neither engines nor the controller, and it imports nothing that a task image need not have.
"""
