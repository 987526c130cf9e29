"""An archive of XML parts, as Word, Excel, PowerPoint, OpenDocument and EPUB files are, read within limits.

Sizes are checked before anything is inflated, and no part is inflated that isn't asked for. XML is parsed without
entities, DTDs or network.
"""

from __future__ import annotations

import posixpath
import zipfile
import zlib
from io import BytesIO

from lxml import etree

from onrecord.errors import RejectedInput

_PARTS = 20_000
_PART_BYTES = 48 * 1024 * 1024
_TOTAL_BYTES = 256 * 1024 * 1024
_RATIO = 200  # no XML is packed so well, but for repetition that no reader wants
_OPENING = 64 * 1024
_LEAST_RATED = 8 * 1024 * 1024


class Package:
    """Raises RejectedInput: "damaged", "encrypted", "too_large"."""

    def __init__(self, data: bytes) -> None:
        try:
            self._zip = zipfile.ZipFile(BytesIO(data))
            entries = self._zip.infolist()
        except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError) as error:
            raise damaged("its archive can't be read") from error
        if len(entries) > _PARTS:
            raise too_large(f"It has {len(entries):,} parts")
        self._entries = {entry.filename: entry for entry in entries}
        self._read = 0

    @property
    def names(self) -> list[str]:
        return list(self._entries)

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def read(self, name: str) -> bytes:
        """The bytes of a part."""
        entry = self._entries.get(name)
        if entry is None:
            raise damaged(f"its part {name} is missing")
        if entry.flag_bits & 1:
            raise RejectedInput("encrypted", "It is protected by a password.", "Save it without one.")
        self._read += entry.file_size
        swollen = entry.file_size > _LEAST_RATED and entry.file_size > _RATIO * max(1, entry.compress_size)
        if entry.file_size > _PART_BYTES or self._read > _TOTAL_BYTES or swollen:
            raise too_large(f"Its part {name} has {entry.file_size:,} bytes when it is unpacked")
        try:
            # never more than was declared, whatever the packed bytes hold
            return self._zip.read(entry)
        except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, OSError) as error:
            raise damaged(f"its part {name} can't be unpacked") from error

    @property
    def unpacked(self) -> int:
        """The size of all parts as they are declared, in bytes."""
        return sum(entry.file_size for entry in self._entries.values())

    def check(self, name: str) -> None:
        """Raises RejectedInput where a part says that it declares entities, which only bombs and spies do."""
        entry = self._entries[name]
        if entry.flag_bits & 1:
            raise RejectedInput("encrypted", "It is protected by a password.", "Save it without one.")
        try:
            with self._zip.open(entry) as part:
                opening = part.read(_OPENING)
        except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, OSError) as error:
            raise damaged(f"its part {name} can't be unpacked") from error
        if _declares_entities(opening):
            raise hostile(name)

    def xml(self, name: str) -> etree._Element:
        """The root element of a part."""
        return parsed(self.read(name), name)

    def related(self, name: str) -> dict[str, tuple[str, str]]:
        """What a part of an Office file refers to: by id the kind of the relation and the part, or the address."""
        folder, base = posixpath.split(name)
        relations = posixpath.join(folder, "_rels", f"{base}.rels")
        if relations not in self:
            return {}
        out: dict[str, tuple[str, str]] = {}
        for relation in self.xml(relations).iter("{*}Relationship"):
            target = relation.get("Target", "")
            if relation.get("TargetMode") != "External":
                target = posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
            out[relation.get("Id", "")] = relation.get("Type", "").rpartition("/")[2], target
        return out


def parsed(data: bytes, name: str) -> etree._Element:
    """The root element of an XML document. Raises RejectedInput: "damaged", "hostile"."""
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, dtd_validation=False, huge_tree=False
    )
    if _declares_entities(data):
        raise hostile(name)
    try:
        return etree.fromstring(data, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise damaged(f"its part {name} is no sound XML") from error


def _declares_entities(data: bytes) -> bool:
    # also in UTF-16
    return b"<!ENTITY" in data or b"<\0!\0E\0N\0T\0I\0T\0Y" in data


def hostile(name: str) -> RejectedInput:
    return RejectedInput(
        "hostile", f"Its part {name} declares entities, which no office program writes.", "Save it anew with one."
    )


def damaged(why: str) -> RejectedInput:
    return RejectedInput(
        "damaged", f"It is damaged: {why}.", "Open it with the program that wrote it and save it anew."
    )


def too_large(what: str) -> RejectedInput:
    return RejectedInput("too_large", f"{what}, more than is safe to read.", "Split it.")
