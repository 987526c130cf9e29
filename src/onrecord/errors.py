"""The one tree of errors. Each says what happened, what to do next, and whether a retry can help.

OnRecordError
├── UsageError            the caller asked for something impossible (exit code 2)
│   └── QuestionError     a question that can't be asked as it stands
├── DatasetError          evaluation data is missing or malformed
├── RejectedInput         one document can't be taken; the rest can (exit code 4)
├── StoreError            the record can't be opened, read or written
│   ├── StoreLocked       another process holds it (a retry helps)
│   └── StoreTooNew       a newer OnRecord wrote it
├── ModelError            a model is missing, damaged or doesn't answer
│   ├── ModelMissing      its weights are not on this machine
│   └── ModelUnavailable  an endpoint is down, slow or talks nonsense (a retry helps)
└── ModelMismatch         the store's vectors come from another embedding model
"""

from __future__ import annotations


class OnRecordError(Exception):
    """`message` is one line for a person; `hint` says what to do; `retryable` whether the same call may work later."""

    retryable = False

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()


class UsageError(OnRecordError):
    """The call itself is wrong; nothing was read or written."""


class QuestionError(UsageError):
    """The question is empty, too long or holds nothing to look for."""


class DatasetError(OnRecordError):
    """Evaluation data is missing or malformed; the message names the file and the line."""


class RejectedInput(OnRecordError):
    """One document was turned away. `reason` is a stable word for programs."""

    def __init__(self, reason: str, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.reason = reason


class StoreError(OnRecordError):
    """The record can't be opened, read or written."""


class StoreLocked(StoreError):
    """Another process kept the store busy for longer than the busy timeout."""

    retryable = True


class StoreTooNew(StoreError):
    """The store's schema is newer than this program knows."""


class ModelError(OnRecordError):
    """A model is missing, damaged or doesn't answer."""


class ModelMissing(ModelError):
    """The weights are not on this machine."""


class ModelUnavailable(ModelError):
    """A model's endpoint is down, too slow or answers with something unusable."""

    retryable = True


class ModelMismatch(OnRecordError):
    """The store's vectors were made by another embedding model."""
