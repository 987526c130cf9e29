"""Front matter: the metadata that stands above a Markdown text between `---` (YAML) or `+++` (TOML) lines."""

from __future__ import annotations

import re
import tomllib

import yaml

_BLOCK = re.compile(
    r"\A(?P<mark>---|\+\+\+)[ \t]*\r?\n(?P<body>.*?)(?:(?<=\n)(?:(?P=mark)|\.\.\.)[ \t]*(?:\r?\n|\Z))", re.DOTALL
)
_KEY = re.compile(r"""\s*(?:#[^\n]*\n\s*)*(?:["']?[\w.-][\w .-]*["']?\s*[:=]|\Z)""")
_LIMIT = 1 << 16  # metadata beyond 64 KiB isn't looked into


def front_matter(text: str) -> tuple[int, dict[str, str]]:
    """Where the text proper begins, and the metadata that are words (lower-case keys). Never raises."""
    found = _BLOCK.match(text)
    if not found or not _KEY.match(found["body"]):
        return 0, {}
    return found.end(), _words(found["body"], found["mark"] == "+++")


def _words(body: str, toml: bool) -> dict[str, str]:
    if len(body) > _LIMIT:
        return {}
    try:
        # the base loader makes strings of everything: "1.10" stays as written and no date can be invalid
        data = tomllib.loads(body.replace("\r\n", "\n")) if toml else yaml.load(body, Loader=yaml.BaseLoader)  # noqa: S506
    except (yaml.YAMLError, tomllib.TOMLDecodeError, ValueError, RecursionError):
        return {}
    pairs = data.items() if isinstance(data, dict) else ()
    return {k.lower(): " ".join(v.split()) for k, v in pairs if isinstance(k, str) and isinstance(v, str)}
