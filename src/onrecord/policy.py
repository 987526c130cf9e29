"""Every number that changes what OnRecord finds or says, in one frozen value whose hash each audit record carries."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

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

    The reranker scores `rerank` of them, and more where more are wanted; 0 leaves them in fused order.
    """

    mode: Mode = "hybrid"
    pool: int = 60
    rrf_k: int = 60
    rerank: int = 30
    passages: int = 8


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
class Grounding:
    """When to answer, and with how much."""

    threshold: float = 0.5
    guard_passages: int = 4
    claims: int = 3


@dataclass(frozen=True, slots=True)
class Policy:
    limits: Limits = Limits()
    chunking: Chunking = Chunking()
    retrieval: Retrieval = Retrieval()
    ranking: Ranking = Ranking()
    grounding: Grounding = Grounding()

    @property
    def hash(self) -> str:
        """Twelve hex digits that two policies share only if all their numbers do."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:12]

    def with_(self, **groups: dict[str, Any]) -> Policy:
        """A copy with some numbers changed: `policy.with_(retrieval={"mode": "lexical"})`."""
        return replace(self, **{name: replace(getattr(self, name), **values) for name, values in groups.items()})
