"""Sentences of a text with exact offsets: Punkt (Kiss and Strunk 2006) with abbreviations of our own.

The models that come with nupunkt were trained on law reports and take words such as "month." and "code." for
abbreviations; without any it would part "Dr." from "Smith".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from onrecord.types import Span

if TYPE_CHECKING:
    from nupunkt import PunktSentenceTokenizer

_ABBREVIATIONS = set(
    """
    dr mr mrs ms prof sr jr st messrs ph.d inc ltd co corp dept e.g i.e etc vs cf al viz approx est incl excl resp max
    min fig figs sec sect ch vol pp eds para eq tel ext jan feb apr aug sep sept oct nov dec a.m p.m u.s u.k u.n
    """.split()
)
# After an abbreviation one of these begins a sentence.
_STARTERS = set(
    """
    a after an and as at before but do for he if in it no not on once or see she so that the then there these they this
    those to use we when while you
    """.split()
)
_LABEL_WORDS = 3
_EAST_ASIAN_STOP = re.compile("[。！？｡]+[」』”’）]*")


def sentences(text: str) -> list[Span]:
    """The sentences in order, without the white space around them. A line end counts as a space.

    A label of up to three words ("What it means.") is one with the sentence after it, without which it says nothing.
    """
    found = _tokenizer().span_tokenize(text.replace("\r", " ").replace("\n", " "))
    out: list[Span] = []
    for span in filter(len, (trimmed(text, Span(start, end)) for start, end in found)):
        if out and len(out[-1].of(text).split()) <= _LABEL_WORDS:
            out[-1] = Span(out[-1].start, span.end)
        else:
            out.append(span)
    return [part for span in out for part in _east_asian(text, span)]


def trimmed(text: str, span: Span) -> Span:
    """The span without the white space at its ends; empty where it holds nothing else."""
    piece = span.of(text)
    left = len(piece) - len(piece.lstrip())
    return Span(span.start + left, max(span.start + left, span.start + len(piece.rstrip())))


def _east_asian(text: str, span: Span) -> Iterator[Span]:
    """Punkt knows Western full stops only."""
    stops = [found.end() for found in _EAST_ASIAN_STOP.finditer(text, span.start, span.end)]
    for start, end in pairwise([span.start, *stops, span.end]):
        if len(part := trimmed(text, Span(start, end))):
            yield part


@cache
def _tokenizer() -> PunktSentenceTokenizer:
    # imported here: only ingest cuts sentences
    from nupunkt import PunktParameters, PunktSentenceTokenizer

    parameters = PunktParameters()
    parameters.update_abbrev_types(_ABBREVIATIONS)
    parameters.update_sent_starters(_STARTERS)
    return PunktSentenceTokenizer(parameters)
