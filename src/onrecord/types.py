"""The values that flow through OnRecord: frozen, comparable, without I/O.

Offsets are code points. `version.text[span.start:span.end]` is always the text that a span means.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

from onrecord.errors import UsageError

Kind = Literal["prose", "list", "table", "code", "heading"]
Signals: TypeAlias = Mapping[str, float]


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A half-open range of code points."""

    start: int
    end: int

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end:
            raise ValueError(f"not a span: {self.start}..{self.end}")

    def __len__(self) -> int:
        return self.end - self.start

    def __bool__(self) -> bool:
        # an empty span is still a place
        return True

    def of(self, text: str) -> str:
        return text[self.start : self.end]

    def shift(self, by: int) -> Span:
        return Span(self.start + by, self.end + by)

    def holds(self, other: Span) -> bool:
        return self.start <= other.start and other.end <= self.end


# ---------------------------------------------------------------- documents


@dataclass(frozen=True, slots=True)
class Section:
    """One block of a version's text: a paragraph, a list, a table, a code block, a heading.

    `path` holds the headings above it, outermost first. `parts` are its natural pieces (table rows, list items,
    code lines) in order, empty for prose; the first `head` of them (caption, header row) explain the others.
    """

    path: tuple[str, ...]
    span: Span
    kind: Kind
    parts: tuple[Span, ...] = ()
    head: int = 0


@dataclass(frozen=True, slots=True)
class Run:
    """`text[text.start:text.end]` came from `source[source.start:source.end]` of the decoded original.

    Both sides have the same length where the characters are the same; otherwise the run is one indivisible piece
    (an entity, folded white space).
    """

    text: Span
    source: Span


Box: TypeAlias = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class PageBox:
    """A box on a page, counted from 1: left, bottom, right, top in points from the lower left of the page as shown."""

    page: int
    box: Box


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a sheet, such as B7."""

    sheet: str
    ref: str


@dataclass(frozen=True, slots=True)
class Element:
    """A part of a document, named from the outside in, such as "slide 4, notes" or "table 2, row 3, column 1"."""

    name: str


Spot: TypeAlias = PageBox | Cell | Element


@dataclass(frozen=True, slots=True)
class Anchor:
    """A stretch of a text and where it stands in an original that is no text."""

    text: Span
    spot: Spot


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a parser makes of one file.

    `markup` are the spans of `text` that a reader doesn't see (emphasis marks, link targets, tags), sorted and
    disjoint. `runs` map the text to the decoded original; empty means that the text *is* the decoded original.
    Of a format that is no text `encoding` is empty and `anchors`, packed, say where the text stands in it.
    `outdated`: the file says of itself that another one has taken its place.
    """

    text: str
    title: str
    media_type: str
    encoding: str
    sections: tuple[Section, ...]
    markup: tuple[Span, ...] = ()
    runs: tuple[Run, ...] = ()
    outdated: bool = False
    anchors: bytes = b""


@dataclass(frozen=True, slots=True)
class Document:
    """`uri` is its identity within a tenant. `groups` that may read it; none means everyone of the tenant."""

    id: str
    tenant: str
    uri: str
    title: str
    groups: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Version:
    """One state of a document. It was the current one from `created` until `superseded` or `withdrawn`."""

    id: str
    document: Document
    text: str
    media_type: str
    encoding: str
    blob: str
    created: datetime
    superseded: datetime | None = None
    withdrawn: datetime | None = None
    runs: tuple[Run, ...] = ()
    anchors: bytes = b""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a span of a version's text lies in the original: a half-open range of its bytes, or else spots of it."""

    span: Span
    bytes: Span | None = None
    spots: tuple[Spot, ...] = ()


@dataclass(frozen=True, slots=True)
class Chunk:
    """A retrievable piece of a version: `text == version.text[span]`.

    `markup` and `units` are relative to the chunk. Units are the smallest quotable pieces (a sentence, a list item,
    a table row, a code block); the first `head` of them are a table's caption and header. `terms` are the folded
    terms of what a reader sees, `heading_terms` those of the heading path and title. `superseded`: there is a later
    version, or the document says so of itself.
    """

    id: int
    document: Document
    version_id: str
    span: Span
    section: tuple[str, ...]
    kind: Kind
    text: str
    markup: tuple[Span, ...] = ()
    units: tuple[Span, ...] = ()
    head: int = 0
    terms: tuple[str, ...] = ()
    heading_terms: tuple[str, ...] = ()
    superseded: bool = False


# ---------------------------------------------------------------- asking


@dataclass(frozen=True, slots=True)
class Scope:
    """What a reader may see: one tenant, the documents of no group or of these groups, as of a moment (None: now)."""

    tenant: str = "default"
    groups: frozenset[str] = frozenset()
    as_of: datetime | None = None

    def __post_init__(self) -> None:
        check_name("tenant", self.tenant)
        for group in self.groups:
            check_name("group", group)


def check_name(what: Literal["tenant", "group"], name: str) -> None:
    """Raises UsageError for a name that nobody could see."""
    if not name.strip() or not name.isprintable():
        why = "has control characters" if name.strip() else "is empty"
        raise UsageError(f"{name!r} can't be the name of a {what}: it {why}.", "Use letters, digits, - and _.")


@dataclass(frozen=True, slots=True)
class Query:
    """`k` is how many hits are wanted of a search."""

    text: str
    scope: Scope = field(default_factory=Scope)
    k: int = 10


@dataclass(frozen=True, slots=True)
class Part:
    """A sub-question that stands alone."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Plan:
    query: Query
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk and every number that placed it."""

    chunk: Chunk
    score: float
    signals: Signals


Ranking: TypeAlias = tuple[Hit, ...]


@dataclass(frozen=True, slots=True)
class Passage:
    """A hit under the label by which answerers cite it."""

    label: str
    chunk: Chunk
    score: float
    signals: Signals


@dataclass(frozen=True, slots=True)
class Candidate:
    """A quotable unit of a passage, weighed against one part: `span` is the version's, `score` a probability."""

    label: str
    span: Span
    part: int
    score: float
    signals: Signals


@dataclass(frozen=True, slots=True)
class Support:
    """How well the passages hold one part: `confidence` is a probability, `missing` the words without support."""

    part: Part
    confidence: float
    signals: Signals
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Evidence:
    """The passages, best first; what they hold for each part; their units, best first within a part."""

    passages: tuple[Passage, ...]
    supports: tuple[Support, ...] = ()
    candidates: tuple[Candidate, ...] = ()

    @property
    def confidence(self) -> float:
        """That of the best supported part; 0 without passages."""
        return max((s.confidence for s in self.supports), default=0.0)

    def passage(self, label: str) -> Passage | None:
        return next((p for p in self.passages if p.label == label), None)


@dataclass(frozen=True, slots=True)
class Draft:
    """What an answerer wants to say. Untrusted: `quotes` are (passage label, allegedly verbatim quote) pairs."""

    text: str
    quotes: tuple[tuple[str, str], ...]
    part: int = 0


@dataclass(frozen=True, slots=True)
class Citation:
    """`quote == version.text[span]`, always."""

    document: str
    title: str
    version_id: str
    span: Span
    quote: str
    section: tuple[str, ...]
    place: Place | None = None
    superseded: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    label: Literal["supported", "partial", "unsupported", "contradicted"]
    score: float
    by: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence that its citations support. Only `answer/verify.py` makes one."""

    text: str
    citations: tuple[Citation, ...]
    verdict: Verdict
    part: int = 0


@dataclass(frozen=True, slots=True)
class Dropped:
    """A draft that was not shown, and why."""

    draft: Draft
    why: str


Status = Literal["covered", "declined", "missed"]


@dataclass(frozen=True, slots=True)
class PartStatus:
    text: str
    status: Status


@dataclass(frozen=True, slots=True)
class Review:
    """What became of each part."""

    parts: tuple[PartStatus, ...]


Reason = Literal["no_evidence", "weak_evidence", "nothing_verified", "incomplete", "premise_contradicted"]


@dataclass(frozen=True, slots=True)
class Answer:
    claims: tuple[Claim, ...]
    review: Review

    @property
    def text(self) -> str:
        return " ".join(claim.text for claim in self.claims)


@dataclass(frozen=True, slots=True)
class Refusal:
    """An honest no: why, the nearest passages, what is missing. Only `answer/guard.py` makes one."""

    reason: Reason
    message: str
    nearest: tuple[Passage, ...]
    missing: tuple[str, ...]
    review: Review


@dataclass(frozen=True, slots=True)
class Record:
    """The audit record of one question: what was asked, found, said and dropped, under which policy and models."""

    id: str
    asked: datetime
    query: Query
    outcome: Answer | Refusal | None
    evidence: Evidence
    dropped: tuple[Dropped, ...]
    policy: str
    models: Mapping[str, str]
    threshold: float
    timings_ms: Mapping[str, float]
    error: str = ""

    @property
    def versions(self) -> tuple[str, ...]:
        """The document versions that were put before the answerer."""
        return tuple(dict.fromkeys(p.chunk.version_id for p in self.evidence.passages))


# ---------------------------------------------------------------- events of one question


@dataclass(frozen=True, slots=True)
class Planned:
    plan: Plan


@dataclass(frozen=True, slots=True)
class Retrieved:
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Verified:
    claim: Claim


@dataclass(frozen=True, slots=True)
class Reviewed:
    review: Review


@dataclass(frozen=True, slots=True)
class Finished:
    record: Record


Event: TypeAlias = Planned | Retrieved | Verified | Reviewed | Finished
