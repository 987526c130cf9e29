import pytest

from onrecord.errors import UsageError
from onrecord.lab.ablate import variants
from onrecord.lab.overrides import overridden
from onrecord.policy import Policy


def test_numbers_words_and_groups() -> None:
    policy = overridden(Policy(), ["retrieval.mode=lexical", "ranking.dense = -2.5", "chunking.content=90"])
    expected = Policy().with_(retrieval={"mode": "lexical"}, ranking={"dense": -2.5}, chunking={"content": 90})
    assert policy == expected
    assert overridden(Policy(), []) == Policy()


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("", "sets nothing"),
        ("retrieval.mode", "sets nothing"),
        ("retrieval=1", "is a group"),
        ("retrieval.mode=fast", "hybrid, lexical, dense"),
        ("retrieval.mode.x=1", "is no group"),
        ("retrieval.pools=1", "there is no 'pools'"),
        ("nothing.pool=1", "there is no 'nothing'"),
        ("retrieval.pool=many", "is no number"),
        ("retrieval.pool=1.5", "is no number"),
        ("ranking.dense=", "is no number"),
        ("ranking.dense=nan", "is no number"),
        ("chunking.content=0", "has to be at least 1"),
    ],
)
def test_what_cannot_be_set_is_told(setting: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        overridden(Policy(), [setting])


def test_every_combination_the_first_named_first() -> None:
    found = variants(Policy(), ["retrieval.mode=hybrid, dense", "retrieval.rerank=30,0"])
    assert [variant.name for variant in found] == [
        "retrieval.mode=hybrid retrieval.rerank=30",
        "retrieval.mode=hybrid retrieval.rerank=0",
        "retrieval.mode=dense retrieval.rerank=30",
        "retrieval.mode=dense retrieval.rerank=0",
    ]
    assert found[0].policy == Policy()
    assert len({variant.policy.hash for variant in found}) == 4


@pytest.mark.parametrize(
    ("varied", "message"),
    [
        ([], "Nothing varies"),
        (["retrieval.mode"], "varies nothing"),
        (["retrieval.mode="], "varies nothing"),
        (["retrieval.mode=,"], "varies nothing"),
        (["retrieval.mode=hybrid,x"], "'x' is not to be had"),
        (["retrieval.pool=" + ",".join(map(str, range(1, 66)))], "65 policies; the limit is 64"),
    ],
)
def test_what_cannot_be_varied_is_told(varied: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        variants(Policy(), varied)
