"""HTML pages: what a reader sees of the content as a text of its own, tied to the page's source by runs."""

from __future__ import annotations

from html import unescape

from onrecord.parse.outline import Outline, encloses_content, is_boilerplate
from onrecord.parse.page import Page
from onrecord.parse.styles import hide
from onrecord.parse.tags import scan
from onrecord.parse.tree import Node, build
from onrecord.types import Run, Section

_MAIN_SHARE = 1 / 3


def html(source: str, xml: bool = False) -> tuple[str, tuple[Section, ...], tuple[Run, ...], str]:
    """The readable text of a page, its sections, the runs that tie it to the source, and its title ("": none).

    Only the main part is taken where the page marks one that holds at least a third of what is visible. Navigation
    and the page's own header, footer and asides are left out, unless nothing is left then. Hidden elements, also
    those that the page's own style sheets hide, scripts and styles never show.
    """
    root = build(source, scan(source, xml))
    hide(root, source)
    main = _main(root, source)
    page = Page(source)
    Outline(page, everything=False, inside=int(main is not root), h1s=root.has_h1).walk(main)
    if page.is_empty():
        page = Page(source)
        Outline(page, everything=True).walk(root)
    text, sections, runs = page.finish()
    title = _words(root.title, source) if root.title else ""
    return text, sections, runs, title or page.first_h1


def _main(root: Node, source: str) -> Node:
    """The main element or the only article, where it holds enough of what is visible; else the root."""
    mains: list[tuple[int, Node]] = []
    articles: list[tuple[int, Node]] = []
    seen = inside = 0
    todo: list[Node | tuple[Node, int]] = [root]
    while todo:
        item = todo.pop()
        if isinstance(item, tuple):
            node, before = item
            inside -= encloses_content(node.name)
            if node.name == "main" or ("role" in node.raw and node.attributes.get("role") == "main"):
                mains.append((seen - before, node))
            elif node.name == "article":
                articles.append((seen - before, node))
        elif item.name == "#text":
            seen += len("".join(source[item.start : item.end].split()))
        elif not item.hidden and not is_boilerplate(item, inside, root.has_h1):
            inside += encloses_content(item.name)
            todo.append((item, seen))
            todo.extend(reversed(item.children))
    for size, node in [max(mains, key=lambda found: found[0])] if mains else articles if len(articles) == 1 else []:
        if size and size >= _MAIN_SHARE * seen:
            return node
    return root


def _words(node: Node, source: str) -> str:
    return " ".join(unescape("".join(source[child.start : child.end] for child in node.children)).split())
