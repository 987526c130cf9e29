"""For random histories, whatever a scope may see is found, by SQL and through the index, and nothing else."""

import tempfile
from datetime import datetime, timedelta
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from store_processes import index

from onrecord.index.local import LocalIndex
from onrecord.record import read, write
from onrecord.record.codec import from_micros
from onrecord.testing.index import agree
from onrecord.testing.record import Sample
from onrecord.types import Scope

URIS = ("a", "b", "c")
TENANTS = ("default", "other")
GROUPS = ("red", "blue", "green")
WORDS = ("amber", "basalt", "cobalt", "dolomite")

uris, tenants = st.sampled_from(URIS), st.sampled_from(TENANTS)
groups = st.frozensets(st.sampled_from(GROUPS), max_size=2)
texts = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join), max_size=3)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), uris, tenants, groups, texts),
        st.tuples(st.just("withdraw"), uris, tenants),
        st.tuples(st.just("regroup"), uris, tenants, groups),
        st.tuples(st.just("erase"), uris, tenants),
        st.tuples(st.sampled_from(["refresh", "catch_up", "rebuild", "reopen"])),
    ),
    min_size=3,
    max_size=25,
)


@settings(max_examples=25, deadline=None)
@given(history=steps, asked=st.lists(st.tuples(tenants, groups, st.integers(-1, 30)), min_size=6, max_size=6))
def test_scopes_hold(history: list[tuple], asked: list[tuple[str, frozenset[str], int]]) -> None:  # type: ignore[type-arg]
    with tempfile.TemporaryDirectory() as folder:
        sample = Sample(Path(folder))
        searched = index(sample.database)
        for step in history:
            searched = _take(step, sample, searched)
        searched.refresh()
        assert searched.fresh()
        moments = _moments(sample)
        for tenant, member_of, nth in asked:
            at = None if nth < 0 or not moments else moments[nth % len(moments)]
            _check(sample, searched, Scope(tenant, member_of, at))
        sample.database.close()


def _take(step: tuple, sample: Sample, searched: LocalIndex) -> LocalIndex:  # type: ignore[type-arg]
    match step:
        case ("put", uri, tenant, groups, texts):
            sample.put(uri, *texts, tenant=tenant, groups=groups)
        case ("withdraw", uri, tenant):
            write.withdraw(sample.database, tenant, uri)
        case ("regroup", uri, tenant, groups):
            write.regroup(sample.database, tenant, uri, groups)
        case ("erase", uri, tenant):
            write.erase(sample.database, tenant, uri)
        case ("reopen",):
            return index(sample.database)
        case (name,):
            getattr(searched, name)()
    return searched


def _check(sample: Sample, searched: LocalIndex, scope: Scope) -> None:
    truth = sample.truth()
    seen = {t.chunk for t in truth if t.seen_by(scope)}
    loaded = read.load_chunks(sample.database, [t.chunk for t in truth], scope)
    assert set(loaded) == seen
    for chunk in loaded.values():
        version = read.version(sample.database, chunk.version_id, scope)
        assert version is not None
        assert chunk.text == chunk.span.of(version.text)
        assert chunk.document == version.document
        assert chunk.document.tenant == scope.tenant
        assert chunk.document.groups <= scope.groups or chunk.document.groups & scope.groups
    agree(searched, sample, scope, ["amber", "cobalt"], sample.vector("amber cobalt"))
    readable = {t.tenant for t in truth if t.seen_by(scope)}
    assert readable <= {row.document.tenant for row in read.find_documents(sample.database, scope)} <= {scope.tenant}


def _moments(sample: Sample) -> list[datetime]:
    changes = sorted({m for t in sample.truth() for m in (t.since, t.until) if m is not None})
    return [from_micros(m) + timedelta(microseconds=by) for m in changes for by in (-1, 0)]
