"""Re-checks of many people at once, as the hub of the live pages asks them."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

from django.contrib.sessions.backends.db import SessionStore
from django.utils import timezone

from console.accounts import queries, sessions
from console.accounts.models import Grant, Project, Role, User

NOW = datetime(2026, 11, 1, 9, tzinfo=UTC)


def give(user: User, project: Project | None, role: Role | None, **more: object) -> None:
    Grant.objects.create(user=user, project=project, role=role, source="person", granted_at=NOW, **more)


def test_one_query_says_who_may_still_see(db, django_assert_num_queries):
    aurora, borealis = (Project.objects.create(name=name, slug=name) for name in ("aurora", "borealis"))
    viewer, everywhere, fleet, closed, _ = (
        User.objects.create(username=name, is_active=name != "closed")
        for name in ("viewer", "everywhere", "fleet", "closed", "nobody")
    )
    give(viewer, aurora, Role.VIEWER)
    give(everywhere, None, Role.VIEWER)
    give(fleet, None, None, fleet_operator=True)
    give(closed, aurora, Role.ADMIN)
    asked = {(user.pk, project.id) for user in User.objects.all() for project in (aurora, borealis)}
    with django_assert_num_queries(1):
        seen = queries.who_may_see(asked)
    assert seen == {(viewer.pk, aurora.id), (everywhere.pk, aurora.id), (everywhere.pk, borealis.id)}


def test_nobody_asked_costs_no_query(db, django_assert_num_queries):
    with django_assert_num_queries(0):
        assert queries.who_may_see([]) == set()
        assert queries.open_sessions([], NOW) == set()


def test_a_pair_nobody_knows_sees_nothing(db):
    assert queries.who_may_see([(123, uuid4())]) == set()


def test_sessions_that_are_over_or_ended_are_not_open(db, django_assert_num_queries):
    stores = []
    for hours in (1, 1, -1):
        store = SessionStore()
        store.set_expiry(timezone.now() + timedelta(hours=hours))
        store.save()
        stores.append(store.session_key)
    sessions.end(stores[1], "signed out")
    with django_assert_num_queries(1):
        assert queries.open_sessions([*stores, "unknown"], timezone.now()) == {stores[0]}
