"""Past answers: one audit record a question, kept with the versions that it was given."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import insert, select

from onrecord.record import codec
from onrecord.record.database import Database
from onrecord.record.read import batches
from onrecord.record.schema import answer_versions, answers, versions
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
    """Keeps one answer. `body` is the audit record as JSON values; `given` the ids of the versions it was given."""
    with database.writing() as db:
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
        # a version that was erased while the question ran leaves no trace here
        present = [
            v
            for batch in batches(given, 500)
            for v in db.execute(select(versions.c.id).where(versions.c.id.in_(batch))).scalars()
        ]
        if present:
            db.execute(insert(answer_versions), [{"answer_id": id, "version_id": v} for v in present])


def get(database: Database, id: str, scope: Scope) -> dict[str, Any] | None:
    """The audit record with this id (or a beginning of it that no other has), within the scope's tenant."""
    query = (
        select(answers.c.body)
        .where(answers.c.tenant == scope.tenant, answers.c.id.startswith(id, autoescape=True))
        .limit(2)
    )
    with database.reading() as db:
        found = db.execute(query).scalars().all()
    return dict(json.loads(found[0])) if len(found) == 1 else None


def find(database: Database, scope: Scope, limit: int = 50) -> list[AnswerRow]:
    """The latest answers of the scope's tenant, newest first."""
    columns = (answers.c.id, answers.c.asked, answers.c.question, answers.c.outcome, answers.c.policy)
    query = select(*columns).where(answers.c.tenant == scope.tenant).order_by(answers.c.asked.desc()).limit(limit)
    with database.reading() as db:
        return [
            AnswerRow(row.id, codec.from_micros(row.asked), row.question, row.outcome, row.policy)
            for row in db.execute(query)
        ]
