"""Sentences, as found in handbooks."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.sentences import sentences


def split(text: str) -> list[str]:
    return [span.of(text) for span in sentences(text)]


@pytest.mark.parametrize(
    "found",
    [
        ["Ask Dr. Smith or Ms. Brown first.", "They decide within a day."],
        ["Use a strong cipher, e.g. AES-256, i.e. no DES.", "Rotate keys yearly."],
        ["The office in the U.S. closes at 5 p.m. on Friday.", "The one in Leipzig stays open."],
        ["We close at 5 p.m.", "The gate is locked then."],
        ["Bring tools, cables etc.", "The shelf is in room 2.14."],
        ["See fig. 3 and sec. 2.1 of the runbook.", "It covers approx. 40 hosts."],
        ["Version 4.19.3 fixes it.", "Versions before 4.19 don't."],
        ["Write to ops@example.org or see https://example.org/a.b?c=d. ", "Wait for an answer there."],
        ["It keeps them until the end of the month. ", "Code reviews take a day."],
        ["Does it restart by itself?", "Yes, it always does so!", "Nobody has to come in."],
        ["Written by J. R. Smith and A. Jones.", "Reviewed by nobody so far."],
        ["He said: \"Stop the pump.\"", "Then he left the building."],
    ],
)  # fmt: skip
def test_sentences(found: list[str]) -> None:
    assert split(" ".join(found)) == [sentence.strip() for sentence in found]


def test_a_line_end_is_a_space_and_white_space_is_nobodys() -> None:
    text = "  The pool has\r\n  forty slots.\tIt is   shared by all. \n"
    assert split(text) == ["The pool has\r\n  forty slots.", "It is   shared by all."]


def test_a_label_belongs_to_the_sentence_after_it() -> None:
    assert split("What it means. The pool is used up. Fix. Restart the service.") == [
        "What it means. The pool is used up.",
        "Fix. Restart the service.",
    ]
    assert split("Nothing follows.") == ["Nothing follows."]


def test_east_asian_full_stops() -> None:
    assert split("これは文です。「次の文です！」最後？はい。end") == [
        "これは文です。",
        "「次の文です！」",
        "最後？",
        "はい。",
        "end",
    ]


@given(st.text(alphabet=st.sampled_from("aB1 .!?。」\n\t\"')(…\u00a0"), max_size=80) | st.text(max_size=80))
def test_sentences_hold_all_but_white_space_in_order(text: str) -> None:
    found = sentences(text)
    assert all(a.end <= b.start for a, b in pairwise(found))
    assert "".join("".join(span.of(text).split()) for span in found) == "".join(text.split())
    assert all(span.of(text) == span.of(text).strip() for span in found)
