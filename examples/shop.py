"""A small shop: queues, priorities, retries, and work that starts other work.

taskmq -A shop worker -c 2      runs the tasks
python shop.py                  submits some
"""

from __future__ import annotations

import time

from taskmq import App, Config, Context, Priority, QueueConfig, RetryPolicy

app = App(
    Config(
        broker_url="sqlite:///shop.db",
        queues={
            # Inside one priority email gets three messages for each one of reports.
            "email": QueueConfig(weight=3),
            # What names no priority of its own is bulk work here.
            "reports": QueueConfig(priority=Priority.LOW),
        },
    )
)


class MailServerBusy(Exception):
    """The mail server asks to come back later."""


class CardDeclined(Exception):
    """The bank said no; trying again by itself would not help."""


@app.task(
    bind=True,
    queue="email",
    retry=RetryPolicy(max_retries=5, delay=0.5, on=(MailServerBusy,)),
)
def send_email(ctx: Context, to: str, subject: str) -> str:
    """Fails the first time it is tried, and is retried after about half a second."""
    if ctx.retries == 0:
        raise MailServerBusy(f"try {to} again later")
    return f"sent {subject!r} to {to}"


@app.task(bind=True, queue="reports")
def report(ctx: Context, month: str) -> dict[str, object]:
    """A slow one that can be watched (`taskmq result ID`) and revoked (`taskmq revoke ID`)."""
    for day in range(1, 11):
        # A running task is never interrupted; this is how it offers to stop.
        ctx.check_cancelled()
        ctx.progress(day * 10, label="percent")
        time.sleep(0.05)
    # Inherits this task's priority, so a report asked for urgently is also mailed urgently.
    mail = ctx.publish(send_email, ("boss@example.com", f"report for {month}"))
    return {"month": month, "mailed_by": mail.id}


@app.task(priority=Priority.HIGH)
def charge(card: str, cents: int) -> str:
    """Ends in the dead letters for a card that is declined; `taskmq dlq replay` tries it again."""
    if card == "declined":
        raise CardDeclined(f"{cents / 100:.2f} from card {card!r}")
    return f"charged {cents / 100:.2f}"


def main() -> None:
    """Submit bulk reports first and urgent work after them; the urgent work is done first."""
    months = ["January", "February", "March", "April", "May", "June"]
    reports = [report.delay(month) for month in months]
    urgent = report.delay("this one at once", priority=Priority.CRITICAL)
    charge.delay("4242", 1999)
    charge.delay("declined", 500)
    send_email.apply_async(("reader@example.com", "in a minute"), countdown=60)
    print(f"submitted {len(reports)} reports and an urgent one, {urgent.id}")
    print(f"follow it with: taskmq -A shop why {urgent.id}")


if __name__ == "__main__":
    main()
