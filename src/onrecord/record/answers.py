"""Past answers: one audit record a question, kept with the versions that it was given."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, exists, func, insert, select

from onrecord.record import codec
from onrecord.record.database import Database
from onrecord.record.read import batches
from onrecord.record.schema import answer_versions, answers, documents, versions
from onrecord.record.scope import readable
from onrecord.types import Scope


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One line of a list of past answers."""

    id: str
    asked: datetime
    question: str
    outcome: str
    policy: str


def put(
    database: Database,
    id: str,
    scope: Scope,
    asked: datetime,
    outcome: str,
    body: Mapping[str, Any],
    given: Sequence[str],
) -> None:
    """Keeps one answer. `body` is the audit record as JSON values; `given` the ids of the versions it was given.

    An answer that was given a version which has been erased meanwhile is not kept: it quotes what must be gone.
    """
    with database.writing() as db:
        if not all(_present(db, batch) for batch in batches(given, 500)):
            return
        db.execute(
            insert(answers).values(
                id=id,
                tenant=scope.tenant,
                asked=codec.to_micros(asked),
                question=body["question"],
                outcome=outcome,
                policy=body["policy"],
                body=json.dumps(body, ensure_ascii=False),
            )
        )
        if given:
            db.execute(insert(answer_versions), [{"answer_id": id, "version_id": v} for v in dict.fromkeys(given)])


def get(database: Database, id: str, scope: Scope) -> dict[str, Any] | None:
    """The audit record with this id, or with a beginning of it that no other has; None where the scope may not."""
    query = select(answers.c.body).where(_readable(scope), answers.c.id.startswith(id, autoescape=True)).limit(2)
    with database.reading() as db:
        found = db.execute(query).scalars().all()
    return dict(json.loads(found[0])) if len(found) == 1 else None


def find(database: Database, scope: Scope, limit: int = 50) -> list[AnswerRow]:
    """The latest answers that the scope may read, newest first."""
    columns = (answers.c.id, answers.c.asked, answers.c.question, answers.c.outcome, answers.c.policy)
    query = select(*columns).where(_readable(scope)).order_by(answers.c.asked.desc(), answers.c.id).limit(limit)
    with database.reading() as db:
        return [
            AnswerRow(row.id, codec.from_micros(row.asked), row.question, row.outcome, row.policy)
            for row in db.execute(query)
        ]


def _present(db: Connection, given: Sequence[str]) -> bool:
    found = select(func.count()).select_from(versions).where(versions.c.id.in_(given))
    return db.execute(found).scalar_one() == len(set(given))


def _readable(scope: Scope) -> ColumnElement[bool]:
    """Answers of the scope's tenant that were given nothing but documents which the scope may read."""
    closed = (
        exists()
        .where(answer_versions.c.answer_id == answers.c.id)
        .where(versions.c.id == answer_versions.c.version_id)
        .where(documents.c.id == versions.c.document_id)
        .where(~readable(scope))
    )
    return and_(answers.c.tenant == scope.tenant, ~closed)
