"""One page on a run: what is weak, every figure with its interval, pictures, and the worst questions with their why."""

from __future__ import annotations

from onrecord.lab.report.page import page

__all__ = ["page"]
