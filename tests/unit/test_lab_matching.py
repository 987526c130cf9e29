"""Gold answers in what was said."""

from __future__ import annotations

import pytest

from onrecord.lab.matching import stands_in


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("7 days", "Logs are kept for 7 days."),
        ("the Duty Manager", "Ask a duty manager, please."),
        ("2,000", "It costs “2,000”."),
        ("$5", "The fee is $5."),
        ("400日", "監査ログは400日間保存されます。"),
        ("監査ログ", "監査ログは400日間保存されます。"),
        ("Zürich", "in Zu\u0308rich"),
        ("STRASSE", "an der Straße"),
        ("400 дней", "Журналы хранятся 400 дней."),
        ("Ａ１", "die Stelle A1"),
    ],
)
def test_it_stands_there(answer: str, text: str) -> None:
    assert stands_in(answer, text)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("7 days", "Logs are kept for 17 days."),
        ("day", "Logs are kept for 7 days."),
        ("500日", "監査ログは400日間保存されます。"),
        ("Zurich", "in Zürich"),
        ("", "anything"),
        ("the", "the"),
        ("—", "a — b"),
    ],
)
def test_it_does_not(answer: str, text: str) -> None:
    assert not stands_in(answer, text)
