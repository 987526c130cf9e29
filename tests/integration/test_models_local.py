"""The local embedding model with its real weights."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord.errors import ModelError, ModelMissing
from onrecord.models import graph, weights
from onrecord.models.local import DIM, MAX_TOKENS, MiniLM
from onrecord.ports import Embedder, TokenEmbedder

pytestmark = pytest.mark.models

LONG = "The auditor reads each ledger entry and signs it. " * 60
TEXTS = ["Audit logs are kept for ninety days.", "", "a", "naïve café, 日本語 and 😀", LONG, "log " * 100]


@pytest.fixture(scope="module")
def model() -> MiniLM:
    if not weights.present():
        pytest.skip("the embedding model's weights are not here: run `onrecord models pull`")
    return MiniLM()


def test_it_is_both_kinds_of_embedder(model: MiniLM) -> None:
    both: tuple[Embedder, TokenEmbedder] = (model, model)
    assert both[0].embed(["hi"], "query").shape == (1, 384)
    assert both[1].embed_tokens(["hi"])[0].vectors.shape == (1, 384)
    assert model.name == f"minilm-l6-v2-int8-{graph.BUILD}-53aa5117"


def test_importing_and_making_it_loads_no_runtime() -> None:
    code = (
        "import sys; from onrecord.models.local import MiniLM; MiniLM()\n"
        "print([m for m in ('onnxruntime', 'onnx', 'tokenizers', 'safetensors', 'httpx') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_vectors_are_unit_rows_in_order(model: MiniLM) -> None:
    vectors = model.embed(TEXTS, "document")
    assert vectors.shape == (len(TEXTS), DIM)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert model.embed([], "query").shape == (0, DIM)


def test_a_texts_vector_is_the_same_in_any_company(model: MiniLM) -> None:
    alone = np.concatenate([model.embed([text], "query") for text in TEXTS])
    assert np.array_equal(model.embed(TEXTS, "document"), alone)
    crowd = (TEXTS * 60)[7:300]
    rows = [(place + 7) % len(TEXTS) for place in range(len(crowd))]
    assert np.array_equal(MiniLM(threads=4).embed(crowd, "document"), alone[rows])
    assert np.array_equal(MiniLM(threads=1).embed(crowd, "document"), alone[rows])


def test_the_name_stands_for_these_numbers(model: MiniLM) -> None:
    """Where this fails because the graph changed on purpose, raise graph.BUILD and write down the new numbers."""
    vector = model.embed(["Audit logs are kept for ninety days."], "document")[0]
    assert graph.BUILD == 1
    golden = [-0.0057, 0.0812, -0.0009, -0.0258, 0.0517, -0.0181, 0.0031, -0.0772]
    assert np.allclose(vector[:8], golden, atol=4e-3), vector[:8].tolist()


def test_paraphrases_are_closer_than_anything_else(model: MiniLM) -> None:
    pairs = [
        ("How long are audit logs retained?", "Audit records are stored for ninety days."),
        ("The server ran out of memory.", "The host had no RAM left."),
        ("Who may approve a refund?", "Money is only returned with the consent of a team lead."),
        ("The patient had a fever.", "Her temperature was raised."),
        ("He repaired the car.", "The vehicle was fixed by him."),
        ("Penguins huddle against the cold.", "Birds in the Antarctic keep each other warm."),
    ]
    left, right = (model.embed([pair[side] for pair in pairs], "query") for side in (0, 1))
    similar = left @ right.T
    same = np.diag(similar)
    other = similar - np.diag(same)
    assert (same > other.max(axis=0) + 0.1).all()
    assert (same > other.max(axis=1) + 0.1).all()


def test_counting_never_cuts_and_embedding_always_does(model: MiniLM) -> None:
    assert model.count(["", "word", "word " * 1_000, "unbelievable"]) == [0, 1, 1_000, 1]
    head, whole, more = "word " * MAX_TOKENS, "word " * MAX_TOKENS + "penguin", "word " * (MAX_TOKENS - 1) + "penguin"
    a, b, c = model.embed([head, whole, more], "document")
    assert np.array_equal(a, b)
    assert not np.array_equal(a, c)
    assert len(model.embed_tokens([whole])[0].vectors) == MAX_TOKENS


def test_a_token_stands_for_its_stretch_of_the_text(model: MiniLM) -> None:
    text = "😀 Naïve Wörter: ÉCOLE, 24,601 unbelievably"
    tokens = model.embed_tokens([text, ""])
    words = [text[start:end] for start, end in tokens[0].spans]
    assert {"😀", "Naïve", "ÉCOLE", "24", "60"} < set(words)
    assert "".join(words) == text.replace(" ", "")
    assert tokens[0].spans.dtype == np.int32
    assert np.allclose(np.linalg.norm(tokens[0].vectors, axis=1), 1, atol=1e-5)
    assert tokens[1].spans.shape == (0, 2)
    assert tokens[1].vectors.shape == (0, DIM)


def test_a_word_has_another_vector_in_another_sense(model: MiniLM) -> None:
    texts = [
        "He sat on the bank of the river.",
        "We fished from the bank of a stream.",
        "She took the money to the bank.",
    ]
    found = []
    for text, tokens in zip(texts, model.embed_tokens(texts), strict=True):
        found.append(tokens.vectors[[text[s:e] for s, e in tokens.spans].index("bank")])
    river, stream, money = found
    assert river @ stream > river @ money + 0.05


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(st.characters(), max_size=40), max_size=4))
def test_any_text_will_do(model: MiniLM, texts: list[str]) -> None:
    vectors = model.embed(texts, "query")
    assert vectors.shape == (len(texts), DIM)
    assert np.isfinite(vectors).all()
    for text, count, tokens in zip(texts, model.count(texts), model.embed_tokens(texts), strict=True):
        assert tokens.spans.shape == (count, 2)
        assert tokens.vectors.shape == (count, DIM)
        assert all(0 <= start < end <= len(text) for start, end in tokens.spans)


def test_threads_may_share_it(model: MiniLM) -> None:
    fresh, wanted, out = MiniLM(), model.embed(TEXTS, "query"), {}

    def work(n: int) -> None:
        out[n] = fresh.embed(TEXTS, "query"), fresh.count(TEXTS)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(out) == 6
    for vectors, counts in out.values():
        assert np.array_equal(vectors, wanted)
        assert counts == model.count(TEXTS)


def test_a_query_takes_milliseconds(model: MiniLM) -> None:
    """A bound ten times what is usual, for a busy machine; the best of many."""
    times = []
    for _ in range(20):
        started = time.perf_counter()
        model.embed(["How long are audit logs retained?"], "query")
        times.append(time.perf_counter() - started)
    assert min(times) < 0.02


# ---------------------------------------------------------------- the folder


@pytest.fixture
def home(model: MiniLM, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A models folder of this test's own, with the weights but no built graph."""
    for name in ("model.safetensors", "tokenizer.json"):
        shutil.copy(weights.folder() / name, tmp_path / name)
    monkeypatch.setenv("ONRECORD_MODELS", str(tmp_path))
    return tmp_path


def test_the_graph_is_built_once_by_however_many(home: Path, model: MiniLM) -> None:
    code = "from onrecord.models.local import MiniLM; print(MiniLM().embed(['a log'], 'query').tobytes().hex())"
    both = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    out = {process.communicate()[0].strip() for process in both}
    assert out == {model.embed(["a log"], "query").tobytes().hex()}
    built = home / f"minilm-{graph.BUILD}.onnx"
    assert 20e6 < built.stat().st_size < 30e6
    assert not list(home.glob(".build-*"))
    before = built.stat().st_mtime_ns
    MiniLM().embed(["a log"], "query")
    assert built.stat().st_mtime_ns == before


def test_a_damaged_graph_is_built_again(home: Path, model: MiniLM) -> None:
    built = home / f"minilm-{graph.BUILD}.onnx"
    built.write_bytes(b"not a graph")
    assert np.array_equal(MiniLM().embed(TEXTS[:1], "query"), model.embed(TEXTS[:1], "query"))
    assert built.stat().st_size > 20e6


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_damaged_files_are_refused_with_what_to_do(home: Path, name: str) -> None:
    data = bytearray((home / name).read_bytes())
    data[len(data) // 2] ^= 1
    (home / name).write_bytes(data)
    with pytest.raises(ModelError, match=r"damaged.*onrecord models pull"):
        MiniLM().embed(["hi"], "query")


def test_missing_weights_say_how_to_get_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONRECORD_MODELS", str(tmp_path))
    lazy = MiniLM()
    for call in (lambda: lazy.embed(["hi"], "query"), lambda: lazy.count(["hi"]), lambda: lazy.embed_tokens(["hi"])):
        with pytest.raises(ModelMissing, match="onrecord models pull"):
            call()
    assert (lazy.dim, lazy.max_tokens) == (384, 254)
