"""Whether a gold answer stands in a text."""

from __future__ import annotations

import re
import unicodedata

from onrecord.fold import UNSPACED

_ARTICLES = re.compile(r"\b(a|an|the)\b")


def stands_in(answer: str, text: str) -> bool:
    """Word for word; in scripts that write no spaces between words, character for character. Both as `plain`."""
    wanted = plain(answer)
    return bool(wanted) and f" {wanted} " in f" {plain(text)} "


def plain(text: str) -> str:
    """As SQuAD compares answers (Rajpurkar et al. 2016), in any script.

    Lower case, compatibility forms (NFKC), no punctuation or symbols, no English articles, single spaces, and spaces
    between the characters of an unspaced script.
    """
    text = unicodedata.normalize("NFKC", text).casefold()
    text = text.translate({ord(c): " " for c in set(text) if unicodedata.category(c)[0] in "PS"})
    text = UNSPACED.sub(lambda run: f" {' '.join(run[0])} ", text)
    return " ".join(_ARTICLES.sub(" ", text).split())
