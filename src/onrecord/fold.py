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

import Stemmer

_SURFACE = re.compile(r"[^\W_]+(?:(?:[.\-]|_+|(?<=\d),(?=\d{3}(?!\d))|['’](?=[^\W\d_]))[^\W_]+)*")
_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+(?:\.\d+)*")
_SPLIT = re.compile(r"[.\-_]+")
# Between two digits a separator carries meaning (v1.2 is not v12); elsewhere it is spelling (SEV-1 is SEV1).
_LOOSE = re.compile(r"(?<!\d)[.\-_]+|[.\-_]+(?!\d)")
# Han, Hiragana, Katakana, Thai, Lao, Khmer, Myanmar: scripts that write words without spaces between them.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")
_POSSESSIVE = re.compile(r"['’]s$")

STOP = frozenset(
    """
    a about after again all also am an and any are as at be because been before being but by can could did do does
    doing done for from get gets getting give given go goes got had has have having he her here hers him his how i
    if in into is it its itself just let like made make makes many may me might mine more most much must my need
    needed needs no not of off on once one only or other our ours out over own please s same shall she should so
    some such take tell than that the their theirs them then there these they this those through to too under until
    up us use used using very want was we were what whats when where which while who whom whose why will with would
    yes you your yours cannot dont doesnt isnt arent cant
    """.split()
)

_local = threading.local()


@dataclass(frozen=True, slots=True)
class Token:
    """One surface at `text[start:end]`. `terms[0]` stands for the whole, the others for its parts."""

    start: int
    end: int
    terms: tuple[str, ...]
    stop: bool = False

    @property
    def identifier(self) -> bool:
        """Whether it names one thing exactly: letters and digits together, as in RDS-4471 or v2.3."""
        whole = self.terms[0]
        return any(c.isdigit() for c in whole) and any(c.isalpha() for c in whole)


def tokens(text: str) -> list[Token]:
    """The tokens of a text in order; linear in its length."""
    out: list[Token] = []
    for match in _SURFACE.finditer(text):
        folded, stop = _fold(match.group())
        if folded:
            out.append(Token(match.start(), match.end(), folded, stop))
    return out


def terms(text: str) -> list[str]:
    """All terms of a text in order, wholes and parts, as they are indexed."""
    out: list[str] = []
    for match in _SURFACE.finditer(text):
        out.extend(_fold(match.group())[0])
    return out


def plain(word: str) -> str:
    """Case and accents folded, nothing else."""
    if word.isascii():
        return word.lower()
    decomposed = unicodedata.normalize("NFKD", word.casefold())
    return unicodedata.normalize("NFC", "".join(c for c in decomposed if not unicodedata.combining(c)))


@lru_cache(maxsize=1 << 17)
def _fold(surface: str) -> tuple[tuple[str, ...], bool]:
    """The distinct terms of one surface, and whether it is a function word."""
    surface = _POSSESSIVE.sub("", unicodedata.normalize("NFKC", surface))[:256]
    if _UNSPACED.search(surface):
        return tuple(dict.fromkeys(_bigrams(surface))), False
    word = plain(surface).replace("'", "").replace("’", "").replace(",", "")
    if word.isalpha() and not _camel(surface):
        return (stem(word),), word in STOP
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
    return tuple(dict.fromkeys(found)), False


def _camel(word: str) -> bool:
    return not (word.islower() or word.isupper() or word[1:].islower())


def _bigrams(surface: str) -> list[str]:
    out: list[str] = []
    at = 0
    for match in _UNSPACED.finditer(surface):
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
