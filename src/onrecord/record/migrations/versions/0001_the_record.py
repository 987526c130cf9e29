"""The record: documents, versions, chunks, windows, vectors, changes, answers."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_row_id = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "meta",
        sa.Column("key", sa.String(64), primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
    )
    op.create_table(
        "documents",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("tenant", sa.String(128), nullable=False),
        sa.Column("uri", sa.Text, nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.UniqueConstraint("tenant", "uri"),
    )
    op.create_table(
        "document_groups",
        sa.Column("document_id", sa.String(32), sa.ForeignKey("documents.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("group_name", sa.String(128), primary_key=True),
    )
    op.create_table(
        "blobs",
        sa.Column("sha256", sa.String(64), primary_key=True),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "versions",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("document_id", sa.String(32), sa.ForeignKey("documents.id", ondelete="CASCADE"), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("blob", sa.String(64), sa.ForeignKey("blobs.sha256"), nullable=False, index=True),
        sa.Column("media_type", sa.String(128), nullable=False),
        sa.Column("encoding", sa.String(32), nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.Column("superseded", sa.BigInteger),
        sa.Column("withdrawn", sa.BigInteger),
        sa.Column("outdated", sa.Boolean, nullable=False),
        sa.Column("runs", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.UniqueConstraint("document_id", "number"),
    )
    op.create_table(
        "chunks",
        sa.Column("id", _row_id, primary_key=True, autoincrement=True),
        sa.Column(
            "version_id", sa.String(32), sa.ForeignKey("versions.id", ondelete="CASCADE"), nullable=False, index=True
        ),
        sa.Column("start", sa.BigInteger, nullable=False),
        sa.Column("end", sa.BigInteger, nullable=False),
        sa.Column("section", sa.Text, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("markup", sa.Text, nullable=False),
        sa.Column("units", sa.Text, nullable=False),
        sa.Column("head", sa.Integer, nullable=False),
        sa.Column("terms", sa.Text, nullable=False),
        sa.Column("heading_terms", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "windows",
        sa.Column("id", _row_id, primary_key=True, autoincrement=True),
        sa.Column("chunk_id", _row_id, sa.ForeignKey("chunks.id", ondelete="CASCADE"), nullable=False, index=True),
        sa.Column("key", sa.String(32), nullable=False, index=True),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "vectors",
        sa.Column("model", sa.String(96), primary_key=True),
        sa.Column("key", sa.String(32), primary_key=True),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "changes",
        sa.Column("id", _row_id, primary_key=True, autoincrement=True),
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("version_id", sa.String(32), nullable=False),
        sa.Column("logged", sa.BigInteger, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "answers",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("tenant", sa.String(128), nullable=False),
        sa.Column("asked", sa.BigInteger, nullable=False),
        sa.Column("question", sa.Text, nullable=False),
        sa.Column("outcome", sa.String(16), nullable=False),
        sa.Column("policy", sa.String(16), nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_index("answers_by_tenant", "answers", ["tenant", "asked"])
    op.create_table(
        "answer_versions",
        sa.Column("answer_id", sa.String(32), sa.ForeignKey("answers.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("version_id", sa.String(32), primary_key=True, index=True),
    )


def downgrade() -> None:
    for table in (
        "answer_versions",
        "answers",
        "changes",
        "vectors",
        "windows",
        "chunks",
        "versions",
        "blobs",
        "document_groups",
        "documents",
        "meta",
    ):
        op.drop_table(table)
