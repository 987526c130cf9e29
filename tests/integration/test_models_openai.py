"""The OpenAI-compatible embedder against a server on loopback that can misbehave."""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from onrecord.errors import ModelError, ModelUnavailable, UsageError
from onrecord.models import endpoint
from onrecord.models.openai import OpenAIChat, OpenAIEmbedder
from onrecord.ports import Embedder, Use
from wire import Handler, Wire, gives, says, serving

KEY = "sk-very-secret-0123456789"


def vector(text: str) -> list[float]:
    return [float(len(text)), 1.0, -2.0]


def embed(handler: Handler, body: dict[str, Any]) -> None:
    rows = [{"object": "embedding", "index": i, "embedding": vector(t)} for i, t in enumerate(body["input"])]
    handler.give(200, json.dumps({"data": rows[::-1], "model": body["model"]}))


def rows(*embeddings: object, **more: object) -> str:
    return json.dumps({"data": [{"embedding": e, **more} for e in embeddings]})


@pytest.fixture
def wire() -> Iterator[Wire]:
    with serving(embed) as wire:
        yield wire


@pytest.fixture
def make(wire: Wire) -> Iterator[Callable[..., OpenAIEmbedder]]:
    made: list[OpenAIEmbedder] = []

    usual: dict[str, Any] = {"api_key": KEY, "backoff": 0.01, "timeout": 1.0}

    def one(**options: Any) -> OpenAIEmbedder:
        made.append(OpenAIEmbedder(wire.url, "m-1", **(usual | options)))
        return made[-1]

    yield one
    for model in made:
        model.close()


def test_vectors_come_in_the_order_of_the_texts_and_in_batches(wire: Wire, make: Callable[..., Embedder]) -> None:
    model = make()
    texts = ["x" * (n % 50 + 1) for n in range(150)]
    vectors = model.embed(texts, "document")
    wanted = np.array([vector(t) for t in texts])
    assert np.allclose(vectors, wanted / np.linalg.norm(wanted, axis=1, keepdims=True), atol=1e-6)
    assert vectors.dtype == np.float32
    assert [len(body["input"]) for _, _, body in wire.requests] == [64, 64, 22]
    path, headers, body = wire.requests[0]
    assert path == "/v1/embeddings"
    assert body["model"] == "m-1"
    assert headers["Authorization"] == f"Bearer {KEY}"


def test_the_dimension_is_asked_for_once(wire: Wire, make: Callable[..., Embedder]) -> None:
    model = make()
    assert model.embed([], "query").shape == (0, 3)
    assert model.dim == 3
    assert len(wire.requests) == 1


@pytest.mark.parametrize(("use", "sent"), [("query", "query: hi"), ("document", "passage: hi")])
def test_prefixes_are_sent_and_named(wire: Wire, make: Callable[..., Embedder], use: Use, sent: str) -> None:
    model = make(query_prefix="query: ", document_prefix="passage: ")
    model.embed(["hi"], use)
    assert wire.requests[0][2]["input"] == [sent]
    assert model.name != make().name
    assert model.name != make(query_prefix="passage: ", document_prefix="query: ").name


def test_odd_texts_are_sent_as_something_a_server_takes(wire: Wire, make: Callable[..., Embedder]) -> None:
    model = make(max_tokens=4)
    model.embed(["", "a\ud800b", "0123456789abcdef", "日本語です"], "query")
    sent = wire.requests[0][2]["input"]
    assert sent == [" ", "a?b", "0123456789ab", "日本語で"]
    assert all(count <= model.max_tokens for count in model.count(sent))
    assert model.count(["", "ab", "abcd", "日本語です"]) == [0, 1, 2, 5]


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_server_is_asked_again(wire: Wire, make: Callable[..., Embedder], status: int) -> None:
    wire.answers = [gives(status, "busy"), gives(status, "busy", Retry_After="0")]
    assert make().embed(["hi"], "query").shape == (1, 3)
    assert len(wire.requests) == 3


def test_after_three_retries_it_is_given_up(wire: Wire, make: Callable[..., Embedder]) -> None:
    wire.answers = [gives(503, "busy")] * 9
    with pytest.raises(ModelUnavailable, match="503 after 3 retries: busy") as caught:
        make().embed(["hi"], "query")
    assert caught.value.retryable
    assert len(wire.requests) == 4


def test_retry_after_is_obeyed_up_to_a_limit(
    wire: Wire, make: Callable[..., Embedder], monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    monkeypatch.setattr("onrecord.models.endpoint.time.sleep", waited.append)
    wire.answers = [
        gives(429, "", Retry_After="7"),
        gives(429, "", Retry_After="86400"),
        gives(429, "", Retry_After="x"),
    ]
    make().embed(["hi"], "query")
    assert waited[:2] == [7.0, 30.0]
    assert 0.0 < waited[2] < 0.1


@pytest.mark.parametrize("status", [400, 401, 404, 302])
def test_a_refused_request_is_not_repeated_and_shows_no_key(
    wire: Wire, make: Callable[..., Embedder], status: int
) -> None:
    wire.answers = [gives(status, f"Incorrect API key: {KEY}\n\x1b[31m", Location=f"{wire.url}/elsewhere")]
    with pytest.raises(ModelError, match=f"turned the request away .{status}") as caught:
        make().embed(["hi"], "query")
    assert not caught.value.retryable
    assert KEY not in str(caught.value)
    assert "\x1b" not in str(caught.value)
    assert len(wire.requests) == 1


NONSENSE = {
    "HTML": "<html><body>Welcome</body></html>",
    "empty": "",
    "not UTF-8": b"\xff\xfe{}",
    "a list": "[]",
    "no data": '{"error": null}',
    "data is null": '{"data": null}',
    "strings": '{"data": ["a"]}',
    "too few": rows(),
    "too many": rows([1, 2, 3], [1, 2, 3]),
    "NaN": '{"data": [{"embedding": [1, NaN, 2]}]}',
    "infinite": '{"data": [{"embedding": [1, 1e999, 2]}]}',
    "overflowing": rows([1e200, 1e200, 1e200]),
    "enormous": '{"data": [{"embedding": [1' + "0" * 400 + ", 1, 1]}]}",
    "zero": rows([0, 0, 0]),
    "null": rows([1, None, 2]),
    "words": rows(["a", "b", "c"]),
    "base64": rows("AACAPwAAgD8AAIA/"),
    "other dimension": rows([1, 2]),
    "none": rows([]),
    "nested": rows([[1, 2, 3]]),
    "ragged": '{"data": [{"embedding": [1, [2], 3]}]}',
    "wrong index": rows([1, 2, 3], index=7),
    "index of no number": rows([1, 2, 3], index="0"),
    "deep": "[" * 100_000,
    "compressed": gzip.compress(rows([1, 2, 3]).encode()),
}


@pytest.mark.parametrize("content", NONSENSE.values(), ids=NONSENSE.keys())
def test_nonsense_is_told_from_vectors(wire: Wire, make: Callable[..., Embedder], content: bytes | str) -> None:
    model = make(dim=3)
    headers = {"Content_Encoding": "gzip"} if content == NONSENSE["compressed"] else {}
    wire.answers = [gives(200, content, **headers)]
    with pytest.raises(ModelUnavailable, match="something unusable"):
        model.embed(["hi"], "query")
    assert len(wire.requests) == 1
    assert model.embed(["hi"], "query").shape == (1, 3)


def test_the_dimension_may_not_change_between_answers(wire: Wire, make: Callable[..., Embedder]) -> None:
    wire.answers = [embed, gives(200, rows([1, 2]))]
    model = make()
    model.embed(["hi"], "query")
    with pytest.raises(ModelUnavailable, match="shape"):
        model.embed(["hi"], "query")


def test_indexes_given_twice_are_nonsense(wire: Wire, make: Callable[..., Embedder]) -> None:
    wire.answers = [gives(200, rows([1, 2, 3], [1, 2, 3], index=0))]
    with pytest.raises(ModelUnavailable, match="index"):
        make().embed(["a", "b"], "query")


def test_an_answer_without_end_is_cut_off(
    wire: Wire, make: Callable[..., Embedder], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint, "ANSWER_BYTES", 1 << 20)

    def flood(handler: Handler, body: dict[str, Any]) -> None:
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for _ in range(1_000):
            handler.wfile.write(b"10000\r\n" + bytes(65_536) + b"\r\n")

    wire.answers = [flood]
    with pytest.raises(ModelUnavailable, match="more than 1 MB"):
        make(timeout=10.0).embed(["hi"], "query")


@pytest.mark.parametrize("drip", [False, True])
def test_a_server_that_hangs_or_drips_is_left(wire: Wire, make: Callable[..., Embedder], drip: bool) -> None:
    def slow(handler: Handler, body: dict[str, Any]) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        for _ in range(30):
            time.sleep(0.1)
            if drip:
                handler.wfile.write(b" ")

    wire.answers = [slow]
    started = time.monotonic()
    with pytest.raises(ModelUnavailable, match=r"took longer than 0\.5 s"):
        make(timeout=0.5).embed(["hi"], "query")
    assert time.monotonic() - started < 2


def test_a_connection_that_breaks_is_tried_again(wire: Wire, make: Callable[..., Embedder]) -> None:
    def hang_up(handler: Handler, body: dict[str, Any]) -> None:
        handler.close_connection = True

    wire.answers = [hang_up, embed]
    assert make().embed(["hi"], "query").shape == (1, 3)


def test_no_server_is_said_plainly() -> None:
    model = OpenAIEmbedder("http://127.0.0.1:9/v1", "m", backoff=0.001)
    with pytest.raises(ModelUnavailable, match=r"127\.0\.0\.1:9/v1/embeddings can't be reached"):
        model.embed(["hi"], "query")
    model.close()


def test_the_key_shows_nowhere(make: Callable[..., OpenAIEmbedder], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    model = make()
    model.embed(["hi"], "query")
    assert KEY not in repr(model) + model.name + caplog.text
    with pytest.raises(UsageError) as caught:
        make(api_key=f"{KEY}\nX-Other: 1")
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["", "host/v1", "ftp://host/v1", "http://", "http://a:b@host/v1", "http://[::1", "http://h:x/"]
)
def test_a_bad_url_is_the_callers_mistake(url: str) -> None:
    with pytest.raises(UsageError):
        OpenAIEmbedder(url, "m")


def test_threads_may_share_it(wire: Wire, make: Callable[..., Embedder]) -> None:
    model, out = make(), {}

    def work(n: int) -> None:
        out[n] = model.embed(["y" * n], "query")[0]

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for n, got in out.items():
        wanted = np.array(vector("y" * n))
        assert np.allclose(got, wanted / np.linalg.norm(wanted), atol=1e-6)
    assert len(out) == 8


# ---------------------------------------------------------------- text


@pytest.fixture
def chat(wire: Wire) -> Iterator[OpenAIChat]:
    model = OpenAIChat(wire.url, "c-1", api_key=KEY, timeout=1.0, backoff=0.01)
    yield model
    model.close()


def test_a_chat_model_is_asked_without_chance_and_with_the_key(wire: Wire, chat: OpenAIChat) -> None:
    wire.answers = [says("Why?")]
    assert chat.write("Be brief.", "What for?", 7) == "Why?"
    path, headers, body = wire.requests[0]
    assert path == "/v1/chat/completions"
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert [(m["role"], m["content"]) for m in body["messages"]] == [("system", "Be brief."), ("user", "What for?")]
    assert (body["model"], body["max_tokens"], body["temperature"]) == ("c-1", 7, 0)
    assert KEY not in repr(chat) + chat.name


@pytest.mark.parametrize(
    "answer", ["", "[]", "{}", '{"choices": []}', '{"choices": [{"message": {"content": null}}]}', "[" * 100_000]
)
def test_a_chat_answer_without_text_is_unavailability(wire: Wire, chat: OpenAIChat, answer: str) -> None:
    wire.answers = [gives(200, answer)]
    with pytest.raises(ModelUnavailable, match=r"language model endpoint .* unusable"):
        chat.write("", "hi", 7)


def test_a_chat_model_that_turns_a_request_away_is_not_asked_again(wire: Wire, chat: OpenAIChat) -> None:
    wire.answers = [gives(404, f'{{"error": "no model c-1 for {KEY}"}}')]
    with pytest.raises(ModelError, match=r"404.*no model c-1") as caught:
        chat.write("", "hi", 7)
    assert len(wire.requests) == 1
    assert KEY not in str(caught.value)
