"""Models behind any OpenAI-compatible service: vectors by `POST {base}/embeddings`, text by `/chat/completions`.

https://platform.openai.com/docs/api-reference; vLLM, llama.cpp, Ollama, TEI and others answer the same way.
What comes back is untrusted: its shape and numbers are checked before a vector or a word is used.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from urllib.parse import urlencode

import numpy as np

from onrecord.models.endpoint import Endpoint
from onrecord.ports import Floats, Use

BATCH = 64
BYTES_PER_TOKEN = 3  # fewer than English has, so that the estimate errs on the high side


class OpenAIEmbedder:
    """Embedder over HTTP. Safe to share between threads; connections are kept.

    `base` is the URL up to and without `/embeddings`; `model` its name there. `dim` is asked of the server (one short
    text) where it isn't given. `query_prefix` and `document_prefix` are put before each text, as E5 (Wang et al. 2022)
    wants it ("query: ", "passage: "); they are part of `name`. `max_tokens` is the model's limit, prefix included;
    longer texts are cut to it by the estimate of `count`. `timeout` is seconds for an attempt, `backoff` seconds
    before the first retry, doubled each time; a server's Retry-After goes first. Raises UsageError for a bad URL.
    """

    def __init__(
        self,
        base: str,
        model: str,
        *,
        api_key: str | None = None,
        dim: int | None = None,
        max_tokens: int = 512,
        query_prefix: str = "",
        document_prefix: str = "",
        timeout: float = 30.0,
        backoff: float = 0.5,
    ) -> None:
        self._endpoint = Endpoint("embedding", base, "embeddings", api_key=api_key, timeout=timeout, backoff=backoff)
        self._model = model
        self._dim = dim
        self._total_tokens = max_tokens
        self._prefixes: dict[Use, str] = {"query": query_prefix, "document": document_prefix}
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"OpenAIEmbedder({self.name!r})"

    def close(self) -> None:
        """Lets go of the connections."""
        self._endpoint.close()

    @property
    def name(self) -> str:
        prefixes = {use: prefix for use, prefix in sorted(self._prefixes.items()) if prefix}
        return f"openai:{self._model}" + (f"?{urlencode(list(prefixes.items()))}" if prefixes else "")

    @property
    def dim(self) -> int:
        return self._dim or self._embed(["dimension"]).shape[1]

    @property
    def max_tokens(self) -> int:
        return self._total_tokens - max(_tokens(prefix) for prefix in self._prefixes.values())

    def count(self, texts: Sequence[str]) -> list[int]:
        """An estimate on the high side, as the model's tokenizer is not here: a token per 3 bytes of UTF-8."""
        return [_tokens(text) for text in texts]

    def embed(self, texts: Sequence[str], use: Use) -> Floats:
        """(len(texts), dim) unit vectors, asked for 64 at a time.

        Raises ModelUnavailable where the server is down, too slow, overloaded after 3 retries or answers nonsense,
        ModelError where it turns the request away (key, model, address).
        """
        prefix, limit = self._prefixes[use], self.max_tokens * BYTES_PER_TOKEN
        # an empty input is an error to some servers
        whole = [(prefix + text.encode("utf-8", "replace")[:limit].decode("utf-8", "ignore")) or " " for text in texts]
        parts = [self._embed(whole[start : start + BATCH]) for start in range(0, len(whole), BATCH)]
        return np.concatenate(parts) if parts else np.empty((0, self.dim), dtype=np.float32)

    def _embed(self, texts: list[str]) -> Floats:
        answer = self._endpoint.post({"model": self._model, "input": texts, "encoding_format": "float"})
        with self._lock:
            try:
                vectors = _vectors(answer, len(texts), self._dim)
            except _Nonsense as nonsense:
                raise self._endpoint.nonsense(str(nonsense)) from nonsense
            self._dim = vectors.shape[1]
        return vectors


class OpenAIChat:
    """A language model over HTTP, named `model` there. Nothing that it writes is trusted.

    `base` is the URL up to and without `/chat/completions`; `timeout` is seconds for a whole answer. Raises
    UsageError for a bad URL or key.
    """

    def __init__(
        self, base: str, model: str, *, api_key: str | None = None, timeout: float = 60.0, backoff: float = 0.5
    ) -> None:
        self._model = model
        self._endpoint = Endpoint(
            "language model", base, "chat/completions", api_key=api_key, timeout=timeout, backoff=backoff
        )

    def __repr__(self) -> str:
        return f"OpenAIChat({self.name!r})"

    def close(self) -> None:
        """Lets go of the connections."""
        self._endpoint.close()

    @property
    def name(self) -> str:
        return f"openai:{self._model}"

    def write(self, task: str, text: str, max_tokens: int) -> str:
        """What the model makes of `text` under the instructions `task`, at most `max_tokens` of its tokens.

        Asked without chance (temperature 0, one seed), which a server may still not honour.
        Raises ModelUnavailable, ModelError as Endpoint.post, and ModelUnavailable for an answer without text.
        """
        messages = [{"role": "system", "content": task}, {"role": "user", "content": text}]
        asked = {"model": self._model, "messages": messages, "temperature": 0, "seed": 0, "max_tokens": max_tokens}
        try:
            told = json.loads(self._endpoint.post(asked))["choices"][0]["message"]["content"]
        except (ValueError, TypeError, KeyError, IndexError, RecursionError) as error:
            raise self._endpoint.nonsense("not the JSON of a chat answer") from error
        if not isinstance(told, str):
            raise self._endpoint.nonsense("a message without text")
        return told


class _Nonsense(ValueError):
    """An answer that isn't the vectors asked for."""


def _tokens(text: str) -> int:
    return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)


def _vectors(answer: bytes, count: int, dim: int | None) -> Floats:
    """(count, dim) unit vectors, in the order of their `index`. Raises _Nonsense."""
    try:
        rows = json.loads(answer)["data"]
        if not isinstance(rows, list) or len(rows) != count:
            raise _Nonsense(f"{len(rows)} vectors for {count} texts")
        if any("index" in row for row in rows):
            rows = sorted(rows, key=lambda row: row["index"])
            if [row["index"] for row in rows] != list(range(count)):
                raise _Nonsense("wrong indexes")
        vectors = np.array([row["embedding"] for row in rows], dtype=np.float64)
    except _Nonsense:
        raise
    except (ValueError, TypeError, KeyError, IndexError, RecursionError, OverflowError) as error:
        raise _Nonsense("not the JSON of an embeddings answer") from error
    if vectors.ndim != 2 or not vectors.shape[1] or (dim is not None and vectors.shape[1] != dim):
        raise _Nonsense(f"vectors of shape {vectors.shape[1:]}, not ({dim or 'n'},)")
    with np.errstate(over="ignore"):
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.isfinite(lengths).all() or not lengths.all():
        raise _Nonsense("vectors that are not finite or have no length")
    unit: Floats = (vectors / lengths).astype(np.float32)
    return unit
