"""What a spreadsheet shows for a value: numbers, shares, money and dates as their format says."""

from __future__ import annotations

import math
import re
from datetime import date, datetime, time, timedelta

_NOISE = re.compile(r"\[(?!\$)[^\]]*\]|_.|\*.")  # colours and conditions, room for a character, filling
_LITERAL = re.compile(r'"([^"]*)"|\\(.)|\[\$([^\]-]*)(?:-[^\]]*)?\]')
_DIGITS = re.compile(r"[#0?][#0?,]*(?:\.([#0?]*))?")


def shown(value: object, number_format: str = "General") -> str:
    """A cell's value as a reader sees it, near enough: what stands for no format of numbers is shown plainly."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, datetime):
        midnight = value.time() == time(0, 0)
        return value.date().isoformat() if midnight else value.isoformat(" ", "seconds").removesuffix(":00")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, time):
        return value.isoformat("seconds").removesuffix(":00")
    if isinstance(value, timedelta):
        return str(value)
    if isinstance(value, int | float):
        return _number(value, number_format)
    return str(value)


def _number(value: float, number_format: str) -> str:
    if not math.isfinite(value):
        return str(value)
    section = _NOISE.sub("", (number_format or "").split(";")[0])
    pattern = _LITERAL.sub(lambda found: found[1] or found[2] or found[3] or "", section)
    found = _DIGITS.search(pattern)
    if found is None or "General" in pattern or "E+" in pattern or "/" in pattern:
        return _plain(value)
    decimals = found[1] or ""
    digits = f"{value * (100 if '%' in section else 1):,.{len(decimals)}f}"
    if optional := len(decimals) - len(decimals.rstrip("#?")):
        least = len(digits) - optional
        digits = (digits[:least] + digits[least:].rstrip("0")).rstrip(".")
    if "," not in found[0]:
        digits = digits.replace(",", "")
    before, after = pattern[: found.start()].strip(), pattern[found.end() :].strip()
    return f"{before}{digits}{' ' if after[:1].isalpha() else ''}{after}"


def _plain(value: float) -> str:
    """As a sheet shows it without a format: no tail of zeros, no more digits than a double can promise."""
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else f"{value:.12g}"
