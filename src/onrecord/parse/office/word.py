"""Word documents: headings, paragraphs, lists, tables, footnotes, text boxes; tracked changes as accepted.

A place names the paragraph, or the table with its row and column, as they follow one another in the document.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from lxml import etree

from onrecord.parse.compose import Composer, Piece, Words, words_of
from onrecord.parse.office.grid import headers
from onrecord.parse.office.package import Package, damaged
from onrecord.types import Element, Parsed

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_STRICT = "{http://purl.oclc.org/ooxml/wordprocessingml/main}"
_LEVELS = 9
# What a reader doesn't see: text that was deleted or moved away, instructions of fields, properties.
_UNSEEN = frozenset("del moveFrom instrText delText pPr rPr sectPr tblPr trPr tcPr fldData rt".split())
_SPACES = frozenset("tab br cr ptab".split())


def word(data: bytes, title: str, media_type: str) -> Parsed:
    """A .docx or .docm file. Page headers and footers, comments and hidden text are left out.

    Raises RejectedInput: "damaged", "encrypted", "too_large", "hostile".
    """
    package = Package(data)
    main = next((part for kind, part in package.related("").values() if kind == "officeDocument"), "word/document.xml")
    related = {kind: part for kind, part in package.related(main).values() if part in package}
    root = package.xml(main)
    body = next((node for node in root if _name(node) == "body"), None)
    if body is None:
        raise damaged(f"its part {main} has no body")
    styles = _styles(package.xml(related["styles"])) if "styles" in related else {}
    notes = {
        f"{kind} {_attribute(note, 'id')}": note
        for kind in ("footnote", "endnote")
        if f"{kind}s" in related
        for note in package.xml(related[f"{kind}s"])
        if _name(note) == kind and _attribute(note, "type") is None
    }
    reader = _Reader(styles, notes)
    reader.blocks(body)
    reader.flush()
    return reader.composer.finish(_title(package) or reader.title or reader.composer.first_heading or title, media_type)


@dataclass(frozen=True, slots=True)
class _Style:
    """`level` of a heading from 1, 0 for none. `listed`: its paragraphs are items."""

    name: str
    level: int = 0
    listed: bool = False


@dataclass(slots=True)
class _Found:
    """What was come upon inside a paragraph and stands after it."""

    boxes: list[etree._Element] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class _Reader:
    """Walks the blocks of a document in order and tells a composer."""

    def __init__(self, styles: dict[str, _Style], notes: dict[str, etree._Element]) -> None:
        self.composer = Composer()
        self.title = ""
        self._styles, self._notes = styles, notes
        self._items: list[Words] = []
        self._caption: Words = ()
        self._paragraphs = self._tables = 0

    def blocks(self, parent: etree._Element) -> None:
        for node in _blocks(parent):
            if _name(node) == "p":
                self._paragraph(node)
            else:
                self._table(node)

    def flush(self) -> None:
        """Puts what was held back: a list that may have gone on, a caption that no table followed."""
        items, caption = self._items, self._caption
        self._items, self._caption = [], ()
        self.composer.items(items)
        self.composer.paragraph(caption)

    def _paragraph(self, node: etree._Element) -> None:
        self._paragraphs += 1
        found = _Found()
        words = _words(node, Element(f"paragraph {self._paragraphs}"), found)
        style = self._style(node)
        if not words_of(words):
            pass
        elif style.level:
            self.flush()
            self.composer.heading(style.level, words)
        elif style.name == "title":
            self.flush()
            self.title = self.title or words_of(words)
            self.composer.heading(1, words)
        elif style.name == "caption":
            self.flush()
            self._caption = words
        elif style.listed:
            if self._caption:
                self.flush()
            self._items.append(words)
        else:
            self.flush()
            self.composer.paragraph(words)
        self._after(found)

    def _after(self, found: _Found) -> None:
        for box in found.boxes:
            self.flush()
            self.blocks(box)
            self.flush()
        for name in found.notes:
            if (note := self._notes.get(name)) is not None:
                self.flush()
                words = [
                    piece for p in note.iter("{*}p") for piece in (*_words(p, Element(name), _Found()), Piece(" "))
                ]
                self.composer.paragraph(words)

    def _style(self, node: etree._Element) -> _Style:
        properties = _child(node, "pPr")
        if properties is None:
            return _Style("")
        named = _child(properties, "pStyle")
        style = self._styles.get(_attribute(named, "val") or "", _Style("")) if named is not None else _Style("")
        outline, numbered = _child(properties, "outlineLvl"), _child(properties, "numPr")
        level = _level(outline) if outline is not None else style.level
        if numbered is None:
            return _Style(style.name, level, style.listed)
        number = _child(numbered, "numId")
        return _Style(style.name, level, number is None or _attribute(number, "val") != "0")

    def _table(self, node: etree._Element) -> None:
        caption, self._caption = self._caption, ()
        self.flush()
        self._tables += 1
        found, marked = _Found(), 0
        rows: list[list[Words]] = []
        name = f"table {self._tables}"
        for number, row in enumerate(_rows(node), 1):
            properties = _child(row, "trPr")
            if properties is not None and _child(properties, "del") is not None:
                continue
            if marked == len(rows) and properties is not None and _child(properties, "tblHeader") is not None:
                marked += 1
            rows.append(_cells(row, f"{name}, row {number}", found))
        if max((len(row) for row in rows), default=0) > 1:
            self.composer.table(rows, marked or headers(rows), caption)
        else:
            self.composer.paragraph(caption)
            for only in rows:
                for cell in only:
                    self.composer.paragraph(cell)
        self._after(found)


def _blocks(parent: etree._Element) -> Iterator[etree._Element]:
    """The paragraphs and tables, also those inside of content controls and insertions."""
    for node in parent:
        name = _name(node)
        if name in ("p", "tbl"):
            yield node
        elif name in ("sdt", "sdtContent", "ins", "moveTo", "customXml", "smartTag", "AlternateContent", "Choice"):
            yield from _blocks(node)


def _rows(table: etree._Element) -> Iterator[etree._Element]:
    for node in table:
        if _name(node) == "tr":
            yield node
        elif _name(node) in ("sdt", "sdtContent", "ins", "customXml"):
            yield from _rows(node)


def _cells(row: etree._Element, name: str, found: _Found) -> list[Words]:
    """The words of each cell; a cell over several columns is followed by empty ones."""
    out: list[Words] = []
    for node in row.iter("{*}tc"):
        if next(node.iterancestors("{*}tr")) is not row:
            continue  # of a table inside a cell, whose words are the cell's
        properties = _child(node, "tcPr")
        span = _child(properties, "gridSpan") if properties is not None else None
        width = _attribute(span, "val") if span is not None else None
        spot = Element(f"{name}, column {len(out) + 1}")
        out.append([piece for p in node.iter("{*}p") for piece in (*_words(p, spot, found), Piece(" "))])
        more = int(width) - 1 if width and width.isdecimal() and len(width) < 4 else 0
        out.extend(() for _ in range(min(more, 100)))
    return out


def _words(paragraph: etree._Element, spot: Element, found: _Found) -> list[Piece]:
    """What a reader sees of a paragraph. Text boxes and notes go to `found`."""
    out: list[Piece] = []
    todo = list(reversed(paragraph))
    while todo:
        node = todo.pop()
        name = _name(node)
        if name == "t":
            out.append(Piece(node.text or "", spot))
        elif name in _SPACES:
            out.append(Piece(" "))
        elif name == "noBreakHyphen":
            out.append(Piece("-", spot))
        elif name == "txbxContent":
            found.boxes.append(node)
        elif name in ("footnoteReference", "endnoteReference"):
            found.notes.append(f"{name.removesuffix('Reference')} {_attribute(node, 'id')}")
        elif name == "AlternateContent":
            # the same thing for several versions of Word
            todo.extend(child for child in node if _name(child) == "Choice")
        elif name not in _UNSEEN and not (name == "r" and _hidden(node)):
            todo.extend(reversed(node))
    return out


def _hidden(run: etree._Element) -> bool:
    properties = _child(run, "rPr")
    vanish = _child(properties, "vanish") if properties is not None else None
    return vanish is not None and _attribute(vanish, "val") not in ("0", "false", "off")


def _styles(root: etree._Element) -> dict[str, _Style]:
    nodes = {_attribute(node, "styleId") or "": node for node in root if _name(node) == "style"}
    return {name: _resolved(name, nodes) for name in nodes}


def _resolved(key: str, nodes: dict[str, etree._Element]) -> _Style:
    """A style with what it has from those it is based on."""
    name, level, numbered, seen = _called(nodes[key]), 0, False, set[str]()
    while key in nodes and key not in seen:
        seen.add(key)
        properties, based = _child(nodes[key], "pPr"), _child(nodes[key], "basedOn")
        outline = _child(properties, "outlineLvl") if properties is not None else None
        heading = re.fullmatch("heading ([1-9])", _called(nodes[key]))
        level = level or (_level(outline) if outline is not None else int(heading[1]) if heading else 0)
        numbered = numbered or (properties is not None and _child(properties, "numPr") is not None)
        key = (_attribute(based, "val") or "") if based is not None else ""
    return _Style(name, level, (numbered or name.startswith("list")) and not level)


def _called(style: etree._Element) -> str:
    named = _child(style, "name")
    return ((_attribute(named, "val") or "") if named is not None else "").lower()


def _level(outline: etree._Element) -> int:
    value = _attribute(outline, "val") or ""
    return int(value) + 1 if value.isdecimal() and int(value[:2]) < _LEVELS else 0


def _title(package: Package) -> str:
    if "docProps/core.xml" not in package:
        return ""
    found = package.xml("docProps/core.xml").find("{http://purl.org/dc/elements/1.1/}title")
    return " ".join((found.text or "").split()) if found is not None else ""


def _name(node: etree._Element) -> str:
    """The name of an element without its namespace; empty for comments and the like."""
    return node.tag.rpartition("}")[2] if isinstance(node.tag, str) else ""


def _child(node: etree._Element, name: str) -> etree._Element | None:
    return next((child for child in node if _name(child) == name), None)


def _attribute(node: etree._Element, name: str) -> str | None:
    return node.get(_W + name) or node.get(_STRICT + name)
