"""`taskmq demo`: bulk work over the standard library's sources, overtaken by urgent requests.

Real tasks in real worker processes on a SQLite file. Two rounds do the same work, with yielding and
without, and what is shown at the end is measured, nothing is staged.
"""
