"""A store with a calibrated confidence: who uses it, what goes before it, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import store_processes as others

from onrecord.answer import calibrated
from onrecord.answer.confidence import Confidence, Promise, shipped
from onrecord.engine import Engine
from onrecord.errors import ModelError
from onrecord.models.offline import HashEmbedder
from onrecord.policy import Policy
from onrecord.record import installed
from onrecord.record.database import Database

POLICY = Policy()


def made(threshold: float = 0.83, policy: str = POLICY.hash, embedder: str = HashEmbedder().name) -> Confidence:
    promise = Promise(
        risk=0.1,
        confidence=0.95,
        dataset="tiny",
        dataset_hash="0123456789ab",
        questions=300,
        tested=200,
        answered=120,
        wrong=2,
        policy=policy,
        embedder=embedder,
        made_of=shipped().name,
        created="2026-01-31T12:00:00+00:00",
        version="0",
    )
    return calibrated.named(replace(shipped(), threshold=threshold, promise=promise))


def install(url: str, text: str | None) -> None:
    database = Database(url)
    try:
        installed.put_confidence(database, text)
    finally:
        database.close()


def opened(url: str, policy: Policy | None = None) -> Engine:
    return Engine(store=url, embedder=HashEmbedder(), policy=policy)


def test_every_opening_uses_it_and_its_record_names_it(store: str, tmp_path: Path) -> None:
    (tmp_path / "logs.md").write_text("Audit logs are retained for 400 days.")
    with opened(store) as kb:
        kb.ingest(tmp_path / "logs.md")
        assert "promise" not in kb.status()
    install(store, calibrated.dump(made()))
    with opened(store) as kb:
        record = kb.ask("How long are audit logs retained?")
        assert (record.models["confidence"], record.threshold) == (made().name, 0.83)
        assert kb.status()["promise"]["holds"] is True
    install(store, None)
    with opened(store) as kb:
        assert kb.ask("How long are audit logs retained?").models["confidence"] == shipped().name


def test_a_threshold_that_was_chosen_goes_before_it_and_the_promise_is_void(store: str) -> None:
    install(store, calibrated.dump(made()))
    with opened(store, POLICY.with_(grounding={"threshold": 0.6})) as kb:
        status = kb.status()
    assert (status["threshold"], status["promise"]["holds"]) == (0.6, False)


def test_the_promise_is_void_under_another_policy(store: str) -> None:
    install(store, calibrated.dump(made()))
    with opened(store, POLICY.with_(retrieval={"passages": 3})) as kb:
        status = kb.status()
    assert (status["threshold"], status["promise"]["holds"]) == (0.83, False)


@pytest.mark.parametrize("text", ["", "{}", "null", "[1]", calibrated.dump(made())[:-40], "{" * 100_000])
def test_what_is_damaged_is_told_of_until_it_is_taken_away(store: str, text: str) -> None:
    install(store, text)
    with pytest.raises(ModelError, match=r"damaged.*--reset"):
        opened(store)
    install(store, None)
    opened(store).close()


def test_what_was_calibrated_with_another_embedding_model_is_refused(store: str) -> None:
    install(store, calibrated.dump(made(embedder="another")))
    with pytest.raises(ModelError, match="calibrated with the model another"):
        opened(store)


def test_two_that_calibrate_at_once_leave_one_whole_confidence(store: str) -> None:
    Database(store).close()
    texts = [calibrated.dump(made(threshold=0.5 + n / 100)) for n in range(1, 9)]
    with others.pool(4) as pool:
        pool.starmap(install, [(store, text) for text in texts])
    database = Database(store)
    try:
        assert installed.confidence(database) in texts
    finally:
        database.close()
