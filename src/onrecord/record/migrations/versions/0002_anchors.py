"""Anchors: where the text of a version stands in an original that is no text."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "anchors",
        sa.Column("version_id", sa.String(32), sa.ForeignKey("versions.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("anchors")
