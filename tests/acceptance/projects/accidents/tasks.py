"""A script that is its own worker, and tasks that come to a bad end."""

import os
import signal
import time

from celery import Celery, signals

app = Celery("tasks", broker="redis://localhost:6379/3", backend="redis://localhost:6379/3")


def note(text):
    with open(os.path.join(os.environ["NOTES_DIR"], "notes.txt"), "a", encoding="utf-8") as notes:
        notes.write(text + "\n")


@signals.worker_ready.connect
def ready(sender, **kwargs):
    note(f"ready {sender.app.main}")


@signals.worker_process_init.connect
def child(**kwargs):
    note("child")


@signals.task_failure.connect
def failure(sender, task_id, exception, args, **kwargs):
    note(f"failure {sender.name} {type(exception).__name__} {list(args)}")


@signals.task_revoked.connect
def revoked(request, terminated, **kwargs):
    note(f"revoked {request.task} {terminated}")


@signals.worker_shutdown.connect
def shutdown(**kwargs):
    note("shutdown")


@app.task
def die(number):
    os.kill(os.getpid(), signal.SIGKILL)


@app.task(time_limit=1)
def slow():
    time.sleep(60)


@app.task(bind=True)
def sleepy(self):
    note(f"running {self.request.id}")
    time.sleep(60)


if __name__ == "__main__":
    app.worker_main(["worker", "-c", "2", "-l", "INFO"])
