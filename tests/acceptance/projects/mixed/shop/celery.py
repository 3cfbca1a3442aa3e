"""The app of a project with every kind of ending."""

from celery import Celery

app = Celery("shop", broker="redis://localhost:6379/2", include=["shop.orders", "shop.mail"])

app.conf.update(
    result_backend="redis://localhost:6379/2",
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    task_track_started=True,
    task_routes={"shop.mail.*": {"queue": "mail"}},
    # Celery keeps a setting it does not know: how soon TaskMQ takes back what a lost worker held.
    taskmq_lease=3.0,
)
