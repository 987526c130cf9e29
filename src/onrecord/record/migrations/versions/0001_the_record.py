"""The record: documents, versions, chunks, windows, vectors, changes, answers."""

from alembic import op

from onrecord.record.schema import metadata

revision = "0001"
down_revision = None


def upgrade() -> None:
    metadata.create_all(op.get_bind(), checkfirst=False)


def downgrade() -> None:
    metadata.drop_all(op.get_bind())
