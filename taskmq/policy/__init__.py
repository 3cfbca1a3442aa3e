"""Policy: which message next, whom to yield, whether a limit lets a task run. Pure functions of values.

The same for every transport: adapters fetch what a function needs and carry out what it says.
"""
