"""What beat wakes in this room."""

from celery import shared_task

from console.accounts.revalidation import revalidate


@shared_task(name="accounts.revalidate_sessions")
def revalidate_sessions() -> None:
    revalidate()
