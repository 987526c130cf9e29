"""CSS selectors as far as they can be told without running a page: names, ids, classes, attributes and ancestors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tinycss2.ast import HashToken, IdentToken, LiteralToken, Node, SquareBracketsBlock, WhitespaceToken

Specificity = tuple[int, int, int]
_CHILD = ">"
_PSEUDO_ELEMENTS = frozenset(["before", "after", "first-line", "first-letter"])


@dataclass(slots=True)
class Compound:
    """What one element must be: `p.note#x[lang]`. `joint`: `>` for a child of the one before, else anywhere below."""

    joint: str = ""
    tag: str = ""
    ids: set[str] = field(default_factory=set)
    classes: set[str] = field(default_factory=set)
    attributes: dict[str, str | None] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """What an element must have for the compound to be looked at: an id, a class, a name, or anything."""
        if self.ids:
            return "#" + min(self.ids)
        return "." + min(self.classes) if self.classes else self.tag or "*"

    def fits(self, tag: str, given: Mapping[str, str], classes: frozenset[str]) -> bool:
        return (
            self.tag in ("", tag)
            and self.classes <= classes
            and all(given.get("id") == wanted for wanted in self.ids)
            and all(
                name in given and (value is None or given[name] == value) for name, value in self.attributes.items()
            )
        )


@dataclass(slots=True)
class Selector:
    """Compounds from the outermost to the element itself. `vague`: it asks for more than that, so it may not match."""

    compounds: list[Compound]
    vague: bool
    specificity: Specificity


def keys(tag: str, given: Mapping[str, str], classes: frozenset[str]) -> Iterator[str]:
    """The keys of all compounds that an element could fit."""
    yield tag
    yield "*"
    if "id" in given:
        yield "#" + given["id"]
    for name in classes:
        yield "." + name


def selectors(prelude: Sequence[Node]) -> Iterator[Selector]:
    """The selectors of a rule; those of pseudo-elements, which are no elements of the page, are left out."""
    start = 0
    for at in (*(i for i, part in enumerate(prelude) if part == ","), len(prelude)):
        if found := _selector([part for part in prelude[start:at] if part.type != "comment"]):
            yield found
        start = at + 1


def _selector(parts: Sequence[Node]) -> Selector | None:
    compounds: list[Compound] = []
    now: Compound | None = None
    vague, pseudos, joint, before = False, 0, "", ""
    for part in parts:
        sign = part.value if isinstance(part, LiteralToken) else ""
        if isinstance(part, WhitespaceToken) or sign in ("+", "~", _CHILD):
            joint = sign or joint or " "
            vague = vague or sign in ("+", "~")
            now, before = None, ""
            continue
        if now is None:
            now = Compound(joint if compounds else "")
            vague = vague or (not compounds and joint.strip() != "")  # of a nested rule
            compounds.append(now)
            joint = ""
        if before == ":" and (sign == ":" or getattr(part, "lower_value", "") in _PSEUDO_ELEMENTS):
            return None
        if before == ":":
            vague, pseudos = True, pseudos + 1
        elif isinstance(part, IdentToken) and before == ".":
            now.classes.add(part.value)
        elif isinstance(part, IdentToken):
            now.tag = part.lower_value
        elif isinstance(part, HashToken):
            now.ids.add(part.value)
        elif isinstance(part, SquareBracketsBlock):
            vague = not _attribute(part.content, now) or vague
        else:
            vague = vague or sign not in (".", ":", "*")
        before = sign
    if not compounds:
        return None
    ids = sum(len(c.ids) for c in compounds)
    middle = sum(len(c.classes) + len(c.attributes) for c in compounds) + pseudos
    return Selector(compounds, vague, (ids, middle, sum(bool(c.tag) for c in compounds)))


def _attribute(content: Sequence[Node], compound: Compound) -> bool:
    """`[name]` or `[name=value]`; False for what asks for something else."""
    given = [part for part in content if part.type not in ("whitespace", "comment")]
    if not given or not isinstance(given[0], IdentToken):
        return False
    name = given[0].lower_value
    compound.attributes[name] = None
    if len(given) == 3 and given[1] == "=" and given[2].type in ("ident", "string"):
        compound.attributes[name] = given[2].value
        return True
    return len(given) == 1
