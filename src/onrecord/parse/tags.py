"""HTML as a stream of tokens with exact offsets, read leniently as browsers do, in linear time.

One scanner serves whole pages and the scraps of HTML inside Markdown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from html import unescape
from typing import Literal, NamedTuple

VOID = frozenset(
    """
    area base br col embed hr img input link meta param source track wbr keygen frame basefont
    """.split()
)
BLOCKS = frozenset(
    """
    address article aside blockquote body center dd details dialog dir div dl dt fieldset figcaption figure footer
    form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu nav ol optgroup option p pre search section
    summary table tbody td tfoot th thead tr caption ul
    """.split()
)
_OTHERS = frozenset(
    """
    a abbr acronym applet audio b bdi bdo big blink button canvas cite code colgroup data datalist del dfn em font
    frameset head i iframe image ins kbd label map mark marquee math meter nobr noembed noframes noscript object
    output picture plaintext portal progress q rb rp rt rtc ruby s samp script select slot small span strike strong
    style sub sup svg template textarea time title tt u var video xmp
    """.split()
)
KNOWN = VOID | BLOCKS | _OTHERS
# these hold text only, no tags
_RAW = frozenset("script style textarea title xmp iframe noembed noframes".split())

_TAG = re.compile(r"<(?:(?P<open>[a-zA-Z][^\s/>]*)|/(?P<close>[a-zA-Z][^\s/>]*)|(?P<odd>[!?]|/(?=[^>])))")
_TAG_END = re.compile(r"""(?>[^>"'=]++|=\s*+"[^"]*+"|=\s*+'[^']*+'|["'=])*+>""")
_ATTRIBUTE = re.compile(r"""([^\s"'<>/=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'=<>`]+)))?""")
_MAY_HIDE = re.compile(r"hidden|style|type", re.IGNORECASE)
_HIDING_STYLE = re.compile(r"display:none|visibility:hidden|font-size:0(?:px|pt|em|rem|%)?(?:;|!|$)")
_INVISIBLE = frozenset(
    """
    script style template noscript svg head iframe object applet canvas audio video noembed noframes select datalist rp
    annotation annotation-xml title area base col colgroup embed link meta param source track img image map xmp
    """.split()
)


class Token(NamedTuple):
    """`start` and `end` are code points of the scanned text; `attributes` is the raw text after a tag's name."""

    kind: Literal["open", "close", "text", "comment"]
    name: str
    start: int
    end: int
    attributes: str = ""


def scan(text: str, xml: bool = False, is_text: Callable[[str], bool] | None = None) -> Iterator[Token]:
    """The tokens of an HTML text, in order and without gaps.

    `xml`: CDATA is text and a raw element may close itself. `is_text` says of a tag's raw text that it is no tag
    after all. The content of a script, a style, a title is one text token.
    """
    at = plain = 0
    last = text.rfind(">")
    lenient = False
    while found := _TAG.search(text, at):
        start = found.start()
        if last < found.end():
            break  # no tag can end any more
        if found["odd"]:
            at, kind = _odd_end(text, start, xml)
            if plain < start:
                yield Token("text", "", plain, start)
            if kind == "text":
                yield Token("text", "", start + 9, max(start + 9, at - 3))
            else:
                yield Token("comment", "", start, at)
            plain = at
            continue
        closed = None if lenient else _TAG_END.match(text, found.end())
        if closed is None:
            lenient = True  # a quote that nothing closes: from here on a tag ends at the next >, or time is quadratic
        at = closed.end() if closed else text.index(">", found.end()) + 1
        if is_text and is_text(text[start:at]):
            continue
        if plain < start:
            yield Token("text", "", plain, start)
        plain = at
        if found["close"]:
            yield Token("close", found["close"].lower(), start, at)
            continue
        name, attributes = found["open"].lower(), text[found.end() : at - 1]
        yield Token("open", name, start, at, attributes)
        if name in _RAW and not (xml and attributes.endswith("/")):
            end = _raw_end(text, name, at)
            if at < end:
                yield Token("text", "", at, end)
            at = plain = end
    if plain < len(text):
        yield Token("text", "", plain, len(text))


def _odd_end(text: str, start: int, xml: bool) -> tuple[int, str]:
    """Where a comment, declaration or processing instruction ends; kind "text" for the CDATA of XML."""
    if text.startswith("<!--", start):
        if text.startswith((">", "->"), start + 4):
            return text.index(">", start) + 1, "comment"
        end = text.find("-->", start + 4)
        return (end + 3 if end >= 0 else len(text)), "comment"
    if xml and text.startswith("<![CDATA[", start):
        end = text.find("]]>", start)
        return (end + 3, "text") if end >= 0 else (len(text), "comment")
    end = text.find(">", start)
    return (end + 1 if end >= 0 else len(text)), "comment"


def _raw_end(text: str, name: str, at: int) -> int:
    found = re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE).search(text, at)
    return found.start() if found else len(text)


def attributes(raw: str) -> dict[str, str]:
    """The attributes of a tag, names in lower case, entities decoded; the first of a name counts."""
    out: dict[str, str] = {}
    for name, double, single, bare in _ATTRIBUTE.findall(raw):
        out.setdefault(name.lower(), unescape(double or single or bare))
    return out


def hides(name: str, raw_attributes: str) -> bool:
    """Whether a reader sees nothing of an element: by its name, or hidden by an attribute or its own style."""
    if name in _INVISIBLE:
        return True
    if name != "dialog" and not _MAY_HIDE.search(raw_attributes):
        return False
    given = attributes(raw_attributes)
    if "hidden" in given or given.get("aria-hidden", "").strip().lower() == "true":
        return True
    if name == "dialog" and "open" not in given:
        return True
    if name == "input" and given.get("type", "").strip().lower() == "hidden":
        return True
    style = re.sub(r"/\*.*?\*/|\s", "", given.get("style", ""), flags=re.DOTALL).lower()
    return _HIDING_STYLE.search(style) is not None
