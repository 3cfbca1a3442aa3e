"""Settings with a schedule, as most projects have them."""

from datetime import timedelta

from celery.schedules import crontab, schedule

broker_url = "redis://localhost:6379/3"
result_backend = "redis://localhost:6379/3"
timezone = "Europe/Paris"
worker_pool = "threads"

beat_schedule = {
    "digest": {
        "task": "news.tasks.send",
        "schedule": crontab(hour=7, minute=30, day_of_week="mon-fri"),
        "args": ("digest",),
    },
    "often": {"task": "news.tasks.send", "schedule": timedelta(days=1), "args": ("often",)},
    "rarely": {"task": "news.tasks.send", "schedule": schedule(86400.0), "args": ("rarely",)},
}
