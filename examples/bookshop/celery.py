"""The app, as a Celery project makes it."""

from celery import Celery

app = Celery("bookshop", include=["bookshop.tasks"])
app.conf.update(
    broker_url="sqlite:///bookshop.db",
    task_acks_late=True,
    task_routes={"bookshop.tasks.restock": {"queue": "stock"}},
    result_expires=3600,
)
