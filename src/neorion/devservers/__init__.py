"""Development servers on Kubernetes: a researcher's own machine with a home that stays, started and stopped as it is needed.

The operator turns `DevServer` objects into pods and volumes; `devctl` is what people type.
"""
