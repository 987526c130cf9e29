"""The seams: what a model, a store or an index must offer, and the shapes of the stages of a question."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from onrecord.types import Chunk, Citation, Claim, Draft, Evidence, Parsed, Plan, Query, Ranking, Review, Scope, Verdict

Floats: TypeAlias = NDArray[np.float32]
Use = Literal["document", "query"]


class Embedder(Protocol):
    """Texts to vectors. Blocking; callers on an event loop use a thread."""

    @property
    def name(self) -> str:
        """Identity of the weights and their build. Vectors of two names are never mixed."""

    @property
    def dim(self) -> int: ...

    @property
    def max_tokens(self) -> int:
        """How many of its own tokens the model reads of one text, special tokens not counted."""

    def count(self, texts: Sequence[str]) -> list[int]:
        """The number of the model's tokens in each text, special tokens not counted, never truncated."""

    def embed(self, texts: Sequence[str], use: Use) -> Floats:
        """(len(texts), dim) unit vectors, in order. Raises ModelUnavailable."""


@dataclass(frozen=True, slots=True)
class TokenVectors:
    """`spans[i]` are the code points of the text that `vectors[i]` (unit length) stands for."""

    spans: NDArray[np.int32]
    vectors: Floats


class TokenEmbedder(Protocol):
    """An embedder that also gives a vector a token."""

    def embed_tokens(self, texts: Sequence[str]) -> list[TokenVectors]: ...


class Writer(Protocol):
    """A language model, never trusted: what it writes is checked by whoever asked."""

    @property
    def name(self) -> str: ...

    def write(self, task: str, text: str, max_tokens: int) -> str:
        """What it makes of `text` under the instructions `task`. Raises ModelUnavailable, ModelError."""

    def close(self) -> None:
        """Lets go of what it holds."""


class Index(Protocol):
    """A search index over the record's chunks. Blocking; a score of 0 or less is never returned."""

    @property
    def size(self) -> int:
        """Chunks in the index, over all scopes."""

    def lexical(self, terms: list[tuple[str, float]], scope: Scope, k: int) -> list[tuple[int, float]]:
        """The `k` best (chunk id, BM25 score) for weighted terms, best first."""

    def dense(self, vector: Floats, scope: Scope, k: int) -> list[tuple[int, float]]:
        """The `k` best (chunk id, cosine) for a unit vector, best first."""

    def frequency(self, term: str) -> int:
        """In how many chunks a term stands."""

    def fresh(self) -> bool:
        """Whether it has seen every change of the record; cheap."""

    def refresh(self) -> None:
        """Follows the record without waiting for others that are at it."""


# Bytes and a name to text with structure. Raises RejectedInput.
Parser: TypeAlias = Callable[[bytes, str], Parsed]


class Words(NamedTuple):
    """A chunk as the reranker sees it: the folded terms of its text, in order, and of its headings.

    `outdated`: its document says that another one has taken its place.
    """

    terms: list[str]
    headings: frozenset[str]
    outdated: bool = False


class Found(NamedTuple):
    """A chunk that a scope may see: what it is ranked by, and the chunk itself, made when it is wanted."""

    words: Words
    chunk: Callable[[], Chunk]


# The chunks among some ids that a scope may see, by id.
Loader: TypeAlias = Callable[[Sequence[int], Scope], dict[int, Found]]

# The stages of a question. A cache, retry, budget or trace is a function of the same shape around one of these.
Planner: TypeAlias = Callable[[Query], Awaitable[Plan]]
Retriever: TypeAlias = Callable[[Query], Awaitable[Ranking]]
Gatherer: TypeAlias = Callable[[Plan], Awaitable[Evidence]]
Answerer: TypeAlias = Callable[[Plan, Evidence], AsyncIterator[Draft]]
Verifier: TypeAlias = Callable[[Draft, tuple[Citation, ...]], Awaitable[Verdict]]
Reviewer: TypeAlias = Callable[[Plan, Evidence, Sequence[Claim]], Awaitable[Review]]
