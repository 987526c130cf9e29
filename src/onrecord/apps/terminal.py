"""Output that is safe to show: what documents and file names hold never drives a terminal or breaks a line."""

from __future__ import annotations

import json
import os
import re
import sys
import unicodedata
from typing import Any

from rich.console import Console
from rich.text import Text

_WIDEST = 100  # longer lines are hard to read
_JOINERS = "\u200c\u200d"  # parts of emoji and of some scripts' words
# valid within JSON strings, but a terminal may act on them, and UTF-8 has no surrogates
_ESCAPED = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class _Console(Console):
    def on_broken_pipe(self) -> None:
        # rich would exit here; the process has its own way of leaving
        raise BrokenPipeError


def console(stderr: bool = False) -> Console:
    """Colours on a terminal only (NO_COLOR is respected); nothing in a text is taken for markup or emoji codes."""
    return _Console(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=True)


def clean(text: str) -> str:
    """Without what drives a terminal; line breaks and tabs stay."""
    return text if text.isprintable() else "".join(map(_visible, text.replace("\r\n", "\n")))


def name(text: str) -> str:
    """The same on one line, with every character in sight: two names that differ look different."""
    return text if text.isprintable() else "".join(map(_named, text))


def one_line(text: str) -> str:
    """The same on one line, white space folded: for titles, quotes and messages."""
    return " ".join(clean(text).split())


def short(uri: str) -> str:
    """A path below the working folder as a relative one."""
    try:
        return name(uri.removeprefix(os.getcwd() + os.sep))
    except OSError:  # the working folder is gone
        return name(uri)


def storable(argument: str) -> str:
    """What a person typed, as the record names it: bytes that are no UTF-8 keep a readable form."""
    return argument.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def paragraph(out: Console, text: Text, indent: int = 0) -> None:
    """Wrapped and indented on a terminal; one line elsewhere, so that it can be searched and cut."""
    lines = text.wrap(out, max(20, min(out.width, _WIDEST) - indent)) if out.is_terminal else [text]
    for line in lines:
        line.rstrip()
        out.print(Text(" " * indent) + line)


def say(err: Console, lead: str, message: str, style: str) -> None:
    """One line for a person: `error: what, and what to do`."""
    paragraph(err, Text.assemble((f"{lead}: " if lead else "", style), message))


def to_json(value: Any) -> str:
    """One JSON document: indented on a terminal, one line elsewhere."""
    plain = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    text = json.dumps(value, ensure_ascii=plain, allow_nan=False, indent=2 if sys.stdout.isatty() else None)
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def put_json(value: Any) -> None:
    sys.stdout.write(to_json(value) + "\n")


def _named(c: str) -> str:
    if c < " ":
        return chr(0x2400 + ord(c))
    return c if c.isprintable() or c in _JOINERS else f"\\u{ord(c):04x}"


def _visible(c: str) -> str:
    if c.isprintable() or c in "\n\t" or c in _JOINERS:
        return c
    match unicodedata.category(c):
        case "Zs" | "Zl" | "Zp":
            return " "
        case "Cf":  # soft hyphens, byte order marks, changes of the writing direction
            return ""
        case "Cc" | "Cs":
            return chr(0x2400 + ord(c)) if c < " " else "�"
    return c
