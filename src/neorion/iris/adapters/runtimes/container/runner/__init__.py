"""The runner: the first process of an attempt's container. It runs one attempt and reports it to its worker."""
