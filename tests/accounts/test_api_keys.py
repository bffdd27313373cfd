"""API keys: shown once, never more than their owner may do now."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from console.accounts.models import ApiKey, AuditRow, Grant, Project, Role, User
from console.accounts.services import actor_for_authorization, actor_for_key, create_key, key_role
from console.http import NotSignedIn

NOW = datetime(2026, 11, 1, 9, tzinfo=UTC)


@pytest.fixture
def project(db) -> Project:
    return Project.objects.create(name="Aurora", slug="aurora")


@pytest.fixture
def owner(project) -> User:
    user = User.objects.create(username="olu")
    Grant.objects.create(user=user, project=project, role=Role.OPERATOR, source="person", origin="ada", granted_at=NOW)
    return user


@pytest.fixture
def key(project, owner) -> tuple[ApiKey, str]:
    return create_key(None, project, owner, "ci", Role.ADMIN, NOW)


@pytest.mark.parametrize("mine", list(Role))
@pytest.mark.parametrize("owners", [None, *Role])
def test_a_key_has_the_lower_of_its_own_role_and_its_owners(mine, owners):
    assert key_role(mine, owners) == (None if owners is None else min(mine, owners))


@pytest.mark.parametrize(
    ("role", "operates", "may"),
    [
        (Role.OPERATOR, True, True),
        (Role.ADMIN, True, True),
        (Role.VIEWER, True, False),  # a key that may only look takes nothing back, whoever owns it
        (Role.ADMIN, False, False),
    ],
)
def test_a_key_operates_the_fleet_only_where_its_owner_does_and_it_may_act(project, owner, role, operates, may):
    Grant.objects.create(user=owner, project=None, role=None, fleet_operator=operates, source="group", granted_at=NOW)
    _, secret = create_key(None, project, owner, "ci", role, NOW)
    assert actor_for_key(secret, None, NOW).fleet_operator is may


def test_a_key_stops_operating_the_fleet_the_moment_its_owner_does(project, owner, key):
    User.objects.update(fleet_operator=True)
    assert actor_for_key(key[1], None, NOW).fleet_operator
    Grant.objects.update(role=Role.VIEWER)
    assert not actor_for_key(key[1], None, NOW).fleet_operator, "the key counts as a viewer's now"
    Grant.objects.update(role=Role.OPERATOR)
    User.objects.update(fleet_operator=False)
    assert not actor_for_key(key[1], None, NOW).fleet_operator


def test_the_secret_is_stored_nowhere(key):
    row, secret = key
    stored = ApiKey.objects.filter(pk=row.pk).values().get()
    assert secret not in repr(stored)
    assert secret not in repr(list(AuditRow.objects.values()))


def test_a_key_acts_in_its_project_only_and_by_its_own_name(key, owner, project):
    other = Project.objects.create(name="Borealis", slug="borealis")
    Grant.objects.create(user=owner, project=None, role=Role.OPERATOR, source="person", origin="ada", granted_at=NOW)
    actor = actor_for_authorization(f"Bearer {key[1]}", "10.0.0.1")
    assert (actor.name, actor.address, actor.everywhere) == ("ci", "10.0.0.1", None)
    assert actor.role_in(project.id) == Role.OPERATOR
    assert actor.role_in(other.id) is None


def test_a_key_follows_its_owners_role_down_at_once(key, owner, project):
    """riparias/gbif-alert PR#427: tokens outlived the rights of their people."""
    Grant.objects.update(role=Role.VIEWER)
    assert actor_for_key(key[1], None, NOW).role_in(project.id) == Role.VIEWER
    Grant.objects.all().delete()
    with pytest.raises(NotSignedIn, match="no role in its project"):
        actor_for_key(key[1], None, NOW)


def test_a_key_of_a_closed_account_and_a_revoked_key_are_refused(key, owner):
    User.objects.update(is_active=False)
    with pytest.raises(NotSignedIn):
        actor_for_key(key[1], None, NOW)
    User.objects.update(is_active=True)
    ApiKey.objects.update(revoked_at=NOW)
    with pytest.raises(NotSignedIn):
        actor_for_key(key[1], None, NOW)


def test_last_used_is_written_once_a_minute(key):
    row, secret = key
    for seconds, kept in ((0, 0), (30, 0), (59, 0), (60, 60), (61, 60)):
        actor_for_key(secret, None, NOW + timedelta(seconds=seconds))
        row.refresh_from_db()
        assert row.last_used_at == NOW + timedelta(seconds=kept)


def test_making_a_key_is_in_the_trail_once_and_the_demos_key_is_made_once(project, owner):
    for _ in range(2):
        create_key(None, project, owner, "demo", Role.OPERATOR, timezone.now(), "ht_demo_operator_key")
    assert ApiKey.objects.count() == 1
    assert AuditRow.objects.filter(action="key.create").count() == 1
