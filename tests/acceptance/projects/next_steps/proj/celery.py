"""The app of a small project: it lists the modules that hold its tasks."""

from celery import Celery

app = Celery(
    "proj",
    broker="redis://localhost:6379/1",
    backend="redis://localhost:6379/1",
    include=["proj.tasks", "proj.more"],
)

app.conf.update(
    result_expires=3600,
    task_track_started=True,
    task_routes={"proj.more.*": {"queue": "more"}},
    task_queues=None,
)

if __name__ == "__main__":
    app.start()
