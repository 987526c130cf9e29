"""An embedding model behind any OpenAI-compatible `POST {base}/embeddings`.

https://platform.openai.com/docs/api-reference/embeddings; vLLM, llama.cpp, Ollama, TEI and others answer the same way.
What comes back is untrusted: its size, time, shape and numbers are checked before a vector is used.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

import httpx
import numpy as np

from onrecord.errors import ModelError, ModelUnavailable, UsageError
from onrecord.ports import Floats, Use

BATCH = 64
RETRIES = 3
BYTES_PER_TOKEN = 3  # fewer than English has, so that the estimate errs on the high side
ANSWER_BYTES = 32 << 20
LONGEST_WAIT = 30.0


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
        self._url = f"{base.rstrip('/')}/embeddings"
        try:
            url = httpx.URL(self._url)
        except httpx.InvalidURL as error:
            raise UsageError(f"The embedding endpoint's URL is not one: {error}.") from None
        if url.scheme not in ("http", "https") or not url.host or url.userinfo:
            raise UsageError("The embedding endpoint needs a URL such as https://host/v1, without a password in it.")
        key = (api_key or "").strip()
        if not (key.isascii() and key.isprintable()):
            raise UsageError("The embedding endpoint's key holds characters that no key has.")
        self._model = model
        self._key = key
        self._dim = dim
        self._total_tokens = max_tokens
        self._prefixes: dict[Use, str] = {"query": query_prefix, "document": document_prefix}
        self._timeout = timeout
        self._backoff = backoff
        self._lock = threading.Lock()
        headers = {"Accept-Encoding": "identity"} | ({"Authorization": f"Bearer {key}"} if key else {})
        self._client = httpx.Client(timeout=timeout, headers=headers, follow_redirects=False)

    def __repr__(self) -> str:
        return f"OpenAIEmbedder({self.name!r})"

    def close(self) -> None:
        """Lets go of the connections."""
        self._client.close()

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
        answer = self._post({"model": self._model, "input": texts, "encoding_format": "float"})
        with self._lock:
            try:
                vectors = _vectors(answer, len(texts), self._dim)
            except _Nonsense as nonsense:
                raise self._nonsense(str(nonsense)) from nonsense
            self._dim = vectors.shape[1]
        return vectors

    def _post(self, body: dict[str, Any]) -> bytes:
        for attempt in range(RETRIES + 1):
            last = attempt == RETRIES
            try:
                status, headers, content = self._once(body)
            except httpx.TimeoutException as error:
                raise self._unavailable(f"took longer than {self._timeout:g} s") from error
            except httpx.TransportError as error:
                if last:
                    raise self._unavailable(f"can't be reached ({self._safe(str(error))})") from error
                self._wait(attempt, None)
                continue
            if status == 200:
                return content
            if status != 429 and status < 500:
                raise ModelError(
                    f"The embedding endpoint {self._url} turned the request away ({status}): {self._said(content)}.",
                    "Check the key, the model's name and the address.",
                )
            if not last:
                self._wait(attempt, headers.get("retry-after"))
        raise self._unavailable(f"answers {status} after {RETRIES} retries: {self._said(content)}")

    def _once(self, body: dict[str, Any]) -> tuple[int, httpx.Headers, bytes]:
        """One attempt. The client's timeout is for each read; a server that drips is stopped here."""
        until = time.monotonic() + self._timeout
        content = bytearray()
        with self._client.stream("POST", self._url, json=body) as response:
            for block in response.iter_raw():
                content += block
                if len(content) > ANSWER_BYTES:
                    raise self._nonsense(f"more than {ANSWER_BYTES >> 20} MB")
                if time.monotonic() > until:
                    raise httpx.ReadTimeout("the whole answer took too long")
            return response.status_code, response.headers, bytes(content)

    def _wait(self, attempt: int, retry_after: str | None) -> None:
        seconds = self._backoff * 2**attempt * random.uniform(0.75, 1.25)
        if retry_after is not None and retry_after.isascii() and retry_after.isdigit():
            seconds = float(retry_after)
        time.sleep(min(seconds, LONGEST_WAIT))

    def _said(self, content: bytes) -> str:
        return self._safe(content[:1_000].decode("utf-8", "replace")) or "nothing"

    def _safe(self, text: str) -> str:
        if self._key:
            text = text.replace(self._key, "***")
        return "".join(c if c.isprintable() else " " for c in text)[:200].strip().rstrip(".")

    def _unavailable(self, what: str) -> ModelUnavailable:
        return ModelUnavailable(f"The embedding endpoint {self._url} {what}.", "Try again, or check the server.")

    def _nonsense(self, what: str) -> ModelUnavailable:
        return self._unavailable(f"answers with something unusable ({what})")


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
