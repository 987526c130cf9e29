"""What a page's own style sheets hide: elements that a rule gives `display: none` or `visibility: hidden`.

Rules are parsed by tinycss2. Selectors of names, classes and ids count, alone or inside one another; what depends on
more (states, siblings, attributes) never matches, so that it hides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import tinycss2
from tinycss2.ast import AtRule, Declaration, HashToken, IdentToken, LiteralToken, Node, QualifiedRule, WhitespaceToken

from onrecord.parse import tree

_MOST_CHARS = 500_000
_MOST_RULES = 2_000
_MOST_STEPS = 8
_DEEPEST = 8  # at-rules inside one another
_SCREEN = frozenset("screen all".split())


@dataclass(frozen=True, slots=True)
class _Compound:
    """`div.note#top`: all of it has to fit one element."""

    name: str = ""
    id: str = ""
    classes: frozenset[str] = frozenset()

    def fits(self, name: str, own: str, classes: frozenset[str]) -> bool:
        return (not self.name or self.name == name) and (not self.id or self.id == own) and self.classes <= classes

    @property
    def weight(self) -> tuple[int, int, int]:
        return bool(self.id), len(self.classes), bool(self.name)


@dataclass(frozen=True, slots=True)
class _Rule:
    """Compounds inside one another, innermost last. `hides` False: the rule shows what another one hid."""

    steps: tuple[_Compound, ...]
    hides: bool
    rank: tuple[bool, int, int, int, int]


def hide(root: tree.Node, source: str) -> None:
    """Marks the elements that the style sheets inside the page hide. Linear in the page for a given sheet."""
    rules = _Rules(_rules(_sheets(root, source)))
    if not rules:
        return
    above: list[tuple[str, str, frozenset[str]]] = []
    todo: list[tree.Node | None] = [root]
    while todo:
        node = todo.pop()
        if node is None:
            above.pop()
            continue
        if node.name == "#text" or node.hidden:
            continue
        given = node.attributes if node.raw else {}
        above.append((node.name, given.get("id", ""), frozenset(given.get("class", "").split())))
        node.hidden = rules.hide(above)
        todo.append(None)
        todo.extend(reversed(node.children))


class _Rules:
    """Rules by what their innermost compound asks for, so that few are tried on an element."""

    def __init__(self, rules: Iterable[_Rule]) -> None:
        self._by: dict[str, list[_Rule]] = {}
        for rule in rules:
            last = rule.steps[-1]
            key = f"#{last.id}" if last.id else f".{min(last.classes)}" if last.classes else last.name
            self._by.setdefault(key, []).append(rule)

    def __bool__(self) -> bool:
        return any(rule.hides for rules in self._by.values() for rule in rules)

    def hide(self, path: list[tuple[str, str, frozenset[str]]]) -> bool:
        name, own, classes = path[-1]
        keys = (name, f"#{own}", *(f".{c}" for c in classes))
        fitting = [rule for key in keys for rule in self._by.get(key, ()) if _fits(rule.steps, path)]
        return max(fitting, key=lambda rule: rule.rank).hides if fitting else False


def _fits(steps: tuple[_Compound, ...], path: list[tuple[str, str, frozenset[str]]]) -> bool:
    if not steps[-1].fits(*path[-1]):
        return False
    left = len(steps) - 1
    for element in reversed(path[:-1]):
        if not left:
            break
        left -= steps[left - 1].fits(*element)
    return not left


# ---------------------------------------------------------------- reading style sheets


def _sheets(root: tree.Node, source: str) -> Iterator[str]:
    """The page's style elements, up to a cap."""
    left = _MOST_CHARS
    todo = [root]
    while todo and left > 0:
        node = todo.pop()
        if node.name == "style":
            media = node.attributes.get("media", "all").lower()
            if not _SCREEN.isdisjoint(media.replace(",", " ").split()):
                text = "".join(source[child.start : child.end] for child in node.children)[:left]
                left -= len(text)
                yield text
        todo.extend(reversed(node.children))


def _rules(sheets: Iterable[str]) -> list[_Rule]:
    out: list[_Rule] = []
    for sheet in sheets:
        _read(tinycss2.parse_stylesheet(sheet, skip_comments=True, skip_whitespace=True), out, 0)
    return out[:_MOST_RULES]


def _read(nodes: Iterable[Node], out: list[_Rule], depth: int) -> None:
    for node in nodes:
        if len(out) >= _MOST_RULES:
            return
        if isinstance(node, AtRule) and node.lower_at_keyword == "media" and node.content and depth < _DEEPEST:
            words = {token.lower_value for token in node.prelude if isinstance(token, IdentToken)}
            if words <= _SCREEN:  # a condition may hold or not; what it hides may be seen
                _read(tinycss2.parse_rule_list(node.content, True, True), out, depth + 1)
        elif isinstance(node, QualifiedRule):
            hides, important = _effect(tinycss2.parse_blocks_contents(node.content, True, True))
            if hides is not None:
                for steps in _selectors(node.prelude):
                    weight = tuple(map(sum, zip(*(step.weight for step in steps), strict=True)))
                    out.append(_Rule(steps, hides, (important, weight[0], weight[1], weight[2], len(out))))


def _effect(declarations: Iterable[Node]) -> tuple[bool | None, bool]:
    """Whether declarations hide, show, or neither; and whether that is important."""
    hides, important = None, False
    for declared in declarations:
        if not isinstance(declared, Declaration) or declared.lower_name not in ("display", "visibility"):
            continue
        words = [token.lower_value for token in declared.value if isinstance(token, IdentToken)]
        hides = bool(hides) or words in (["none"], ["hidden"], ["collapse"])
        important = important or declared.important
    return hides, important


def _selectors(prelude: Iterable[Node]) -> Iterator[tuple[_Compound, ...]]:
    """The selectors of a rule that are understood."""
    part: list[Node] = []
    for token in [*prelude, LiteralToken(0, 0, ",")]:
        if _is(token, ","):
            steps = _steps(part)
            if steps:
                yield steps
            part = []
        else:
            part.append(token)


def _steps(tokens: list[Node]) -> tuple[_Compound, ...] | None:
    """Compounds parted by white space; None where anything else is among them."""
    steps: list[_Compound] = []
    compound, dot = _Compound(), False
    for token in [*tokens, WhitespaceToken(0, 0, " ")]:
        if dot:
            if not isinstance(token, IdentToken):
                return None
            compound = replace(compound, classes=compound.classes | {token.value})
            dot = False
        elif isinstance(token, WhitespaceToken):
            steps += [compound] if compound != _Compound() else []
            compound = _Compound()
        elif isinstance(token, IdentToken) and compound == _Compound():
            compound = _Compound(name=token.lower_value)
        elif isinstance(token, HashToken) and token.is_identifier and not compound.id:
            compound = replace(compound, id=token.value)
        elif _is(token, "."):
            dot = True
        else:
            return None
    return tuple(steps) if 0 < len(steps) <= _MOST_STEPS else None


def _is(token: Node, sign: str) -> bool:
    return isinstance(token, LiteralToken) and token.value == sign
