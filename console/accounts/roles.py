"""Claims → roles, as one pure function.

Three answers of a provider look alike and must not be taken for each other (DESIGN 8): a list of groups gives exactly what
its groups give; an empty list revokes all of it; no list at all, or one we cannot read, changes nothing and is said
(argoproj/argo-cd PR#27397: above 200 groups Entra ID sends a pointer instead, and administrators lost their role).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from console.accounts.models import Role

# Where the sentence is kept, beside the claims, for the person and the trail. Never the provider's own word.
WHY = "halftide_groups_not_given"


@dataclass(frozen=True)
class Rule:
    """A group gives a role in one project (None: in every one), or makes a fleet operator. Exact match, letter for letter."""

    group: str
    role: Role | None = None
    project: UUID | None = None
    fleet_operator: bool = False


@dataclass(frozen=True)
class GroupGrant:
    group: str
    role: Role | None
    project: UUID | None
    fleet_operator: bool


@dataclass(frozen=True)
class Outcome:
    """What the claims say. `grants` is None where nothing may change; `said` is the sentence for the person and the trail."""

    groups: tuple[str, ...] | None
    grants: frozenset[GroupGrant] | None
    said: str


def decide(claims: Mapping[str, Any], claim: str, rules: Iterable[Rule]) -> Outcome:
    """What a person's groups give them: `claim` is the claim's name, compared as it stands."""
    if claim not in claims:
        if points(claims, claim):
            why = f", and {claims[WHY]}" if WHY in claims else ""
            return _unchanged(f"You are in so many groups that the provider sent only a pointer in place of `{claim}`{why}")
        return _unchanged(f"The provider sent no claim named `{claim}`")
    value = claims[claim]
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list | tuple) or not all(isinstance(group, str) for group in listed):
        return _unchanged(f"The provider's claim `{claim}` is not a list of names")
    groups = tuple(dict.fromkeys(listed))
    matched = [rule for rule in rules if rule.group in groups]
    grants = frozenset(GroupGrant(rule.group, rule.role, rule.project, rule.fleet_operator) for rule in matched)
    if not groups:
        return Outcome(groups, grants, "The provider says you are in no group.")
    names = ", ".join(groups[:20])
    if not grants:
        return Outcome(groups, grants, f"None of your groups gives a role here: {names}.")
    return Outcome(groups, grants, f"Your groups: {names}.")


def points(claims: Mapping[str, Any], claim: str) -> bool:
    """Whether the claim is left out and pointed to (OpenID Connect Core 5.6.2, "distributed claims")."""
    names = claims.get("_claim_names")
    return claim not in claims and isinstance(names, Mapping) and claim in names


def without_reason(claims: Mapping[str, Any]) -> dict[str, Any]:
    """A provider's claims as they come, without a reason that only we may give."""
    return {name: value for name, value in claims.items() if name != WHY}


def _unchanged(why: str) -> Outcome:
    return Outcome(None, None, f"{why}, so your roles stay as they were.")
