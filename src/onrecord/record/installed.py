"""The calibrated confidence that a store was given, as text; one row of `meta`, put and taken away as a whole."""

from __future__ import annotations

from sqlalchemy import delete, insert, select

from onrecord.record.database import Database
from onrecord.record.schema import meta

_KEY = "confidence"


def confidence(database: Database) -> str | None:
    """None for a store that uses what comes with OnRecord."""
    with database.reading() as db:
        return db.execute(select(meta.c.value).where(meta.c.key == _KEY)).scalar()


def put_confidence(database: Database, text: str | None) -> None:
    """Takes the place of the one before; None takes it away. Of two at once the later one stays."""
    with database.writing() as db:
        db.execute(delete(meta).where(meta.c.key == _KEY))
        if text is not None:
            db.execute(insert(meta).values(key=_KEY, value=text))
