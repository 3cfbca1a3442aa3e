import os

from celery.utils.log import get_task_logger

from .celery import app

log = get_task_logger(__name__)


def note(*values):
    with open(os.path.join(os.environ["NOTES_DIR"], "notes.txt"), "a", encoding="utf-8") as notes:
        notes.write(" ".join(map(str, values)) + "\n")


@app.task
def send(what):
    log.info("sending %s", what)
    return f"sent {what}"


@app.task
def refuse(what, code=0):
    raise LookupError(what, code)


@app.task
def explain(request, exc, traceback):
    note(
        "explain",
        request.id,
        request.task,
        request.args,
        request.kwargs,
        repr(exc),
        "LookupError" in traceback,
    )


@app.task
def explain_to(request, exc, traceback, reader, urgent=False):
    note("explain_to", request.id, type(exc).__name__, reader, urgent)


@app.task(bind=True)
def tell(self, task_id):
    note("tell", task_id, self.request.id != task_id)
