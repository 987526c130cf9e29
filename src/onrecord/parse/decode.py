"""From bytes to text without guessing silently: byte order marks, strict UTF-8, declarations, then detection.

A file is never mended. A stray byte read as U+FFFD would be quoted though it isn't in the file, and no span after it
would lead back to the file's bytes, so what is nearly UTF-8 is turned away with the place of its first stray byte.
"""

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
_NUL_SHARE = 0.7
_SAMPLE = 1 << 18
_WEST = "cp1252"
_MESS = 0.1
_DECLARED = re.compile(
    rb"""<meta[^>]{0,512}?charset\s*=\s*["']?\s*([\w.:-]+)|^\s*<\?xml[^>]{0,256}?encoding\s*=\s*["']([\w.:-]+)""", re.I
)
_PLAIN_CODEC = re.compile(
    r"(iso|windows|cp|ibm|koi8|shift|s.?jis|x-sjis|euc|gb|hz|big5|mac|latin|l\d|us-ascii|ascii|ks_c|tis|johab|ms)[\w.:-]*",
    re.I,
)
_WESTERN = frozenset("àáâãäåæçèéêëìíîïñòóôõöøùúûüÿßœšžÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜŸŒŠŽ")
_WESTERN_SIGNS = frozenset("€‚„…‰‹›‘’“”•–—™\u00a0¡¢£¥§©ª«®°±²³´µ¶·¹º»¼½¾¿×÷\u00ad")
_ODD = re.compile(r"[^\W\d_][¡¢£¤¥¦§¨©ª«¬®¯°±²³´¶¸¹º»¼½¾¿×÷][^\W\d_]")
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")
_STRAY = re.compile("[\udc80-\udcff]")
# What two bytes of another encoding make by accident and no text holds: controls, phonetic and seldom written letters.
_RARE = re.compile("[\x80-\x9f\u0180-\u036f\u0500-\u058f\u0700-\u08ff\ue000-\uf8ff\ufffe\uffff]")
_PACKED = re.compile("(?<=[\u00c0-\u00ff\u00a7])[\u00a1-\u00ff]")
_MIXED = re.compile("[A-Za-z][\u0370-\u0e7f]|[\u0370-\u0e7f][A-Za-z]")
_TOGGLED = re.compile("[\u0430-\u044f][\u0410-\u042f]|[\u03b1-\u03c9][\u0391-\u03a9]")
_ESCAPES = re.compile(rb"\x1b\$[@B]")
# Others are found by accident more often than they are used.
_COMMON = re.compile(
    r"cp125[0-8]|iso8859-(1|2|5|7|9|15)|koi8-[ru]|cp866|cp874|tis-620|cp932|shift-jis(-2004|x0213)?|euc-jp"
    r"|euc-jis-2004|euc-jisx0213|iso2022-jp|gb2312|gbk|gb18030|big5|cp950|big5hkscs|euc-kr|cp949"
)
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
    if b"\0" in data:
        return _wide(data)
    if len(data) - len(data.translate(None, _CONTROL)) > _CONTROL_SHARE * len(data):
        raise _binary()
    for name in (*(("iso2022_jp",) if _ESCAPES.search(data) else ()), "utf-8"):
        text = _strictly(data, name)
        if text is not None and encode(text, name) == data:
            return _checked(text), name
    _turn_away_strays(data)
    for name in _declared(data) if html else ():
        text = _strictly(data, name)
        if text is not None and _fits(text) and encode(text, name) == data:
            return _checked(text), name
    return _detected(data)


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


def _wide(data: bytes) -> tuple[str, str]:
    """UTF-16 without a byte order mark: every other byte is often NUL, the ones between never. Raises RejectedInput."""
    even, odd = data[::2].count(0), data[1::2].count(0)
    name = "utf-16-be" if even else "utf-16-le"
    text = _strictly(data, name) if not min(even, odd) and max(even, odd) > _NUL_SHARE * len(data) / 2 else None
    if text is not None and not _RARE.search(text):
        return _checked(text), name
    raise _binary()


def _turn_away_strays(data: bytes) -> None:
    """Raises RejectedInput for UTF-8 with stray bytes, which any other reading would turn into wrong letters.

    It is that where no fewer characters beyond ASCII are whole than bytes are stray, or where some are whole and the
    strays all make sense as Western letters and signs: two files put together.
    """
    try:
        data.decode("utf-8")
        return
    except UnicodeDecodeError as error:
        first = error.start
    around = data[max(0, first - _SAMPLE) : first + _SAMPLE].decode("utf-8", "surrogateescape")
    strays = len(_STRAY.findall(around))
    whole = sum(not _RARE.match(sign) for sign in _BEYOND_ASCII.findall(around)) - strays
    apart = _BEYOND_ASCII.sub(_as_western, around)
    if whole and (whole >= strays or _is_western(apart)):
        line = data.count(b"\n", 0, first) + 1
        raise RejectedInput(
            "encoding",
            f"It is UTF-8, but for some bytes: the first is 0x{data[first]:02X}, byte {first + 1:,} of the file, "
            f"in line {line:,}.",
            "Correct it there and save it as UTF-8.",
        )


def _as_western(found: re.Match[str]) -> str:
    sign = found.group()
    if _STRAY.match(sign):
        return bytes([ord(sign) - 0xDC00]).decode(_WEST, "replace")
    return sign if _RARE.match(sign) else "x"


def _fits(text: str) -> bool:
    """Whether a text looks like one: no words of two alphabets, with signs or capitals in the middle of them."""
    beyond = _BEYOND_ASCII.findall(text)
    packed = len(_PACKED.findall(text))
    odd = sum(len(sign.findall(text)) for sign in (_ODD, _MIXED, _TOGGLED))
    return odd <= 0.05 * len(beyond) and packed <= 0.4 * len(beyond)


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
    matches = list(charset_normalizer.from_bytes(sample, preemptive_behaviour=False))
    western = _strictly(data, _WEST)
    if western is not None and _is_western(western) and _is_as_good(matches):
        return _checked(western), _WEST
    for match in matches:
        name = match.encoding.replace("_", "-")
        text = _strictly(data, name) if match.chaos <= _MESS and _COMMON.fullmatch(name) else None
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
    if _ODD.search(text) or not _fits(text):
        return False
    han, kana = len(_HAN.findall(text)), len(_KANA.findall(text))
    japanese = name.startswith(("euc-ji", "euc-jp", "shift-ji", "cp932", "iso2022-jp"))
    return not han or (kana > 0.1 * han) == japanese


def _binary() -> RejectedInput:
    return RejectedInput("binary", "It is not a text file.", "Give the document itself, or save it as UTF-8 text.")


def _undecodable(why: str) -> RejectedInput:
    return RejectedInput("encoding", why, "Save it as UTF-8.")
