"""Tasks, as a Celery project writes them."""

from celery import shared_task
from celery.utils.log import get_task_logger

logger = get_task_logger(__name__)


@shared_task
def price(isbn: str) -> int:
    """The price of a book in cents, made up from its number."""
    return 500 + sum(int(c) for c in isbn if c.isdigit()) * 10


@shared_task(bind=True, autoretry_for=(ConnectionError,), retry_backoff=1, max_retries=3)
def order(self, isbn: str, copies: int) -> str:
    """Orders a book; the supplier is out of reach the first time."""
    if self.request.retries == 0:
        raise ConnectionError("the supplier does not answer")
    logger.info("ordered %s, %s copies", isbn, copies)
    return f"{copies} x {isbn}"


@shared_task(priority=5)
def restock(isbn: str) -> str:
    """Goes to the queue `stock` and orders ten copies from there."""
    order.delay(isbn, 10)
    return isbn
