"""An embedder without a model, for tests only: it knows which words two texts share, and nothing of what they mean."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b

import numpy as np

from onrecord.ports import Floats, TokenVectors, Use

BUCKETS = 4  # per word
WORD = re.compile(r"\w+")


class HashEmbedder:
    """Embedder and TokenEmbedder for tests only. Deterministic on every machine, without weights or network.

    Method: feature hashing (Weinberger et al. 2009). A casefolded word is a few signed buckets of its BLAKE2b hash, a
    text the sum of its words' vectors, both scaled to unit length. A token is a word.
    """

    def __init__(self, dim: int = 64, max_tokens: int = 254) -> None:
        self.dim = dim
        self.max_tokens = max_tokens

    @property
    def name(self) -> str:
        return f"hash-test-{self.dim}-{self.max_tokens}"

    def count(self, texts: Sequence[str]) -> list[int]:
        """The number of words of each text."""
        return [sum(1 for _ in WORD.finditer(text)) for text in texts]

    def embed(self, texts: Sequence[str], use: Use) -> Floats:
        """(len(texts), dim) unit vectors; a text without words gets that of the empty word."""
        vectors = np.zeros((len(texts), self.dim), dtype=np.float32)
        for row, text in enumerate(texts):
            words = [match.group().casefold() for match in WORD.finditer(text)][: self.max_tokens]
            vectors[row] = _unit(np.sum([_word(word, self.dim) for word in words or [""]], axis=0), self.dim)
        return vectors

    def embed_tokens(self, texts: Sequence[str]) -> list[TokenVectors]:
        """The words' spans and vectors; one word has the same vector everywhere."""
        return [self._tokens(text) for text in texts]

    def _tokens(self, text: str) -> TokenVectors:
        matches = list(WORD.finditer(text))[: self.max_tokens]
        spans = np.array([match.span() for match in matches], dtype=np.int32).reshape(-1, 2)
        vectors = [_word(match.group().casefold(), self.dim) for match in matches]
        return TokenVectors(spans, np.array(vectors, dtype=np.float32).reshape(-1, self.dim))


@lru_cache(maxsize=65_536)
def _word(word: str, dim: int) -> Floats:
    vector = np.zeros(dim, dtype=np.float32)
    digest = blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8 * BUCKETS).digest()
    for start in range(0, len(digest), 8):
        number = int.from_bytes(digest[start : start + 8], "little")
        vector[(number >> 1) % dim] += 1 if number & 1 else -1
    vector = _unit(vector, dim)
    vector.flags.writeable = False
    return vector


def _unit(vector: Floats, dim: int) -> Floats:
    length = float(np.linalg.norm(vector))
    unit = np.zeros(dim, dtype=np.float32)
    if length < 1e-6:  # signs that cancel out
        unit[0] = 1
    else:
        unit[:] = vector / length
    return unit
