import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from onrecord.errors import DatasetError
from onrecord.lab.claims import Report, judge, load
from onrecord.models.offline import HashEmbedder
from onrecord.policy import Policy

TEXT = "Audit logs are kept for 400 days. Backups are not kept abroad."
OTHER = "Badges are blue."


def claims(tmp_path: Path, *rows: dict[str, Any]) -> Path:
    corpus = [{"id": "a", "title": "", "text": TEXT}, {"id": "b", "title": "", "text": OTHER}]
    (tmp_path / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in corpus))
    (tmp_path / "claims.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def judged(folder: Path) -> Report:
    async def run() -> Report:
        return await judge(load(folder), Policy(), lambda _: None, HashEmbedder(), resamples=50)

    return anyio.run(run)


GOLD = {"doc": "a", "start": 0, "end": 33, "quote": "Audit logs are kept for 400 days."}
ROWS = (
    {"claim": "Audit logs are kept for 400 days.", "doc": "a", "label": "supported", "evidence": [GOLD]},
    {"claim": "Backups are kept abroad.", "doc": "a", "label": "contradicted"},
    {"claim": "Badges are blue.", "doc": "a", "label": "not_mentioned"},
    {"claim": "Badges are blue.", "doc": "b", "label": "supported"},
    {"claim": "The pier is long.", "source_text": "The pier is long and old.", "label": "supported"},
    {"claim": "The pier is short.", "source_text": "The pier is long and old.", "label": "neutral"},
)


def test_each_claim_is_held_against_its_own_document(tmp_path: Path) -> None:
    report = judged(claims(tmp_path, *ROWS))
    assert [j.said for j in report.judged] == [
        "supported",
        "contradicted",
        "neutral",
        "supported",
        "supported",
        "neutral",
    ]
    assert report.confusion["supported"] == {"supported": 3, "contradicted": 0, "neutral": 0}
    assert report.figures["accuracy"].value == 1.0
    assert report.figures["evidence_overlap"].n == 1
    assert report.judged[0].overlap


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"claim": "x", "doc": "a", "label": "maybe"}, "line 1: 'maybe' is no label"),
        ({"claim": "x", "doc": "z", "label": "supported"}, "line 1: there is no document 'z'"),
        ({"doc": "a", "label": "supported"}, "line 1: 'claim' is missing"),
        ({"claim": "x", "label": "supported"}, "line 1: 'doc' is missing"),
        ({"claim": "x", "doc": "a", "label": "supported", "evidence": [3]}, "line 1: a piece of evidence"),
        (
            {"claim": "x", "doc": "a", "label": "supported", "evidence": [{"doc": "a", "quote": "not there"}]},
            "line 1: the quote",
        ),
    ],
)
def test_bad_claims_are_told_of_with_their_line(tmp_path: Path, row: dict[str, Any], told: str) -> None:
    with pytest.raises(DatasetError, match=told):
        judged(claims(tmp_path, row))


def test_sets_without_claims(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"has no claims\.jsonl"):
        load(tmp_path)
    with pytest.raises(DatasetError, match="holds no claim"):
        load(claims(tmp_path))
