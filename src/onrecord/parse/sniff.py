"""What kind of file this is, by name and by content."""

from __future__ import annotations

import re
from io import BytesIO
from os.path import splitext
from zipfile import BadZipFile, ZipFile

from onrecord.errors import RejectedInput

MARKDOWN, HTML, PLAIN = "text/markdown", "text/html", "text/plain"
CSV, TSV = "text/csv", "text/tab-separated-values"
EXCEL = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
OLD_EXCEL = "application/vnd.ms-excel"
BINARY_EXCEL = "application/vnd.ms-excel.sheet.binary.macroenabled.12"
WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
ODF_SHEET = "application/vnd.oasis.opendocument.spreadsheet"

_BY_EXTENSION = {
    **dict.fromkeys((".md", ".markdown", ".mdown"), MARKDOWN),
    **dict.fromkeys((".html", ".htm", ".xhtml"), HTML),
    **dict.fromkeys((".txt", ".text", ".log"), PLAIN),
    ".csv": CSV,
    **dict.fromkeys((".tsv", ".tab"), TSV),
}
_OFFICE = frozenset((".xlsx", ".xlsm", ".xls", ".xlsb", ".ods", ".docx", ".docm", ".dotx"))
_NOT_READ = frozenset(
    """
    .pdf .doc .dot .ppt .pptx .pptm .odt .odp .rtf .pages .numbers
    .key .epub .mobi .djvu .ps .eml .msg .mbox .ipynb .parquet .sqlite .db .zip .tar .gz .tgz .bz2 .xz .zst .7z .rar
    .jar .png .jpg .jpeg .gif .bmp .tif .tiff .webp .heic .ico .svg .mp3 .wav .ogg .flac .mp4 .mov .avi .mkv .webm
    .woff .woff2 .ttf .otf .exe .dll .so .dylib .o .a .class .pyc .wasm .bin .iso .dmg .p7s .p7m
    """.split()
)
_MAGIC = (
    (b"%PDF-", "a PDF"),
    (b"PK\x03\x04", "a ZIP archive or an Office document"),
    (b"PK\x05\x06", "an empty ZIP archive"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office document"),
    (b"{\\rtf", "a rich text document"),
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF87a", "a GIF image"),
    (b"GIF89a", "a GIF image"),
    (b"\x7fELF", "a program"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ\x00", "an xz archive"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"\x00asm", "a WebAssembly module"),
    (b"\xca\xfe\xba\xbe", "a program"),
    (b"PAR1", "a Parquet file"),
)
# What makes an archive a file of that kind.
_PARTS = {
    "word/document.xml": WORD,
    "word/document2.xml": WORD,
    "xl/workbook.xml": EXCEL,
    "xl/workbook.bin": BINARY_EXCEL,
}
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_CONVERT = "Convert it to Markdown, HTML or text."
_HTML_START = re.compile(
    rb"\s*(<\?xml[^>]{0,256}>\s*)?(<!--.{0,4096}?-->\s*)*(<!doctype\s+html|<html[\s>])", re.I | re.S
)


def supported(name: str) -> bool:
    """Whether the name alone says that `parse` reads it. Other names may still hold text: parse tries them."""
    extension = splitext(name)[1].lower()
    return extension in _BY_EXTENSION or extension in _OFFICE


def media_type(data: bytes, name: str) -> str:
    """The media type to parse a file as.

    Raises RejectedInput: "unsupported" for the extension of a format that isn't read, "binary" for its content,
    "damaged" for an Office file's name with other content, "encrypted" for an Office file with a password.
    """
    extension = splitext(name)[1].lower()
    if extension in _NOT_READ:
        hint = _CONVERT
        raise RejectedInput("unsupported", f"Files of the type {extension} are not read.", hint)
    if office := _office(data):
        return office
    if extension in _OFFICE:
        hint = "Open it with the program that wrote it and save it anew."
        raise RejectedInput("damaged", f"It is no {extension} file, whatever its name says, or damaged.", hint)
    for magic, what in _MAGIC:
        if data.startswith(magic):
            raise RejectedInput("binary", f"It is {what}, whatever its name says.", _CONVERT)
    if _HTML_START.match(data[:8192].lstrip(b"\xef\xbb\xbf")):
        return HTML
    return _BY_EXTENSION.get(extension, PLAIN)


def _office(data: bytes) -> str:
    """The media type of an Office file, by what is in it; empty for anything else."""
    if data.startswith(_OLE):
        if _utf16("EncryptedPackage") in data:
            raise RejectedInput("encrypted", "It is protected by a password.", "Save it without one.")
        return OLD_EXCEL if _utf16("Workbook") in data or _utf16("Book\0") in data else ""
    if not data.startswith(b"PK\x03\x04"):
        return ""
    if ODF_SHEET.encode() in data[:200]:
        return ODF_SHEET
    try:
        names = set(ZipFile(BytesIO(data)).namelist())
    except (BadZipFile, ValueError, NotImplementedError, OSError):
        # a torn one may still say in its first parts what it was to be
        return next((kind for part, kind in _PARTS.items() if part.encode() in data), "")
    return next((kind for part, kind in _PARTS.items() if part in names), "")


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-le")
