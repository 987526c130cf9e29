"""A `Scope` as SQL. Every read of documents goes through `visible`; there is no other way to them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from sqlalchemy import BindParameter, ColumnElement, Select, and_, bindparam, exists, func, or_, select

from onrecord.record.codec import to_micros
from onrecord.record.schema import chunks, document_groups, documents, versions
from onrecord.types import Scope

_GROUPS = (
    select(func.aggregate_strings(document_groups.c.group_name, "\n"))
    .where(document_groups.c.document_id == documents.c.id)
    .scalar_subquery()
)
CHUNK_COLUMNS = (
    chunks,
    versions.c.superseded,
    versions.c.outdated,
    _GROUPS.label("group_names"),
    documents.c.id.label("document_id"),
    documents.c.tenant,
    documents.c.uri,
    documents.c.title,
)


def readable(scope: Scope) -> ColumnElement[bool]:
    """Documents of the scope's tenant that are open to everyone there or to one of its groups."""
    of_document = document_groups.c.document_id == documents.c.id
    unrestricted = ~exists().where(of_document)
    if not scope.groups:
        return and_(documents.c.tenant == scope.tenant, unrestricted)
    member = exists().where(of_document, document_groups.c.group_name.in_(sorted(scope.groups)))
    return and_(documents.c.tenant == scope.tenant, or_(unrestricted, member))


def in_force(scope: Scope) -> ColumnElement[bool]:
    """Versions that were the current ones at the scope's moment; a withdrawn one only answers about before."""
    if scope.as_of is None:
        return and_(versions.c.superseded.is_(None), versions.c.withdrawn.is_(None))
    at = to_micros(scope.as_of)
    return and_(
        versions.c.created <= at,
        or_(versions.c.superseded.is_(None), versions.c.superseded > at),
        or_(versions.c.withdrawn.is_(None), versions.c.withdrawn > at),
    )


def visible(scope: Scope) -> ColumnElement[bool]:
    return and_(readable(scope), in_force(scope))


@lru_cache(maxsize=256)
def chunks_by_id(scope: Scope) -> Select[Any]:
    """The chunks among the bound `ids` that the scope may see."""
    joined = chunks.join(versions, versions.c.id == chunks.c.version_id).join(
        documents, documents.c.id == versions.c.document_id
    )
    ids: BindParameter[int] = bindparam("ids", expanding=True)
    return select(*CHUNK_COLUMNS).select_from(joined).where(chunks.c.id.in_(ids), visible(scope))
