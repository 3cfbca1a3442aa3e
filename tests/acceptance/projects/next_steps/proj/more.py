"""Tasks that know no app, with a base class and options."""

import os
import tempfile

from celery import Task, shared_task
from celery.exceptions import Ignore, SoftTimeLimitExceeded


class Noted(Task):
    """Writes down how each call ended."""

    def on_success(self, retval, task_id, args, kwargs):
        self._note(task_id, "success")

    def on_failure(self, exc, task_id, args, kwargs, einfo):
        self._note(task_id, f"failure {type(exc).__name__}")

    def on_retry(self, exc, task_id, args, kwargs, einfo):
        self._note(task_id, f"retry {type(exc).__name__}")

    def after_return(self, status, retval, task_id, args, kwargs, einfo):
        self._note(task_id, f"after {status}")

    def _note(self, task_id, text):
        path = os.path.join(os.environ.get("NOTES_DIR", tempfile.gettempdir()), f"{task_id}.notes")
        with open(path, "a", encoding="utf-8") as notes:
            notes.write(text + "\n")


@shared_task(bind=True, base=Noted, max_retries=2, default_retry_delay=0)
def unsteady(self, fails):
    """Fails the first `fails` times and then tells how often it was tried again."""
    if self.request.retries < fails:
        try:
            raise ConnectionError(f"try {self.request.retries}")
        except ConnectionError as exc:
            raise self.retry(exc=exc, countdown=0)  # noqa: B904
    return self.request.retries


@shared_task(autoretry_for=(KeyError,), retry_kwargs={"max_retries": 1, "countdown": 0})
def gives_up():
    raise KeyError("never there")


@shared_task(bind=True)
def who(self):
    request = self.request
    return {
        "id": request.id,
        "task": self.name,
        "retries": request.retries,
        "routing_key": request.delivery_info["routing_key"],
        "called_directly": request.called_directly,
        "args": list(request.args),
        "kwargs": request.kwargs,
        "hostname": bool(request.hostname),
    }


@shared_task(bind=True)
def progress(self, total):
    for done in range(total):
        self.update_state(state="PROGRESS", meta={"done": done, "total": total})
    self.update_state(state="HALTED", meta={"done": total})
    raise Ignore


@shared_task(soft_time_limit=1)
def endless():
    try:
        while True:
            pass
    except SoftTimeLimitExceeded:
        return "stopped"
