"""The tokenizer that documents and questions share."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord import fold


def first(text: str) -> tuple[str, ...]:
    return fold.tokens(text)[0].terms


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("RDS-4471", "rds-4471"),
        ("SEV-1", "SEV1"),
        ("24,601", "24601"),
        ("Café", "CAFE"),
        ("Müller's", "muller"),
        ("connections", "connection"),
        ("on-call", "oncall"),
        ("max_pool_size", "maxPoolSize"),
        ("ﬁle", "file"),
        ("東京", "東京"),
    ],
)
def test_the_same_thing_written_in_two_ways_has_one_first_term(one: str, other: str) -> None:
    assert first(one)[0] == first(other)[0]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("RDS-4471", "RDS-4472"),
        ("v1.2", "v12"),
        ("1.5", "15"),
        ("4.19", "41.9"),
        ("2024-01", "202401"),
        ("10ms", "10s"),
    ],
)
def test_different_things_keep_different_first_terms(one: str, other: str) -> None:
    assert first(one)[0] != first(other)[0]


@pytest.mark.parametrize(
    ("surface", "parts"),
    [
        ("RDS-4471", {"rds", "4471"}),
        ("KubeAPIErrorBudgetBurn", {"kube", "api", "error", "budget", "burn"}),
        ("etcd_disk_wal", {"etcd", "disk", "wal"}),
        ("4.19.3", {"4.19"}),
        ("10ms", {"10", "ms"}),
        ("v1.2", {"v", "1.2"}),
    ],
)
def test_a_compound_is_kept_whole_and_split(surface: str, parts: set[str]) -> None:
    whole, *rest = first(surface)
    assert set(rest) == parts
    assert whole not in parts


def test_identifiers_are_known_as_such() -> None:
    named = [t for t in fold.tokens("Why does RDS-4471 show 15 connections in v2.3?") if t.identifier]
    assert [t.terms[0] for t in named] == ["rds4471", "v2.3"]


def test_function_words_are_marked_not_dropped() -> None:
    stops = [t.stop for t in fold.tokens("What is the pool?")]
    assert stops == [True, True, True, False]
    assert fold.terms("What is the pool?") == ["what", "is", "the", "pool"]


def test_scripts_without_spaces_become_bigrams() -> None:
    assert fold.terms("東京タワー") == ["東京", "京タ", "タワ", "ワー"]
    assert fold.terms("京") == ["京"]
    assert set(fold.terms("接続プールTokyo42")) >= {"接続", "tokyo42"}


@given(st.text(max_size=300))
def test_any_text_gives_tokens_that_lie_in_it_in_order(text: str) -> None:
    at = 0
    for token in fold.tokens(text):
        assert at <= token.start < token.end <= len(text)
        assert token.terms
        assert all(term and not any(c.isspace() for c in term) for term in token.terms)
        at = token.end


@given(st.text(max_size=100))
def test_terms_are_the_tokens_terms(text: str) -> None:
    assert fold.terms(text) == [term for token in fold.tokens(text) for term in token.terms]


@given(st.text(alphabet="abcdefghij ABC-_.,'0123456789é", max_size=60))
def test_case_never_matters_for_whole_terms(text: str) -> None:
    lower = {t.terms[0] for t in fold.tokens(text.lower())}
    assert {t.terms[0] for t in fold.tokens(text.upper())} == lower
