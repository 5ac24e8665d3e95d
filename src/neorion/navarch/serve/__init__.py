"""The services of navarch and who may call them.

Checks what comes in, asks the appliers, and puts their answers into messages. Nothing is decided here.
"""
