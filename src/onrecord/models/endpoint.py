"""A POST to a model behind HTTP: capped, timed, retried, and with a key that shows nowhere.

What comes back is untrusted: its size and time are bounded here, its content is for the caller to check.
"""

from __future__ import annotations

import random
import time
from typing import Any

import httpx

from onrecord.errors import ModelError, ModelUnavailable, UsageError

RETRIES = 3
ANSWER_BYTES = 32 << 20
LONGEST_WAIT = 30.0


class Endpoint:
    """`base` joined with `path`, taking JSON. Safe to share between threads; connections are kept.

    `what` is its name in messages ("embedding", "language model"). `timeout` is seconds for an attempt, `backoff`
    seconds before the first retry, doubled each time; a server's Retry-After goes first. Raises UsageError for a bad
    URL or key.
    """

    def __init__(
        self,
        what: str,
        base: str,
        path: str,
        *,
        api_key: str | None = None,
        timeout: float = 30.0,
        backoff: float = 0.5,
    ) -> None:
        self._what = f"The {what} endpoint"
        self._url = f"{base.rstrip('/')}/{path}"
        try:
            url = httpx.URL(self._url)
        except httpx.InvalidURL as error:
            raise UsageError(f"{self._what}'s URL is not one: {error}.") from None
        if url.scheme not in ("http", "https") or not url.host or url.userinfo:
            raise UsageError(f"{self._what} needs a URL such as https://host/v1, without a password in it.")
        key = (api_key or "").strip()
        if not (key.isascii() and key.isprintable()):
            raise UsageError(f"{self._what}'s key holds characters that no key has.")
        self._key = key
        self._timeout = timeout
        self._backoff = backoff
        headers = {"Accept-Encoding": "identity"} | ({"Authorization": f"Bearer {key}"} if key else {})
        self._client = httpx.Client(timeout=timeout, headers=headers, follow_redirects=False)

    def close(self) -> None:
        """Lets go of the connections."""
        self._client.close()

    def post(self, body: dict[str, Any]) -> bytes:
        """The content of the answer to a JSON request.

        Raises ModelUnavailable where the server is down, too slow or overloaded after 3 retries, ModelError where it
        turns the request away (key, model, address).
        """
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
                    f"{self._what} {self._url} turned the request away ({status}): {self._said(content)}.",
                    "Check the key, the model's name and the address.",
                )
            if not last:
                self._wait(attempt, headers.get("retry-after"))
        raise self._unavailable(f"answers {status} after {RETRIES} retries: {self._said(content)}")

    def nonsense(self, what: str) -> ModelUnavailable:
        """The error for an answer that is not what was asked for."""
        return self._unavailable(f"answers with something unusable ({what})")

    def _once(self, body: dict[str, Any]) -> tuple[int, httpx.Headers, bytes]:
        """One attempt. The client's timeout is for each read; a server that drips is stopped here."""
        until = time.monotonic() + self._timeout
        content = bytearray()
        with self._client.stream("POST", self._url, json=body) as response:
            for block in response.iter_raw():
                content += block
                if len(content) > ANSWER_BYTES:
                    raise self.nonsense(f"more than {ANSWER_BYTES >> 20} MB")
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
        return ModelUnavailable(f"{self._what} {self._url} {what}.", "Try again, or check the server.")
