"""An address says what of a timeline one wants to see: read whole, put back the same, or refused with a sentence."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.http import QueryDict
from hypothesis import given
from hypothesis import strategies as st

from console.http import BadInput
from console.timeline import filters
from console.timeline.filters import Filter, parse, query_of

NOON = datetime(2026, 11, 12, 12, tzinfo=UTC)

words = st.text("aZ0 ü\u202e%_=&#+~:;/\\'\"<>", max_size=20).map(str.strip)
instants = st.integers(0, 7 * 10**9).map(lambda second: datetime.fromtimestamp(second, UTC))
wishes = st.builds(
    Filter,
    text=words,
    severity=st.sampled_from(("", *filters.SEVERITIES)),
    reason=words,
    node=words,
    compute_class=st.sampled_from(("", *filters.CLASSES)),
    actor=st.one_of(st.sampled_from(("", *filters.ACTOR_WORDS)), words.filter(bool).map("person:{}".format)),
    last=st.sampled_from(("", *filters.LENGTHS)),
)


def between(wish: Filter, ends: tuple[datetime, datetime]) -> Filter:
    return replace(wish, last="", since=min(ends), until=max(ends))


exact = st.builds(between, wishes, st.tuples(instants, instants))


@given(st.one_of(wishes, exact))
def test_a_filter_put_into_an_address_is_read_back_the_same(wish: Filter) -> None:
    assert parse(QueryDict(query_of(wish))) == wish


@given(st.one_of(wishes, exact))
def test_each_chip_takes_away_one_part_and_no_other(wish: Filter) -> None:
    chips = filters.chips(wish)
    assert len(chips) == sum(bool(value) for value in vars(wish).values())
    for chip in chips:
        left = parse(QueryDict(chip.without))
        assert sum(getattr(left, name) != value for name, value in vars(wish).items()) == 1
        assert chip.words
    assert bool(wish) == bool(chips)


def refusal(query: QueryDict) -> BadInput | None:
    try:
        parse(query)
    except BadInput as error:
        return error
    return None


@given(st.dictionaries(st.sampled_from(tuple(filters.NAMES)), st.text(max_size=20), max_size=4))
def test_whatever_is_typed_is_read_or_refused_by_name(typed: dict[str, str]) -> None:
    query = QueryDict(mutable=True)
    query.update(typed)
    wrong = refusal(query)
    assert wrong is None or (wrong.param in filters.NAMES and wrong.message.endswith("."))
    assert all("\0" not in value for value in filters.typed(query).values())


@pytest.mark.parametrize(
    ("query", "param", "says"),
    [
        ("severity=fatal", "severity", "info, warning, critical"),
        ("class=spot", "class", "standard, preemptible"),
        ("actor=root", "actor", "person, key, system, kubernetes"),
        ("last=1y", "last", "1h, 24h, 7d, 30d"),
        ("from=yesterday", "from", "2026-11-12T14:03"),
        ("to=0001-01-01T00:00%2B14:00", "to", "date and time"),
        ("from=2026-11-12&to=2026-11-11", "from", "after the last"),
        ("last=1h&from=2026-11-12", "last", "not both"),
        ("reason=a&reason=b", "reason", "more than once"),
        ("node=a%00b", "node", "NUL"),
        ("q=a%0d%0ab", "q", "line break"),
        ("q=" + "x" * 201, "q", "at most 200"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_sentence(query: str, param: str, says: str) -> None:
    with pytest.raises(BadInput, match=says) as refused:
        parse(QueryDict(query))
    assert refused.value.param == param


def test_an_instant_without_a_zone_is_utc_and_one_with_a_zone_is_the_same_instant() -> None:
    assert parse(QueryDict("from=2026-11-12T12:00")).since == NOON
    assert parse(QueryDict("from=2026-11-12T17:45%2B05:45")).since == NOON


def test_a_length_of_time_ends_now() -> None:
    assert filters.for_browser(Filter(last="1h")) == {"seconds": 3600}
    assert filters.LENGTHS["1h"] == timedelta(hours=1)
