import contextlib
import errno
import os
import socket
from pathlib import Path

import pytest

from onrecord.errors import RejectedInput, UsageError
from onrecord.sources import Source, expand

CAP = 1_000


def files(*paths: Path, prefix: str | None = "") -> list[str]:
    return [source.uri for source in expand(paths, prefix)]


def reason(path: Path) -> str:
    with pytest.raises(RejectedInput) as caught:
        Source("x", path).read(CAP)
    return caught.value.reason


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    for name in ("b.md", "a.md", "sub/c.md", "sub/deep/d.md", ".hidden", ".git/config", "sub/.cache/x"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    return root


def test_files_come_sorted_and_hidden_ones_stay_out(folder: Path) -> None:
    assert files(folder) == ["a.md", "b.md", "sub/c.md", "sub/deep/d.md"]


def test_a_hidden_file_or_folder_that_is_named_comes(folder: Path) -> None:
    assert files(folder / ".hidden", folder / ".git") == [".hidden", "config"]


def test_the_uri_is_the_absolute_path_without_a_prefix(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder / "sub")
    absolute = str(folder / "a.md")
    assert files(Path("../a.md"), prefix=None) == [absolute]
    assert files(folder / "sub/../a.md", prefix=None) == [absolute]
    assert files(Path(), prefix=None)[0] == str(folder / "sub/c.md")


def test_a_prefix_stands_before_the_path_below_what_was_named(folder: Path) -> None:
    assert files(folder, prefix="kb/")[:1] == ["kb/a.md"]
    assert files(folder / "sub/c.md", prefix="kb/") == ["kb/c.md"]


def test_a_file_named_twice_comes_once(folder: Path) -> None:
    assert files(folder / "a.md", folder, folder / "a.md", folder / "../root", prefix=None) == [
        str(folder / name) for name in ("a.md", "b.md", "sub/c.md", "sub/deep/d.md")
    ]


def test_two_files_under_one_uri_are_a_mistake(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other/a.md").write_text("another a")
    with pytest.raises(UsageError, match=r"would both be kb/a\.md"):
        files(folder, tmp_path / "other", prefix="kb/")
    assert len(files(folder, tmp_path / "other", prefix=None)) == 5


@pytest.mark.parametrize("name", ["missing.md", "loop", "broken", "no\0name", "x" * 300, "a.md/below"])
def test_a_missing_path_is_a_mistake_before_anything_is_read(folder: Path, name: str) -> None:
    (folder / "loop").symlink_to("loop")
    (folder / "broken").symlink_to("nowhere")
    with pytest.raises(UsageError, match="There is no file or folder"):
        next(expand([folder / "a.md", folder / name], None))


def test_links_to_folders_are_followed_only_where_they_are_named(folder: Path, tmp_path: Path) -> None:
    (folder / "again").symlink_to(folder)
    (tmp_path / "link").symlink_to(folder)
    assert files(folder) == ["a.md", "b.md", "sub/c.md", "sub/deep/d.md"]
    assert files(tmp_path / "link") == ["a.md", "b.md", "sub/c.md", "sub/deep/d.md"]


def test_a_link_within_the_folder_comes_once_as_what_it_leads_to(folder: Path) -> None:
    (folder / "l.md").symlink_to("sub/c.md")
    (folder / "sub/up.md").symlink_to("../a.md")
    assert files(folder) == ["a.md", "b.md", "sub/c.md", "sub/deep/d.md"]


def test_a_link_whose_end_may_not_be_seen_is_turned_away_and_the_rest_goes_in(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "l.md").symlink_to("a.md")
    known = os.path.realpath

    def seen(path: Path, **options: bool) -> str:
        if Path(path).name == "l.md":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return known(path, **options)

    monkeypatch.setattr(os.path, "realpath", seen)
    found = {source.uri: source for source in expand([folder], "")}
    assert found.keys() >= {"a.md", "l.md"}
    with pytest.raises(RejectedInput, match="to where nobody may look"):
        found["l.md"].read(100)


def test_a_link_to_a_hidden_file_of_the_folder_counts(folder: Path) -> None:
    # so Kubernetes mounts its config maps
    (folder / "l.md").symlink_to(".git/config")
    found = {source.uri: source for source in expand([folder], "")}
    assert found["l.md"].read(CAP) == b".git/config"


def test_a_link_out_of_the_folder_is_rejected_and_may_be_named_itself(folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.md"
    secret.write_text("a secret")
    for name, target in (("abs.md", secret), ("rel.md", Path("../secret.md")), ("gone.md", Path("../nowhere.md"))):
        (folder / name).symlink_to(target)
    (tmp_path / "hop").symlink_to(folder, target_is_directory=True)
    for named in (folder, tmp_path / "hop"):
        found = {source.uri: source for source in expand([named], "")}
        for name in ("abs.md", "rel.md", "gone.md"):
            with pytest.raises(RejectedInput, match="a link out of the folder") as caught:
                found[name].read(CAP)
            assert caught.value.reason == "link"
    (source,) = expand([folder / "abs.md"], "")
    assert source.read(CAP) == b"a secret"


def test_broken_links_are_rejected(folder: Path) -> None:
    (folder / "m.md").symlink_to("m.md")
    (folder / "n.md").symlink_to("nowhere")
    found = {source.uri: source for source in expand([folder], "")}
    assert reason(found["m.md"].path) == reason(found["n.md"].path) == "unreadable"


def test_what_is_not_a_regular_file_is_rejected_without_waiting(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "socket"))
        assert reason(folder / "socket") == "unreadable"
    assert reason(folder / "pipe") == "not_a_file"
    assert reason(Path("/dev/zero")) == "not_a_file"
    assert reason(folder) == "unreadable"


def test_no_handle_is_left_open(folder: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for path in (folder, folder / "a.md", Path("/dev/zero"), folder / "missing"):
        with contextlib.suppress(RejectedInput):
            Source("x", path).read(2)
    assert len(os.listdir("/proc/self/fd")) == before


def test_the_cap_is_the_last_size_that_fits(folder: Path) -> None:
    path = folder / "a.md"
    path.write_bytes(b"x" * CAP)
    assert len(Source("x", path).read(CAP)) == CAP
    path.write_bytes(b"x" * (CAP + 1))
    with pytest.raises(RejectedInput, match=r"has 1,001 bytes; the limit is 1,000") as caught:
        Source("x", path).read(CAP)
    assert caught.value.reason == "too_large"


def test_an_unreadable_file_is_rejected(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(path: object, flags: int) -> int:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "open", closed)  # root may read whatever its mode says
    assert reason(folder / "a.md") == "unreadable"


def test_a_folder_that_cant_be_listed_is_not_passed_over(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = os.scandir

    def closed(path: str) -> object:
        if path.endswith("deep"):
            raise PermissionError(13, "Permission denied", path)
        return listed(path)

    monkeypatch.setattr(os, "scandir", closed)
    assert files(folder) == ["a.md", "b.md", "sub/c.md", "sub/deep"]
    assert reason(folder / "sub/deep") == "unreadable"


@pytest.mark.parametrize(
    ("name", "uri"),
    [
        (b"caf\xc3\xa9.md", "café.md"),
        (b"caf\xe9.md", r"caf\xe9.md"),
        (b"two\nlines.md", "two\nlines.md"),
        (b" spaced .md ", " spaced .md "),
        (b"a?b#c%41.md", "a?b#c%41.md"),
    ],
)
def test_any_name_gives_a_uri_that_can_be_stored(tmp_path: Path, name: bytes, uri: str) -> None:
    (Path(os.fsdecode(bytes(tmp_path) + b"/" + name))).write_text("text")
    (source,) = expand([tmp_path], "")
    assert source.uri == uri
    assert source.uri.encode()
    assert source.read(CAP) == b"text"


def test_names_that_would_read_the_same_are_a_mistake(tmp_path: Path) -> None:
    for name in (b"\xe9", rb"\xe9"):
        (Path(os.fsdecode(bytes(tmp_path) + b"/" + name))).write_text("text")
    with pytest.raises(UsageError, match="would both be"):
        files(tmp_path)
