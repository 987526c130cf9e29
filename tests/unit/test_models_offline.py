"""The hash embedder: what tests rely on."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from onrecord.models.offline import HashEmbedder
from onrecord.ports import Embedder, TokenEmbedder


def test_it_is_both_kinds_of_embedder_and_says_what_it_is() -> None:
    model = HashEmbedder()
    both: tuple[Embedder, TokenEmbedder] = (model, model)
    assert both[0].embed(["hi"], "query").shape == (1, 64)
    assert both[1].embed_tokens(["hi"])[0].vectors.shape == (1, 64)
    assert model.name.startswith("hash-test-")
    assert HashEmbedder(32).name != model.name


@given(st.lists(st.text(st.characters(), max_size=60), max_size=5), st.integers(2, 80))
def test_vectors_are_unit_finite_and_depend_on_the_text_alone(texts: list[str], dim: int) -> None:
    model = HashEmbedder(dim)
    vectors = model.embed(texts, "query")
    assert vectors.shape == (len(texts), dim)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    for text, vector in zip(texts, vectors, strict=True):
        assert np.array_equal(model.embed([text], "document")[0], vector)
    for text, tokens, count in zip(texts, model.embed_tokens(texts), model.count(texts), strict=True):
        assert tokens.spans.shape == (count, 2)
        assert tokens.vectors.shape == (count, dim)
        assert np.allclose(np.linalg.norm(tokens.vectors, axis=1), 1, atol=1e-5)
        assert all(text[start:end].strip() for start, end in tokens.spans)


def test_shared_words_bring_texts_together_whatever_their_case() -> None:
    one, same, near, far = HashEmbedder().embed(
        ["The audit log is kept", "the AUDIT log is kept", "an audit log", "penguins swim quickly"], "document"
    )
    assert one @ same > 0.999
    assert one @ near > one @ far + 0.2


def test_no_more_words_are_read_than_it_says() -> None:
    model = HashEmbedder(max_tokens=3)
    short, long = model.embed(["a b c", "a b c d e f"], "query")
    assert np.array_equal(short, long)
    assert model.count(["a b c d"]) == [4]
    assert len(model.embed_tokens(["a b c d"])[0].vectors) == 3


def test_another_process_gets_the_same_numbers() -> None:
    code = (
        "from onrecord.models.offline import HashEmbedder\n"
        "print(HashEmbedder(8).embed(['a log'], 'query').tobytes().hex())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert bytes.fromhex(done.stdout) == HashEmbedder(8).embed(["a log"], "query").tobytes()
