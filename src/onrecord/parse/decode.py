"""From bytes to text without guessing silently: byte order marks, strict UTF-8, declarations, then detection."""

from __future__ import annotations

import codecs
import re

import charset_normalizer

from onrecord.errors import RejectedInput
from onrecord.spans import encode

_MARKS = (  # UTF-32 first: its little-endian mark begins with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CONTROL = bytes({*range(1, 9), 14, 15, *range(16, 27), 28, 29, 30, 31, 127})  # without tab, line ends, FF, ESC
_CONTROL_SHARE = 0.03
_BEYOND_ASCII = bytes(range(0x80, 0x100))
_SEQUENCE = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_SAMPLE = 1 << 18
_WEST = "cp1252"
_MESS = 0.1
_DECLARED = re.compile(
    rb"""<meta[^>]{0,512}?charset\s*=\s*["']?\s*([\w.:-]+)|^\s*<\?xml[^>]{0,256}?encoding\s*=\s*["']([\w.:-]+)""", re.I
)
# UTF was tried strictly before; nobody writes the old Macintosh encodings, which differ from common ones in few letters
_NEVER = ("utf", "mac")
_PLAIN_CODEC = re.compile(
    r"(iso|windows|cp|ibm|koi8|shift|s.?jis|x-sjis|euc|gb|hz|big5|mac|latin|l\d|us-ascii|ascii|ks_c|tis|johab|ms)[\w.:-]*",
    re.I,
)
_WESTERN = frozenset("àáâãäåæçèéêëìíîïñòóôõöøùúûüÿßœšžÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜŸŒŠŽ")
_WESTERN_SIGNS = frozenset("€‚„…‰‹›‘’“”•–—™\u00a0¡¢£¥§©ª«®°±²³´µ¶·¹º»¼½¾¿×÷\u00ad")
_ODD = re.compile(r"[^\W\d_][¡¢£¤¥¦§¨©ª«¬®¯°±²³´¶¸¹º»¼½¾¿×÷][^\W\d_]")
_KANA = re.compile("[\u3040-\u30ff]")
_HAN = re.compile("[\u4e00-\u9fff]")


def decode(data: bytes, html: bool = False) -> tuple[str, str]:
    """The text of a file and the name of its encoding, such that `spans.encode(text, encoding) == data`.

    Line ends are kept; a byte order mark is not part of the text but of the encoding's name (`-sig`).
    Raises RejectedInput: "empty", "binary" (NULs, control characters), "encoding" (nothing fits).
    """
    for mark, name in _MARKS:
        if data.startswith(mark):
            text = _strictly(data[len(mark) :], name)
            if text is None:
                raise _undecodable(f"It begins with a {name.upper()} byte order mark but isn't valid {name.upper()}.")
            return _checked(text), f"{name}-sig"
    if b"\0" in data or len(data) - len(data.translate(None, _CONTROL)) > _CONTROL_SHARE * len(data):
        raise _binary()
    for name in ("utf-8", *(_declared(data) if html else ())):
        text = _strictly(data, name)
        if text is not None and encode(text, name) == data:
            return _checked(text), name
    _check_for_strays(data)
    return _detected(data)


def _check_for_strays(data: bytes) -> None:
    """Raises RejectedInput for UTF-8 with a few bytes that aren't: read in any other encoding it would be garbled."""
    beyond_ascii = len(data) - len(data.translate(None, _BEYOND_ASCII))
    sequences = _SEQUENCE.findall(data)
    if len(sequences) > beyond_ascii - sum(map(len, sequences)):
        at = _first_stray(data)
        line = data.count(b"\n", 0, at) + 1
        raise _undecodable(f"It is UTF-8 but for some bytes, the first of which is 0x{data[at]:02x} in line {line:,}.")


def _first_stray(data: bytes) -> int:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return error.start
    return 0


def _strictly(data: bytes, name: str) -> str | None:
    try:
        return data.decode(name)
    except (UnicodeError, LookupError):
        return None


def _checked(text: str) -> str:
    if not text.strip("\ufeff\u200b \t\r\n\f\v\xa0"):
        raise RejectedInput("empty", "It holds no text, only white space.", "Check that the right file was given.")
    if "\0" in text:
        raise _binary()
    return text


def _declared(data: bytes) -> list[str]:
    """The encodings an HTML page names near its top, as browsers read the names."""
    out = []
    for found in _DECLARED.finditer(data[:4096]):
        label = (found[1] or found[2]).decode("ascii", "replace").lower()
        if not _PLAIN_CODEC.fullmatch(label):
            continue
        if label in ("iso-8859-1", "iso8859-1", "latin1", "latin-1", "us-ascii", "ascii"):
            out.append("cp1252")  # that is what the label means on the web
        try:
            out.append(codecs.lookup(label).name)
        except LookupError:
            continue
    return out


def _detected(data: bytes) -> tuple[str, str]:
    """Western European unless something else fits better, else the first plausible finding of charset-normalizer."""
    sample = data if len(data) <= _SAMPLE else data[: data.rfind(b"\n", 0, _SAMPLE) + 1 or _SAMPLE]
    matches = list(charset_normalizer.from_bytes(sample))
    western = _strictly(data, _WEST)
    if western is not None and _is_western(western) and _is_as_good(matches):
        return _checked(western), _WEST
    for match in matches:
        name = match.encoding.replace("_", "-")
        text = _strictly(data, name) if match.chaos <= _MESS and not name.startswith(_NEVER) else None
        if text is not None and _is_plausible(text, name) and encode(text, name) == data:
            return _checked(text), name
    raise _undecodable("It is neither UTF-8 nor clearly in another encoding.")


def _is_as_good(matches: list[charset_normalizer.CharsetMatch]) -> bool:
    """Whether charset-normalizer finds nothing better than Western; it lists equals by name, so cp1250 comes first."""
    ours = next((m for m in matches if _WEST in m.could_be_from_charset), None)
    if ours is None:
        return not any(m.coherence for m in matches)
    return ours.chaos <= matches[0].chaos + 0.01 and ours.coherence >= max(m.coherence for m in matches) - 0.045


def _is_western(text: str) -> bool:
    """Whether all beyond ASCII is a Western letter or a sign that isn't amid letters (an apostrophe may be)."""
    letters = packed = 0
    for found in re.finditer(r"[^\x00-\x7f]", text):
        sign = found.group()
        before, after = text[max(0, found.start() - 1) : found.start()], text[found.end() : found.end() + 1]
        if sign in _WESTERN:
            letters += 1
            packed += before in _WESTERN or after in _WESTERN
        elif sign not in _WESTERN_SIGNS or (before.isalpha() and after.isalpha() and sign not in "’·–—\u00ad…"):
            return False
    return packed <= 0.75 * letters  # other alphabets read as Western are accented through and through


def _is_plausible(text: str, name: str) -> bool:
    """No signs amid letters; kana among the Han of Japanese and of nothing else, as East Asian byte pairs overlap."""
    if _ODD.search(text):
        return False
    han, kana = len(_HAN.findall(text)), len(_KANA.findall(text))
    japanese = name.startswith(("euc-ji", "euc-jp", "shift-ji", "cp932", "iso2022-jp"))
    return not han or (kana > 0.1 * han) == japanese


def _binary() -> RejectedInput:
    return RejectedInput("binary", "It is not a text file.", "Give the document itself, or save it as UTF-8 text.")


def _undecodable(why: str) -> RejectedInput:
    return RejectedInput("encoding", why, "Save it as UTF-8.")
