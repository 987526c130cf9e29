"""Files into texts with sections and exact places: Markdown, HTML, plain text, CSV, spreadsheets, Word."""

from __future__ import annotations

import re
from os.path import basename, splitext

from onrecord.errors import RejectedInput
from onrecord.parse.decode import decode
from onrecord.parse.delimited import delimited
from onrecord.parse.html import html
from onrecord.parse.markdown import markdown
from onrecord.parse.plain import plain
from onrecord.parse.sniff import (
    BINARY_EXCEL,
    CSV,
    EXCEL,
    HTML,
    MARKDOWN,
    ODF_SHEET,
    OLD_EXCEL,
    TSV,
    WORD,
    media_type,
    supported,
)
from onrecord.types import Parsed

__all__ = ["parse", "supported"]

_RIGHT_FILE = "Check that the right file was given."
_OFFICE = frozenset((EXCEL, OLD_EXCEL, BINARY_EXCEL, ODF_SHEET, WORD))
_WORD = re.compile(r"\w")
# What front matter says of a page that another one has replaced.
_OUTDATED = frozenset(
    ["archived", "deprecated", "expired", "obsolete", "outdated", "retired", "superseded", "withdrawn"]
)


def parse(data: bytes, name: str) -> Parsed:
    """The text of a file, its sections and where all of it lies in the file. `name` may be a path.

    Raises RejectedInput with one of these reasons, and nothing else, whatever the bytes are: "empty", "unsupported"
    (a format that isn't read), "binary" (not text at all), "encoding" (text in no encoding that fits), "no_text"
    (nothing a reader would see), "damaged", "encrypted", "too_large" (when it is unpacked), "hostile" (made to harm).
    """
    if not data.strip():
        raise RejectedInput("empty", "It is empty.", _RIGHT_FILE)
    kind = media_type(data, name)
    title = " ".join(splitext(basename(name))[0].replace("-", " ").replace("_", " ").split())
    parsed = _office(data, title, kind) if kind in _OFFICE else _text(data, name, title, kind)
    if not any(_WORD.search(parsed.text, s.span.start, s.span.end) for s in parsed.sections):
        raise RejectedInput("no_text", "It holds nothing that a reader would see.", _RIGHT_FILE)
    return parsed


def _office(data: bytes, title: str, kind: str) -> Parsed:
    # imported here: many stores never see one
    from onrecord.parse.office.sheets import calamine, excel
    from onrecord.parse.office.word import word

    return {EXCEL: excel, WORD: word}.get(kind, calamine)(data, title, kind)


def _text(data: bytes, name: str, title: str, kind: str) -> Parsed:
    text, encoding = decode(data, kind == HTML)
    if kind in (CSV, TSV):
        return delimited(text, encoding, title, kind, "\t" if kind == TSV else None)
    if kind == HTML:
        xml = name.lower().endswith(".xhtml") or text.startswith("<?xml")
        page, sections, runs, found = html(text, xml)
        return Parsed(page, found or title, kind, encoding, sections, (), runs)
    if kind == MARKDOWN:
        try:
            sections, markup, found, status = markdown(text)
        except (IndexError, RuntimeError):  # markdown-it gave up; a text is better than nothing
            sections, markup, found, status = *plain(text), "", ""
        outdated = status.lower() in _OUTDATED
        return Parsed(text, found or title, kind, encoding, sections, markup, outdated=outdated)
    sections, markup = plain(text)
    return Parsed(text, title, kind, encoding, sections, markup)
