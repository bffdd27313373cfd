"""What writes people's rights, each with its audit row; every open socket is re-checked after it."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from allauth.socialaccount.models import SocialAccount
from django.db import transaction
from django.utils import timezone

from console import live
from console.accounts.access import Actor
from console.accounts.models import AuditRow, Grant, GroupRule, Project, Role, User
from console.accounts.oidc.config import Provider
from console.accounts.roles import GroupGrant, Outcome, Rule, decide


def audit(
    actor: Actor | None,
    action: str,
    subject: str,
    project: Project | None = None,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> AuditRow:
    """Write who changed what, inside the caller's transaction. Without an actor it was Halftide itself."""
    who = actor or Actor()
    return AuditRow.objects.create(
        at=timezone.now(),
        actor=who.name if who.signed_in else "Halftide",
        user=who.user,
        key=who.key,
        address=who.address,
        action=action,
        subject=subject[:200],
        project=project,
        before=dict(before or {}),
        after=dict(after or {}),
    )


def rules_for(provider: Provider) -> list[Rule]:
    """The rules of a provider: those written in the settings, with projects by slug, and those in the database.

    A written rule for a project that does not exist (yet) gives nothing.
    """
    slugs = {rule.project for rule in provider.rules if rule.project}
    projects = dict(Project.objects.filter(slug__in=slugs).values_list("slug", "id")) if slugs else {}
    written = [
        Rule(rule.group, Role(rule.role) if rule.role else None, projects.get(rule.project or ""), rule.fleet_operator)
        for rule in provider.rules
        if rule.project is None or rule.project in projects
    ]
    stored = [
        Rule(row.group, Role(row.role) if row.role else None, row.project_id, row.fleet_operator)
        for row in GroupRule.objects.filter(provider_id=provider.id)
    ]
    return written + stored


def apply_claims(
    account: SocialAccount, claims: Mapping[str, Any], claim: str, rules: list[Rule], now: datetime, address: str | None = None
) -> Outcome:
    """Give a person what their groups give, take what they gave before; grants of people and other providers stay.

    An older token than the last one applied changes nothing: it would bring back what was taken since.
    """
    outcome = decide(claims, claim, rules)
    issued = float(claims["iat"])
    with transaction.atomic():
        user = User.objects.select_for_update().get(pk=account.user_id)
        account.refresh_from_db()
        if issued <= account.extra_data.get("applied_iat", 0):
            return outcome
        account.extra_data = {**account.extra_data, "applied_iat": issued, "said": outcome.said}
        account.save(update_fields=["extra_data"])
        if outcome.grants is not None:
            _replace_group_grants(user, account.provider, outcome.grants, now, address)
    return outcome


def _replace_group_grants(
    user: User, provider_id: str, wanted: frozenset[GroupGrant], now: datetime, address: str | None
) -> None:
    rows = {
        GroupGrant(row.origin, Role(row.role) if row.role else None, row.project_id, row.fleet_operator): row
        for row in Grant.objects.filter(user=user, source=Grant.Source.GROUP, provider_id=provider_id)
    }
    lost, new = set(rows) - wanted, wanted - set(rows)
    if not lost and not new:
        return
    Grant.objects.filter(pk__in=[rows[grant].pk for grant in lost]).delete()
    Grant.objects.bulk_create(
        Grant(
            user=user,
            project_id=grant.project,
            role=grant.role,
            fleet_operator=grant.fleet_operator,
            source=Grant.Source.GROUP,
            provider_id=provider_id,
            origin=grant.group,
            granted_at=now,
        )
        for grant in sorted(new, key=str)
    )
    audit(
        Actor(user=user, address=address),
        "grants.from_groups",
        user.get_username(),
        before={"grants": shown(rows)},
        after={"grants": shown(wanted)},
    )
    live.access_changed_on_commit()


def shown(grants: Iterable[GroupGrant]) -> list[str]:
    """Grants as the trail says them: `operator everywhere from halftide-operators`."""
    return sorted(
        f"{grant.role.label if grant.role else 'fleet operator'} {grant.project or 'everywhere'} from {grant.group}"
        for grant in grants
    )


def grant(actor: Actor | None, user: User, project: Project | None, role: Role, now: datetime) -> Grant:
    """A role given by a person (or by a command, without an actor): it stays whatever the provider's groups say."""
    with transaction.atomic():
        row, made = Grant.objects.get_or_create(
            user=user,
            project=project,
            role=role,
            source=Grant.Source.PERSON,
            provider_id="",
            origin=actor.name if actor else "command line",
            defaults={"granted_at": now},
        )
        if made:
            audit(actor, "grant.give", user.get_username(), project, after={"role": role.label})
            live.access_changed_on_commit()
    return row
