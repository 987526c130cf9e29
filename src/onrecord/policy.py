"""Every number that changes what OnRecord finds or says, in one frozen value whose hash each audit record carries."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

from onrecord.errors import UsageError

Mode = Literal["hybrid", "lexical", "dense"]


@dataclass(frozen=True, slots=True)
class Chunking:
    """Sizes in tokens of the embedding model.

    A chunk holds up to `content`, and is embedded in windows of up to `window`, each with a `breadcrumb` of headings
    and the `overlap` before it: an encoder of sentences smears what is longer.
    """

    content: int = 180
    window: int = 80
    overlap: int = 20
    breadcrumb: int = 40

    def fitting(self, max_tokens: int) -> Chunking:
        """The same, or smaller where an embedded text could outgrow what the model reads."""
        # a window may run over by a quarter, and a table's header comes on top of it
        if self.breadcrumb + self.overlap + self.window * 3 // 2 <= max_tokens:
            return self
        breadcrumb, overlap = min(self.breadcrumb, max_tokens // 4), min(self.overlap, max_tokens // 8)
        window = min(self.window, (max_tokens - breadcrumb - overlap) * 2 // 3)
        return replace(self, window=window, breadcrumb=breadcrumb, overlap=overlap)


@dataclass(frozen=True, slots=True)
class Limits:
    """Caps on what is taken in."""

    file_bytes: int = 32 * 1024 * 1024
    question_chars: int = 4_000
    parts: int = 8


@dataclass(frozen=True, slots=True)
class Retrieval:
    """`pool` candidates an engine, fused by RRF with `rrf_k` (Cormack et al. 2009).

    The reranker scores `rerank` of them, and more where more are wanted; 0 leaves them in fused order. In BM25 a part
    of a compound counts `compound_part` of the whole: "rds" of RDS-4471 stands all over its runbook. `passages` are
    kept a part of the question, for `shares` parts at most.
    """

    mode: Mode = "hybrid"
    pool: int = 60
    rrf_k: int = 60
    rerank: int = 30
    passages: int = 8
    compound_part: float = 0.4
    shares: int = 3


@dataclass(frozen=True, slots=True)
class Ranking:
    """Weights of the reranker's features, each of which lies in 0..1."""

    fused: float = 0.5
    dense: float = 5.0
    coverage: float = 0.4
    idf_coverage: float = 1.2
    proximity: float = 0.1
    phrase: float = 0.8
    heading: float = 0.4
    density: float = 0.05
    identifier: float = 2.0
    outdated: float = -0.4


@dataclass(frozen=True, slots=True)
class Features:
    """How two of the reranker's features are made.

    Density is 1 - exp(-`density_rise` * occurrences / length). Words at most `phrase_gap` terms apart are neighbours.
    """

    density_rise: float = 20.0
    phrase_gap: int = 2


@dataclass(frozen=True, slots=True)
class Weighing:
    """How units are weighed against a part of the question.

    The encoder reads `digest_words` of a passage, about 250 tokens. A cosine up to `semantic_floor` counts as none:
    a word without any support shows about 0.3 to the nearest token of an unrelated text. A word that comes nowhere
    nearer than `supported` is one without support. A unit of `brief_words` is half as brief as one of none.
    """

    digest_words: int = 150
    semantic_floor: float = 0.35
    supported: float = 0.6
    brief_words: float = 20.0
    candidates: int = 12


@dataclass(frozen=True, slots=True)
class Drafting:
    """Which units the extractive answerer drafts together.

    A unit joins the best one if it is at least `least` as likely an answer, and either `adds` this much of the
    question's words or is `nearly` as likely and of the same passage. A label has up to `label_words`. Up to
    `following` items follow what announces them, also past a gap of `list_gap` characters between two passages.
    """

    claims: int = 3
    least: float = 0.5
    nearly: float = 0.8
    adds: float = 0.25
    label_words: int = 3
    following: int = 8
    list_gap: int = 8


@dataclass(frozen=True, slots=True)
class Grounding:
    """When to answer; a refusal shows the `nearest` passages and names up to `named` missing things."""

    threshold: float = 0.5
    guard_passages: int = 4
    nearest: int = 3
    named: int = 5


_MAY_BE_NONE = frozenset(
    (
        "overlap",
        "breadcrumb",
        "rerank",
        "rrf_k",
        "phrase_gap",
        "label_words",
        "following",
        "list_gap",
        "nearest",
        "named",
    )
)


def _check(name: str, value: object, least: int) -> None:
    if isinstance(value, int) and value < least:
        raise UsageError(f"{name} is {value}; it has to be at least {least}.", "Choose another number.")
    if isinstance(value, float) and not math.isfinite(value):
        raise UsageError(f"{name} is {value}, which is no number.", "Choose another number.")


@dataclass(frozen=True, slots=True)
class Policy:
    limits: Limits = Limits()
    chunking: Chunking = Chunking()
    retrieval: Retrieval = Retrieval()
    ranking: Ranking = Ranking()
    features: Features = Features()
    weighing: Weighing = Weighing()
    drafting: Drafting = Drafting()
    grounding: Grounding = Grounding()

    def __post_init__(self) -> None:
        """Raises UsageError for a number that makes no sense."""
        for group in fields(self):
            for name, value in asdict(getattr(self, group.name)).items():
                _check(f"{group.name}.{name}", value, 0 if name in _MAY_BE_NONE else 1)

    @property
    def hash(self) -> str:
        """Twelve hex digits that two policies share only if all their numbers do."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:12]

    def with_(self, **groups: dict[str, Any]) -> Policy:
        """A copy with some numbers changed: `policy.with_(retrieval={"mode": "lexical"})`."""
        return replace(self, **{name: replace(getattr(self, name), **values) for name, values in groups.items()})
