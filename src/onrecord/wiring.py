"""From settings and names to working parts. Adapters are imported only when they are chosen."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from onrecord.answer.confidence import Confidence, shipped
from onrecord.errors import UsageError
from onrecord.policy import Policy
from onrecord.ports import Embedder, Parser, TokenEmbedder, Writer


@runtime_checkable
class _Tokens(Protocol):
    def embed_tokens(self, texts: list[str]) -> object: ...


@dataclass(frozen=True, slots=True)
class Settings:
    """What the environment says. `embedder` is `local` or `openai:MODEL@URL`; the hash embedder is for tests.

    `confidence` is a file that `eval calibrate` wrote. Each key goes to the service that it is named for only.
    """

    named_store: str | None
    embedder: str
    api_key: str | None
    max_file_bytes: int | None
    confidence: Path | None = None
    llm_key: str | None = None

    @classmethod
    def from_environment(cls) -> Settings:
        return cls(
            named_store=os.environ.get("ONRECORD_STORE") or None,
            embedder=os.environ.get("ONRECORD_EMBEDDER") or "local",
            api_key=os.environ.get("ONRECORD_EMBEDDER_KEY"),
            max_file_bytes=_number("ONRECORD_MAX_FILE_BYTES"),
            confidence=Path(named) if (named := os.environ.get("ONRECORD_CONFIDENCE")) else None,
            llm_key=os.environ.get("ONRECORD_LLM_KEY"),
        )

    @property
    def store(self) -> str:
        return self.named_store or default_store()

    def policy(self) -> Policy:
        return Policy() if self.max_file_bytes is None else Policy().with_(limits={"file_bytes": self.max_file_bytes})


def default_store() -> str:
    return f"sqlite:///{data_folder() / 'onrecord.db'}"


def data_folder() -> Path:
    """Where this user's data is kept unless another place is named."""
    from platformdirs import user_data_path

    return user_data_path("onrecord")


def store_url(store: str) -> str:
    """A store as a URL; a plain path means an SQLite file there."""
    if "://" in store or store.startswith("sqlite:"):
        return store
    return f"sqlite:///{os.path.abspath(os.path.expanduser(store))}"


def embedder(name: str, api_key: str | None = None) -> Embedder:
    """The embedding model that a setting names. Raises UsageError, ModelMissing."""
    if name == "local":
        from onrecord.models.local import MiniLM

        return MiniLM()
    if name == "hash-test":
        from onrecord.models.offline import HashEmbedder

        return HashEmbedder()
    if place := _openai(name):
        from onrecord.models.openai import OpenAIEmbedder

        return OpenAIEmbedder(*place, api_key=api_key)
    raise UsageError(f"{name!r} names no embedding model.", "Use local, or openai:MODEL@https://host/v1")


def writer(name: str, api_key: str | None = None) -> Writer:
    """The language model that a setting names. Raises UsageError."""
    if place := _openai(name):
        from onrecord.models.openai import OpenAIChat

        return OpenAIChat(*place, api_key=api_key)
    raise UsageError(f"{name!r} names no language model.", "Use openai:MODEL@https://host/v1")


def _openai(name: str) -> tuple[str, str] | None:
    """The URL and the model of `openai:MODEL@URL`. A model's name may hold an @ itself, a URL's host part doesn't."""
    kind, _, rest = name.partition(":")
    model, _, url = rest.rpartition("@")
    return (url, model) if kind == "openai" and model and url else None


def token_embedder(model: Embedder) -> TokenEmbedder | None:
    """The same model as a token embedder, where it is one."""
    return model if isinstance(model, _Tokens) else None  # type: ignore[return-value]


def confidence(settings: Settings, held: str | None, embedder: str) -> Confidence:
    """The calibrated one that a setting names, or the one that the store holds as text, or what comes with OnRecord.

    Raises ModelError where it is damaged or was calibrated with another embedding model.
    """
    if settings.confidence is None and held is None:
        return shipped()
    # imported here: most stores have none
    from onrecord.answer import calibrated

    named = settings.confidence
    found = calibrated.read(named) if named is not None else calibrated.load(held or "", "this store")
    return calibrated.fits(found, embedder)


def parser() -> Parser:
    # imported here: asking needs no parser
    from onrecord.parse import parse

    return parse


def handbook() -> Path:
    """The bundled example documents."""
    packaged = Path(__file__).parent / "handbook"
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "examples" / "handbook"


def _number(name: str) -> int | None:
    value = os.environ.get(name)
    if not value:
        return None
    # a limit beyond 18 digits is no limit, and int() takes only so many
    if not (value.isascii() and value.isdecimal() and 0 < len(value.lstrip("0")) <= 18):
        raise UsageError(f"{name}={value!r} is not a number of bytes.", "Write digits, such as 33554432.")
    return int(value)
