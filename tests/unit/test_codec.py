from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.errors import UsageError
from onrecord.record import codec
from onrecord.types import Run, Span

spans = st.tuples(st.integers(0, 10**9), st.integers(0, 10**6)).map(lambda t: Span(t[0], t[0] + t[1]))


@given(st.datetimes(timezones=st.just(UTC)))
def test_moments_survive_to_the_microsecond(moment: datetime) -> None:
    assert codec.from_micros(codec.to_micros(moment)) == moment


def test_moments_of_other_time_zones_are_the_same_moments() -> None:
    here = datetime(2024, 3, 1, 12, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    assert codec.to_micros(here) == codec.to_micros(here.astimezone(UTC))


def test_a_moment_without_a_time_zone_is_refused() -> None:
    with pytest.raises(UsageError, match="no time zone"):
        codec.to_micros(datetime(2024, 3, 1))


@given(st.lists(spans))
def test_spans_survive(some: list[Span]) -> None:
    assert codec.unpack_spans(codec.pack_spans(some)) == tuple(some)


@given(st.lists(st.tuples(spans, spans).map(lambda t: Run(*t))))
def test_runs_survive(some: list[Run]) -> None:
    assert codec.unpack_runs(codec.pack_runs(some)) == tuple(some)


@given(st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=64))
def test_vectors_keep_three_digits(numbers: list[float]) -> None:
    vector = np.array(numbers, np.float32)
    packed = codec.pack_vector(vector)
    assert len(packed) == 2 * len(vector)
    assert np.abs(np.frombuffer(packed, "<f2").astype(np.float32) - vector).max() <= 2**-11
