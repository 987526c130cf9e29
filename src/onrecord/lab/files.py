"""The lab's files: written whole or not at all, and read as the form that they should have."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from onrecord.errors import UsageError

T = TypeVar("T")


def ready(path: Path, option: str) -> None:
    """Makes the folder of a file that will be written. Raises UsageError now where that would fail after long work."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=path.parent):
            pass
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    except OSError as error:
        raise _unwritable(path, option, error) from error


def write(path: Path, text: str, option: str) -> int:
    """How many bytes the file holds now. It is there whole or as it was.

    Raises UsageError where it can't be written, naming the option that names another place.
    """
    data = text.encode("utf-8", "replace")
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(data)
        part.replace(path)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise _unwritable(path, option, error) from error
    return len(data)


def _unwritable(path: Path, option: str, error: OSError) -> UsageError:
    return UsageError(f"{path} can't be written: {error.strerror}.", f"Name another place with {option}.")


def parse(form: type[T], data: bytes) -> T:
    """A dataclass from its JSON, no value of another type. Raises ValueError with one line that says what is wrong."""
    try:
        from_json(data, allow_inf_nan=False)  # the next step would take NaN for a number
        return TypeAdapter(form).validate_json(data, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(f"{where}: {first['msg']}" if where else first["msg"]) from error
