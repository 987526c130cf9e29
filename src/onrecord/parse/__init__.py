"""Files into texts with sections and exact offsets: Markdown, HTML, plain text."""

from __future__ import annotations

import re
from os.path import basename, splitext

from onrecord.errors import RejectedInput
from onrecord.parse.decode import decode
from onrecord.parse.html import html
from onrecord.parse.markdown import markdown
from onrecord.parse.plain import plain
from onrecord.parse.sniff import HTML, MARKDOWN, media_type, supported
from onrecord.types import Parsed

__all__ = ["parse", "supported"]

_RIGHT_FILE = "Check that the right file was given."
_WORD = re.compile(r"\w")
# What front matter says of a page that another one has replaced.
_OUTDATED = frozenset(
    ["archived", "deprecated", "expired", "obsolete", "outdated", "retired", "superseded", "withdrawn"]
)


def parse(data: bytes, name: str) -> Parsed:
    """The text of a file, its sections and where all of it lies in the file. `name` may be a path.

    Raises RejectedInput with one of these reasons, and nothing else, whatever the bytes are: "empty", "unsupported"
    (a format that isn't read), "binary" (not text at all), "encoding" (text in no encoding that fits), "no_text"
    (nothing a reader would see).
    """
    if not data.strip():
        raise RejectedInput("empty", "It is empty.", _RIGHT_FILE)
    kind = media_type(data, name)
    text, encoding = decode(data, kind == HTML)
    title = " ".join(splitext(basename(name))[0].replace("-", " ").replace("_", " ").split())
    if kind == HTML:
        xml = name.lower().endswith(".xhtml") or text.startswith("<?xml")
        page, sections, runs, found = html(text, xml)
        parsed = Parsed(page, found or title, kind, encoding, sections, (), runs)
    elif kind == MARKDOWN:
        try:
            sections, markup, found, status = markdown(text)
        except (IndexError, RuntimeError):  # markdown-it gave up; a text is better than nothing
            sections, markup, found, status = *plain(text), "", ""
        outdated = status.lower() in _OUTDATED
        parsed = Parsed(text, found or title, kind, encoding, sections, markup, outdated=outdated)
    else:
        sections, markup = plain(text)
        parsed = Parsed(text, title, kind, encoding, sections, markup)
    if not any(_WORD.search(parsed.text, s.span.start, s.span.end) for s in parsed.sections):
        raise RejectedInput("no_text", "It holds nothing that a reader would see.", _RIGHT_FILE)
    return parsed
