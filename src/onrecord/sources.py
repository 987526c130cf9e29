"""From the paths a person names to the files to be ingested, each under its uri."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from onrecord.errors import RejectedInput, UsageError


@dataclass(frozen=True, slots=True)
class Source:
    """A file under the uri that is its identity. `read` gives its bytes. `strays`: a link out of the named folder."""

    uri: str
    path: Path
    strays: bool = False

    def read(self, cap: int) -> bytes:
        """The file's bytes, at most `cap` of them. Raises RejectedInput."""
        if self.strays:
            to = _text(_target(self.path) or "where nobody may look")
            raise RejectedInput("link", f"It is a link out of the folder, to {to}.", "Ingest that by its own name.")
        try:
            with open(self.path, "rb", opener=_without_waiting) as file:
                status = os.fstat(file.fileno())
                if not stat.S_ISREG(status.st_mode):
                    raise RejectedInput("not_a_file", "This is not a regular file.", "Save what it gives as one.")
                data = file.read(cap + 1)
        except OSError as error:
            why = f"The file can't be read: {error.strerror}."
            raise RejectedInput("unreadable", why, "Check its rights.") from error
        if len(data) > cap:
            raise RejectedInput(
                "too_large",
                f"The file has {max(status.st_size, len(data)):,} bytes; the limit is {cap:,}.",
                "Split it, or raise ONRECORD_MAX_FILE_BYTES.",
            )
        return data


def expand(paths: Sequence[Path], prefix: str | None) -> Iterator[Source]:
    """The files under the paths, sorted; hidden ones are left out and links to folders not followed.

    A link to a file of the same folder is left out where that file is taken itself. One that leads out of the folder
    comes as a source that can't be read: who may write into a folder can't make other files public by that.
    The uri is the absolute path, or `prefix` and the path below the folder that was named. A folder that can't be
    listed comes as a source that can't be read. Raises UsageError, before anything is read, where a path is missing
    or two files would have the same uri.
    """
    for path in paths:
        if not os.path.exists(path):
            raise UsageError(f"There is no file or folder {_text(str(path))}.", "Check the path.")
    seen: dict[str, Source] = {}
    for path in paths:
        root = Path(os.path.abspath(path))
        for file, strays in _files(root):
            below = file.relative_to(root).as_posix() if file != root else root.name
            uri = _text(file.as_posix() if prefix is None else prefix + below)
            other = seen.setdefault(uri, Source(uri, file, strays)).path
            if other != file:
                raise UsageError(
                    f"{_text(str(other))} and {_text(str(file))} would both be {uri}.",
                    "Ingest them one after the other under prefixes of their own.",
                )
    yield from seen.values()


def _files(root: Path) -> Iterator[tuple[Path, bool]]:
    """The files to be taken, and whether each strays."""
    if not root.is_dir():
        yield root, False
        return
    inside = os.path.realpath(root)
    closed: list[OSError] = []
    for folder, folders, names in os.walk(root, onerror=closed.append):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            file = Path(folder, name)
            if name.startswith("."):
                continue
            if not file.is_symlink():
                yield file, False
                continue
            target = _target(file)
            if target is None:
                yield file, True
                continue
            steps = os.path.relpath(target, inside).split(os.sep)
            taken_itself = os.path.isfile(target) and not any(step.startswith(".") for step in steps)
            if not taken_itself:
                yield file, steps[0] == os.pardir
    for error in closed:
        yield Path(error.filename), False


def _target(link: Path) -> str | None:
    """Where a link leads; None where that may not be seen."""
    try:
        return os.path.realpath(link)
    except OSError:
        return None


def _without_waiting(path: str, flags: int) -> int:
    """Opens a pipe or a device without waiting for its other end."""
    return os.open(path, flags | os.O_NONBLOCK)


def _text(name: str) -> str:
    """File names that are not UTF-8 keep a readable, storable form."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
