"""Tasks of the app itself."""

from celery.utils.log import get_task_logger

from .celery import app

logger = get_task_logger(__name__)


@app.task
def add(x, y):
    logger.info("adding %s and %s", x, y)
    return x + y


@app.task
def mul(x, y):
    return x * y


@app.task
def xsum(numbers):
    return sum(numbers)


@app.task
def div(x, y):
    return x / y
