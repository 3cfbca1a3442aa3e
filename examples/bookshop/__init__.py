"""A project written for Celery."""
