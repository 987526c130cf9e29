"""HTML out of values: whatever isn't markup by type is escaped, so that no question or document can become any."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TypeAlias

_VOID = frozenset({"meta", "br", "hr"})


@dataclass(frozen=True, slots=True)
class Html:
    """Text that is markup."""

    markup: str


Node: TypeAlias = "Html | str"


def tag(element: str, /, *content: Node, **attributes: str | None) -> Html:
    """An element. An underscore in the name of an attribute is a hyphen, a last one nothing; None leaves it out."""
    given = (
        f' {key.rstrip("_").replace("_", "-")}="{escape(shown(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    start = f"<{element}{''.join(given)}>"
    return Html(start) if element in _VOID else Html(f"{start}{join(*content).markup}</{element}>")


def join(*content: Node) -> Html:
    return Html("".join(c.markup if isinstance(c, Html) else escape(shown(c)) for c in content))


def foreign(text: str, most: int = 600) -> Html:
    """Words of a document or a question: in their own writing direction, cut where they are very long."""
    words = shown(text)
    if len(words) <= most:
        return tag("bdi", words)
    return join(tag("bdi", words[:most].rstrip(), "…"), " ", tag("small", f"({len(words):,} characters)"))


def shown(text: str) -> str:
    """Without what a page can't hold: controls are shown as pictures, halves of surrogate pairs as replacements."""
    return text if text.isprintable() else "".join(map(_shown, text))


def _shown(c: str) -> str:
    if c in "\n\t":
        return c
    if c < " ":
        return chr(0x2400 + ord(c))
    return "\N{REPLACEMENT CHARACTER}" if "\x7f" <= c <= "\x9f" or "\ud800" <= c <= "\udfff" else c
