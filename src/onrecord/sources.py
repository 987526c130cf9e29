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
    """A file under the uri that is its identity. `read` gives its bytes."""

    uri: str
    path: Path

    def read(self, cap: int) -> bytes:
        """The file's bytes, at most `cap` of them. Raises RejectedInput."""
        try:
            # a pipe or a device would block or never end; opening must not wait for one either
            handle = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
            with os.fdopen(handle, "rb") as file:
                status = os.fstat(file.fileno())
                if not stat.S_ISREG(status.st_mode):
                    raise RejectedInput("not_a_file", "This is not a regular file.")
                data = file.read(cap + 1)
        except OSError as error:
            raise RejectedInput("unreadable", f"The file can't be read: {error.strerror}.") from error
        if len(data) > cap:
            raise RejectedInput(
                "too_large",
                f"The file has {max(status.st_size, len(data)):,} bytes; the limit is {cap:,}.",
                "Split it, or raise ONRECORD_MAX_FILE_BYTES.",
            )
        return data


def expand(paths: Sequence[Path], prefix: str | None) -> Iterator[Source]:
    """The files under the paths, sorted; hidden ones are left out and links to folders not followed.

    The uri is the absolute path, or `prefix` and the path below the folder that was named. Raises UsageError where a
    path is missing, before anything is read.
    """
    for path in paths:
        if not path.exists():
            raise UsageError(f"There is no file or folder {path}.", "Check the path.")
    seen: set[str] = set()
    for path in paths:
        root = Path(os.path.abspath(path))
        for file in _files(root):
            below = file.relative_to(root).as_posix() if file != root else root.name
            uri = file.as_posix() if prefix is None else prefix + below
            if uri not in seen:
                seen.add(uri)
                yield Source(_text(uri), file)


def _files(root: Path) -> Iterator[Path]:
    if not root.is_dir():
        yield root
        return
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if not name.startswith("."):
                yield Path(folder, name)


def _text(uri: str) -> str:
    """File names that are not UTF-8 keep a readable, storable form."""
    return uri.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
