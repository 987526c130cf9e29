"""The tables, shared by SQLite and PostgreSQL. Times are microseconds since 1970 in UTC; sequences are JSON texts."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

metadata = MetaData()

# Revisions of this schema that this program can read, oldest first; the last one is what it writes.
REVISIONS = ("0001", "0002")

_row_id = BigInteger().with_variant(Integer, "sqlite")

meta = Table(
    "meta",
    metadata,
    Column("key", String(64), primary_key=True),
    Column("value", Text, nullable=False),
)

documents = Table(
    "documents",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("tenant", String(128), nullable=False),
    Column("uri", Text, nullable=False),
    Column("title", Text, nullable=False),
    UniqueConstraint("tenant", "uri"),
)

document_groups = Table(
    "document_groups",
    metadata,
    Column("document_id", ForeignKey("documents.id", ondelete="CASCADE"), primary_key=True),
    Column("group_name", String(128), primary_key=True),
)

# The original files, content-addressed; deflated.
blobs = Table(
    "blobs",
    metadata,
    Column("sha256", String(64), primary_key=True),
    Column("size", BigInteger, nullable=False),
    Column("data", LargeBinary, nullable=False),
)

versions = Table(
    "versions",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("document_id", ForeignKey("documents.id", ondelete="CASCADE"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("blob", ForeignKey("blobs.sha256"), nullable=False, index=True),
    Column("media_type", String(128), nullable=False),
    Column("encoding", String(32), nullable=False),
    Column("title", Text, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("superseded", BigInteger),
    Column("withdrawn", BigInteger),
    Column("outdated", Boolean, nullable=False),
    # last, because a row is read from its beginning and these two are long
    Column("runs", Text, nullable=False),
    Column("text", Text, nullable=False),
    UniqueConstraint("document_id", "number"),
)

# Where the text of a version stands in an original that is no text; packed.
anchors = Table(
    "anchors",
    metadata,
    Column("version_id", ForeignKey("versions.id", ondelete="CASCADE"), primary_key=True),
    Column("data", LargeBinary, nullable=False),
)

chunks = Table(
    "chunks",
    metadata,
    Column("id", _row_id, primary_key=True, autoincrement=True),
    Column("version_id", ForeignKey("versions.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("start", BigInteger, nullable=False),
    Column("end", BigInteger, nullable=False),
    Column("section", Text, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("text", Text, nullable=False),
    Column("markup", Text, nullable=False),
    Column("units", Text, nullable=False),
    Column("head", Integer, nullable=False),
    Column("terms", Text, nullable=False),
    Column("heading_terms", Text, nullable=False),
    sqlite_autoincrement=True,
)

# What was embedded for a chunk: one window, or several where a table outgrows the model.
windows = Table(
    "windows",
    metadata,
    Column("id", _row_id, primary_key=True, autoincrement=True),
    Column("chunk_id", ForeignKey("chunks.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("key", String(32), nullable=False, index=True),
    sqlite_autoincrement=True,
)

# Vectors by model and hash of the embedded text, so that nothing is ever embedded twice; float16.
vectors = Table(
    "vectors",
    metadata,
    Column("model", String(96), primary_key=True),
    Column("key", String(32), primary_key=True),
    Column("data", LargeBinary, nullable=False),
)

# The log that an index follows. `logged` tells two records apart that grew from one backup.
changes = Table(
    "changes",
    metadata,
    Column("id", _row_id, primary_key=True, autoincrement=True),
    Column("kind", String(8), nullable=False),
    Column("version_id", String(32), nullable=False),
    Column("logged", BigInteger, nullable=False),
    sqlite_autoincrement=True,
)

answers = Table(
    "answers",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("tenant", String(128), nullable=False),
    Column("asked", BigInteger, nullable=False),
    Column("question", Text, nullable=False),
    Column("outcome", String(16), nullable=False),
    Column("policy", String(16), nullable=False),
    Column("body", Text, nullable=False),
    Index("answers_by_tenant", "tenant", "asked"),
)

# Which versions an answer was given, so that a revision can name the answers that it breaks.
answer_versions = Table(
    "answer_versions",
    metadata,
    Column("answer_id", ForeignKey("answers.id", ondelete="CASCADE"), primary_key=True),
    Column("version_id", String(32), primary_key=True, index=True),
)
