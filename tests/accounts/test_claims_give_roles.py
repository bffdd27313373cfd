"""Claims → roles: what must hold for every claim, every rule."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.accounts.models import Role
from console.accounts.roles import GroupGrant, Rule, decide

AURORA = UUID("00000000-0000-4000-8000-0000000000a1")
names = st.sampled_from(["ml", "ML", "ml ", "sre", "admins", "x,y", "é", ""])
rules = st.lists(
    st.builds(
        Rule,
        group=names,
        role=st.none() | st.sampled_from(list(Role)),
        project=st.none() | st.just(AURORA),
        fleet_operator=st.booleans(),
    ),
    max_size=8,
)
groups = st.lists(names, max_size=6)


@given(groups, rules)
def test_every_grant_comes_from_a_group_one_is_in_and_every_rule_of_such_a_group_gives(mine, known):
    outcome = decide({"groups": mine}, "groups", known)
    expected = {GroupGrant(r.group, r.role, r.project, r.fleet_operator) for r in known if r.group in mine}
    assert outcome.grants == expected


@given(groups, names, rules)
def test_one_more_group_never_takes_a_role(mine, more, known):
    before = decide({"groups": mine}, "groups", known).grants
    after = decide({"groups": [*mine, more]}, "groups", known).grants
    assert before <= after


@given(groups, rules)
def test_neither_order_nor_repetition_matters(mine, known):
    one, other = ({"groups": listed} for listed in (mine, [*reversed(mine), *mine]))
    assert decide(one, "groups", known).grants == decide(other, "groups", known).grants


@given(rules)
def test_an_empty_list_revokes_everything(known):
    outcome = decide({"groups": []}, "groups", known)
    assert outcome.grants == frozenset()
    assert outcome.said == "The provider says you are in no group."


@given(rules, st.dictionaries(st.sampled_from(["Groups", "roles", "group", "groups.0"]), groups))
def test_a_missing_claim_changes_nothing_and_is_said(known, others):
    """metabase/metabase#29718 is the opposite fault: what the provider did not mention was taken away."""
    outcome = decide(others, "groups", known)
    assert outcome.grants is None
    assert "no claim named `groups`" in outcome.said
    assert "stay as they were" in outcome.said


@pytest.mark.parametrize("value", [None, 7, True, {"ml": 1}, [1], ["ml", None], ["ml", ["sre"]]])
def test_a_claim_that_is_no_list_of_names_changes_nothing_and_is_said(value):
    outcome = decide({"groups": value}, "groups", [Rule("ml", Role.ADMIN)])
    assert outcome.grants is None
    assert "not a list of names" in outcome.said


def test_a_pointer_in_place_of_the_groups_changes_nothing_and_is_said():
    """argoproj/argo-cd PR#27397: above 200 groups Entra ID sends a pointer, read as "in no group"."""
    claims = {"_claim_names": {"groups": "src1"}, "_claim_sources": {"src1": {"endpoint": "https://graph.example"}}}
    outcome = decide(claims, "groups", [Rule("ml", Role.ADMIN)])
    assert outcome.grants is None
    assert "only a pointer" in outcome.said


def test_one_name_as_text_is_that_group_and_not_its_letters():
    assert decide({"groups": "ml"}, "groups", [Rule("ml", Role.VIEWER)]).grants
    assert not decide({"groups": "mlops"}, "groups", [Rule("ml", Role.VIEWER), Rule("m", Role.ADMIN)]).grants


@pytest.mark.parametrize("group", ["ML", "ml ", " ml", "mlx", "m", "/ml"])
def test_groups_match_letter_for_letter(group):
    assert not decide({"groups": [group]}, "groups", [Rule("ml", Role.ADMIN)]).grants


def test_a_claim_may_have_any_name():
    rule = [Rule("ml", Role.VIEWER)]
    assert decide({"https://corp.example/groups": ["ml"]}, "https://corp.example/groups", rule).grants
