"""The tokenizer that documents and questions share.

A *surface* is what stands in the text ("RDS-4471", "connections", "24,601", "maxPoolSize"); its *terms* are what is
compared: first the surface as one term, then its parts. Case, accents, possessives and thousands separators fold
away, English words are stemmed (Snowball), identifiers are kept whole and split, and scripts that write without
spaces become character bigrams.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import Stemmer

_SURFACE = re.compile(r"[^\W_]+(?:(?:[.\-]|_+|(?<=\d),(?=\d{3}(?!\d))|['’](?=[^\W\d_]))[^\W_]+)*")
_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+(?:\.\d+)*")
_INNER_CAPITAL = re.compile(r"[a-z][A-Z]|[A-Z]{2,}[a-z]{2}")
_SPLIT = re.compile(r"[.\-_]+")
# Between two digits a separator carries meaning (v1.2 is not v12); elsewhere it is spelling (SEV-1 is SEV1).
_LOOSE = re.compile(r"(?<!\d)[.\-_]+|[.\-_]+(?!\d)")
# Han, Hiragana, Katakana, Thai, Lao, Khmer, Myanmar: scripts that write words without spaces between them.
UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")
_POSSESSIVE = re.compile(r"['’]s$")

STOP = frozenset(
    """
    a about after again all also am an and any are as at be because been before being but by can could did do does
    doing done for from get gets getting give given go goes got had has have having he her here hers him his how i
    if in into is it its itself just let like made make makes many may me might mine more most much must my need
    needed needs no not of off on once one only or other our ours out over own please s same shall she should so
    some such take tell than that the their theirs them then there these they this those through to too under until
    up us use used using very want was we were what whats when where which while who whom whose why will with would
    yes you your yours cannot dont doesnt isnt arent cant long often far soon ever still yet already really actually
    happen happens happened exactly
    """.split()
)

_local = threading.local()


@dataclass(frozen=True, slots=True)
class Token:
    """One surface at `text[start:end]`. `terms[0]` stands for the whole, the others for its parts.

    An `identifier` names one thing exactly: letters with digits (RDS-4471, v2.3), camelCase, snake_case.
    """

    start: int
    end: int
    terms: tuple[str, ...]
    stop: bool = False
    identifier: bool = False


def tokens(text: str) -> list[Token]:
    """The tokens of a text in order; linear in its length."""
    out: list[Token] = []
    for match in _SURFACE.finditer(text):
        folded = _fold(match.group())
        if folded.terms:
            out.append(Token(match.start(), match.end(), folded.terms, folded.stop, folded.identifier))
    return out


def terms(text: str) -> list[str]:
    """All terms of a text in order, wholes and parts, as they are indexed."""
    out: list[str] = []
    for match in _SURFACE.finditer(text):
        out.extend(_fold(match.group()).terms)
    return out


def plain(word: str) -> str:
    """Case and accents folded, nothing else."""
    if word.isascii():
        return word.lower()
    decomposed = unicodedata.normalize("NFKD", word.casefold())
    return unicodedata.normalize("NFC", "".join(c for c in decomposed if not unicodedata.combining(c)))


class _Folded(NamedTuple):
    terms: tuple[str, ...]
    stop: bool = False
    identifier: bool = False


@lru_cache(maxsize=1 << 17)
def _fold(surface: str) -> _Folded:
    """What one surface is worth, wherever it stands."""
    surface = _POSSESSIVE.sub("", unicodedata.normalize("NFKC", surface))[:256]
    if UNSPACED.search(surface):
        return _Folded(tuple(dict.fromkeys(_bigrams(surface))))
    word = plain(surface).replace("'", "").replace("’", "").replace(",", "")
    camel = _camel(surface)
    if word.isalpha() and not camel:
        return _Folded((stem(word),), stop=word in STOP)
    parts = [p for p in _SPLIT.split(word) if p]
    numeric = all(p.isdigit() for p in parts)
    whole = word if numeric else stem(_LOOSE.sub("", word))
    found = [whole]
    if numeric:
        # 4.19.3 is also a 4.19
        found += [".".join(parts[:2])] if len(parts) > 2 and "." in word else []
    else:
        pieces = _PIECE.findall(surface) if surface.isascii() else parts
        found += [p for p in (stem(plain(piece)) for piece in pieces) if p]
    named = not numeric and (camel or "_" in surface or any(c.isdigit() for c in word))
    return _Folded(tuple(dict.fromkeys(found)), identifier=named)


def _camel(word: str) -> bool:
    """Capitals inside a word, as in maxPoolSize; not WORD, Word, word, On-Call, KB or PDFs."""
    return _INNER_CAPITAL.search(word) is not None


def _bigrams(surface: str) -> list[str]:
    out: list[str] = []
    at = 0
    for match in UNSPACED.finditer(surface):
        out += terms(surface[at : match.start()])
        run = plain(match.group())
        out += [run[i : i + 2] for i in range(max(1, len(run) - 1))]
        at = match.end()
    return out + terms(surface[at:])


def stem(word: str) -> str:
    """The English Snowball stem (Porter2) of a folded ASCII word; other words as they are."""
    if not word.isascii() or not word.isalpha() or len(word) < 3:
        return word
    stemmer = getattr(_local, "stemmer", None)
    if stemmer is None:
        # a Snowball stemmer object must not be shared between threads
        stemmer = _local.stemmer = Stemmer.Stemmer("english")
    return str(stemmer.stemWord(word))
