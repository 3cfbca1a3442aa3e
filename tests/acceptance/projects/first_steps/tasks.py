"""One module, one app, one task: how everybody starts with Celery."""

from celery import Celery

app = Celery("tasks", broker="redis://localhost:6379/0", backend="redis://localhost:6379/0")


@app.task
def add(x, y):
    return x + y
