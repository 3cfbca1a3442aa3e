"""Tasks that know no app."""

from celery import shared_task

from .ledger import note


@shared_task(bind=True, max_retries=5)
def unsteady(self, number):
    """Fails `number % 3` times before it succeeds."""
    note("unsteady", number)
    if self.request.retries < number % 3:
        raise self.retry(exc=ConnectionError(f"mail {number}"), countdown=0.1)
    return [number, self.request.retries]


@shared_task(autoretry_for=(TimeoutError,), retry_kwargs={"max_retries": 1, "countdown": 0.1})
def unreachable(number):
    note("unreachable", number)
    raise TimeoutError(f"mail {number}")


@shared_task(bind=True)
def remind(self, number):
    note("remind", number)
    return [number, self.request.delivery_info["priority"]]
