"""Tasks of the app."""

from .celery import app
from .ledger import note


@app.task
def ship(number):
    note("ship", number)
    return number * 2


@app.task
def refuse(number):
    note("refuse", number)
    raise ValueError(f"order {number}")


@app.task(ignore_result=True)
def forget(number):
    note("forget", number)
    return number
