"""The far side of a wire: a server on loopback that answers as it is told to, and can misbehave."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

Answer = Callable[["Handler", dict[str, Any]], None]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        wire: Wire = self.server.wire  # type: ignore[attr-defined]
        wire.requests.append((self.path, dict(self.headers), body))
        answer = wire.answers.pop(0) if wire.answers else wire.usual
        try:
            answer(self, body)
        except (BrokenPipeError, ConnectionResetError):
            wire.hung_up = True

    def give(self, status: int, content: bytes | str, **headers: str) -> None:
        data = content.encode() if isinstance(content, str) else content
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        pass


@dataclass
class Wire:
    """What the server saw, and how it will answer the next requests (then: well)."""

    usual: Answer
    url: str = ""
    requests: list[tuple[str, dict[str, str], dict[str, Any]]] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    hung_up: bool = False


def gives(status: int, content: bytes | str, **headers: str) -> Answer:
    return lambda handler, body: handler.give(status, content, **headers)


def says(text: object) -> Answer:
    """The answer of a chat model."""
    return gives(200, json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}]}))


@contextmanager
def serving(usual: Answer) -> Iterator[Wire]:
    """A server that answers as its `answers` say, one after the other, and from then on with `usual`."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.wire = Wire(usual, f"http://127.0.0.1:{server.server_port}/v1")  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server.wire  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
