"""What a page's own style sheets hide from a reader: the rules of its `<style>` elements, matched against its tree.

An element is hidden only where that is certain: by rules for a screen whatever its size, that need no pointer and no
sibling. One that any other rule could show stays. Style sheets in other files are not known.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

import tinycss2
from tinycss2.ast import AtRule, Declaration, IdentToken, ParenthesesBlock, QualifiedRule
from tinycss2.ast import Node as CssNode

from onrecord.parse.selectors import Compound, Selector, Specificity, keys, selectors
from onrecord.parse.tree import Node

_HIDING = {
    "display": frozenset({"none"}),
    "visibility": frozenset({"hidden", "collapse"}),
    "content-visibility": frozenset({"hidden"}),
}
_TELLING = re.compile(r"none|hidden|collapse|\\", re.IGNORECASE)  # a sheet without these hides nothing
_CDATA = re.compile(r"<!\[CDATA\[|\]\]>")
_MAY_HOLD = frozenset(["supports", "container", "scope", "starting-style", "document", "-moz-document"])
_NEVER_HIDDEN = frozenset(["", "html", "body"])  # a page that hides all of itself waits for a script to show it
_CHARS = 1 << 19  # beyond these limits nothing more is hidden
_SELECTORS = 4_000
_TRIES = 2_000_000
_DEPTH = 8

Rank = tuple[bool, bool, Specificity, int]  # important, in the element itself, how specific, which in order


class _Holds(IntEnum):
    """Whether a media query holds on a screen."""

    NEVER = 0
    MAYBE = 1
    ALWAYS = 2


@dataclass(frozen=True, slots=True)
class _Effect:
    name: str
    hides: bool
    rank: Rank


@dataclass(frozen=True, slots=True)
class _Step:
    """A compound of a hiding selector: sets `bit` where it is met, `needs` must be set above; the last has effects."""

    compound: Compound
    bit: int
    needs: int
    effects: tuple[_Effect, ...]


def hide(root: Node, source: str) -> None:
    """Marks the elements as hidden that the style sheets inside the page hide. Linear, within the limits above."""
    sheets = _Sheets()
    for media, text in _texts(root, source):
        sheets.read(tinycss2.parse_stylesheet(text, True, True), media, 0)
    if not sheets.steps:
        return
    tries = 0
    todo: list[tuple[Node, int, int]] = [(root, 0, 0)]
    while todo and tries < _TRIES:
        node, above, parent = todo.pop()
        if node.name == "#text" or node.hidden:
            continue
        given = node.attributes
        classes = frozenset(given.get("class", "").split())
        met = 0
        effects: list[_Effect] = []
        for key in keys(node.name, given, classes):
            for step in sheets.steps.get(key, ()):
                tries += 1
                needed = parent if step.compound.joint == ">" else above
                if step.needs & needed == step.needs and step.compound.fits(node.name, given, classes):
                    met |= step.bit
                    effects.extend(step.effects)
        if effects and node.name not in _NEVER_HIDDEN:
            for key in keys(node.name, given, classes):
                shows = sheets.shows.get(key, ())
                tries += len(shows)
                effects += [effect for compound, effect in shows if compound.fits(node.name, given, classes)]
            effects += _effects(tinycss2.parse_blocks_contents(given.get("style", ""), True, True), None, 0)
            node.hidden = _is_hidden(effects)
        if not node.hidden:
            todo.extend((child, above | met, met) for child in node.children)


def _is_hidden(effects: Sequence[_Effect]) -> bool:
    last: dict[str, _Effect] = {}
    for effect in sorted(effects, key=lambda effect: effect.rank):
        last[effect.name] = effect
    return any(effect.hides for effect in last.values())


def _texts(root: Node, source: str) -> Iterator[tuple[_Holds, str]]:
    """The style sheets that apply, in order."""
    size = 0
    todo = [root]
    while todo:
        node = todo.pop()
        if node.name != "style":
            if not node.hidden or node.name == "head":
                todo.extend(reversed(node.children))
            continue
        given = node.attributes
        media = _media(tinycss2.parse_component_value_list(given.get("media", "")))
        text = _CDATA.sub("", "".join(source[child.start : child.end] for child in node.children))
        if given.get("type", "").strip().lower() in ("", "text/css") and media and _TELLING.search(text):
            size += len(text)
            if size > _CHARS:
                return
            yield media, text


class _Sheets:
    """Hiding selectors as steps, and what shows elements, both by key."""

    def __init__(self) -> None:
        self.steps: defaultdict[str, list[_Step]] = defaultdict(list)
        self.shows: defaultdict[str, list[tuple[Compound, _Effect]]] = defaultdict(list)
        self.order = self.selectors = self.bits = 0

    def read(self, rules: Sequence[CssNode], media: _Holds, depth: int) -> None:
        for rule in rules:
            if isinstance(rule, QualifiedRule):
                self._rule(rule, media, depth)
            elif isinstance(rule, AtRule) and rule.content is not None and depth < _DEPTH:
                holds = media
                if rule.lower_at_keyword == "media":
                    holds = min(media, _media(rule.prelude))
                elif rule.lower_at_keyword in _MAY_HOLD:
                    holds = min(media, _Holds.MAYBE)
                elif rule.lower_at_keyword != "layer":
                    continue
                if holds:
                    self.read(tinycss2.parse_rule_list(rule.content, True, True), holds, depth + 1)

    def _rule(self, rule: QualifiedRule, media: _Holds, depth: int, nested: bool = False) -> None:
        content = tinycss2.parse_blocks_contents(rule.content, True, True)
        self.order += 1
        for selector in selectors(rule.prelude):
            effects = _effects(content, selector.specificity, self.order)
            self.selectors += 1
            if self.selectors > _SELECTORS or not effects:
                break
            last = selector.compounds[-1]
            self.shows[last.key] += [(last, effect) for effect in effects if not effect.hides]
            hiding = tuple(effect for effect in effects if effect.hides)
            if hiding and not (selector.vague or nested or media == _Holds.MAYBE):
                self._hide(selector, hiding)
        if depth < _DEPTH:
            for inner in content:
                if isinstance(inner, QualifiedRule):
                    self._rule(inner, media, depth + 1, nested=True)

    def _hide(self, selector: Selector, effects: tuple[_Effect, ...]) -> None:
        needs = 0
        for compound in selector.compounds:
            bit = 0 if compound is selector.compounds[-1] else 1 << self.bits
            self.bits += bit > 0
            self.steps[compound.key].append(_Step(compound, bit, needs, () if bit else effects))
            needs = bit


def _effects(content: Sequence[CssNode], specificity: Specificity | None, order: int) -> list[_Effect]:
    """What declarations say of hiding and showing; without a specificity they are an element's own."""
    out = []
    for item in content:
        if isinstance(item, Declaration) and item.lower_name in _HIDING:
            values = [token for token in item.value if token.type not in ("whitespace", "comment")]
            value = values[0].lower_value if len(values) == 1 and isinstance(values[0], IdentToken) else ""
            rank = (item.important, specificity is None, specificity or (0, 0, 0), order)
            out.append(_Effect(item.lower_name, value in _HIDING[item.lower_name], rank))
    return out


def _media(tokens: Sequence[CssNode]) -> _Holds:
    """Of several queries the best one; none at all always holds."""
    found: list[_Holds] = []
    words: list[str] = []
    conditions = False
    for part in [*tokens, None]:
        if part is None or part == ",":
            if words or conditions or not tokens:
                found.append(_query(words, conditions))
            words, conditions = [], False
        elif isinstance(part, IdentToken):
            words.append(part.lower_value)
        else:
            conditions = conditions or isinstance(part, ParenthesesBlock)
    return max(found, default=_Holds.ALWAYS)


def _query(words: Sequence[str], conditions: bool) -> _Holds:
    negated = words[:1] == ["not"]
    kinds = [word for word in words if word not in ("not", "only", "and", "or")]
    if kinds and kinds[0] not in ("screen", "all"):
        return _Holds.ALWAYS if negated else _Holds.NEVER
    if conditions:
        return _Holds.MAYBE
    return _Holds.NEVER if negated else _Holds.ALWAYS
