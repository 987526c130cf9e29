"""What kind of file this is, by name and by content."""

from __future__ import annotations

import re
from os.path import splitext

from onrecord.errors import RejectedInput

MARKDOWN, HTML, PLAIN = "text/markdown", "text/html", "text/plain"

_BY_EXTENSION = {
    **dict.fromkeys((".md", ".markdown", ".mdown"), MARKDOWN),
    **dict.fromkeys((".html", ".htm", ".xhtml"), HTML),
    **dict.fromkeys((".txt", ".text", ".log"), PLAIN),
}
_NOT_READ = frozenset(
    """
    .pdf .doc .docx .docm .dot .dotx .ppt .pptx .pptm .xls .xlsx .xlsm .xlsb .odt .ods .odp .rtf .pages .numbers
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
_HTML_START = re.compile(
    rb"\s*(<\?xml[^>]{0,256}>\s*)?(<!--.{0,4096}?-->\s*)*(<!doctype\s+html|<html[\s>])", re.I | re.S
)


def supported(name: str) -> bool:
    """Whether the name alone says that `parse` reads it. Other names may still hold text: parse tries them."""
    return splitext(name)[1].lower() in _BY_EXTENSION


def media_type(data: bytes, name: str) -> str:
    """The media type to parse a file as.

    Raises RejectedInput: "unsupported" for the extension of a format that isn't read, "binary" for its content.
    """
    extension = splitext(name)[1].lower()
    if extension in _NOT_READ:
        hint = "Convert it to Markdown, HTML or text."
        raise RejectedInput("unsupported", f"Files of the type {extension} are not read.", hint)
    for magic, what in _MAGIC:
        if data.startswith(magic):
            raise RejectedInput(
                "binary", f"It is {what}, whatever its name says.", "Convert it to Markdown, HTML or text."
            )
    if _HTML_START.match(data[:8192].lstrip(b"\xef\xbb\xbf")):
        return HTML
    return _BY_EXTENSION.get(extension, PLAIN)
