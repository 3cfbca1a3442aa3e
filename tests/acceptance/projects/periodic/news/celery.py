from celery import Celery
from celery.schedules import crontab

app = Celery("news", include=["news.tasks"])
app.config_from_object("news.celeryconfig")


@app.on_after_configure.connect
def set_up(sender, **kwargs):
    sender.add_periodic_task(
        crontab(minute=0, hour=0), sender.signature("news.tasks.send", ("night",)), name="night"
    )
