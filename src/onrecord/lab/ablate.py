"""An ablation is a list of policies over one dataset, each measured on the same questions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, product

from onrecord.errors import UsageError
from onrecord.ingest import Progress
from onrecord.lab.bench import remembering, throwaway
from onrecord.lab.dataset import Dataset
from onrecord.lab.overrides import overridden
from onrecord.lab.results import Run, measure
from onrecord.policy import Policy
from onrecord.ports import Embedder

MOST = 64


@dataclass(frozen=True, slots=True)
class Variant:
    """A policy under the settings that make it another one, such as `retrieval.mode=lexical`."""

    name: str
    policy: Policy


@dataclass(frozen=True, slots=True)
class Told:
    """Who wants to hear of documents taken in, and of questions done under a variant."""

    documents: Callable[[Progress], None] = lambda _: None
    questions: Callable[[str, int], None] = lambda _, __: None


def variants(policy: Policy, varied: Sequence[str]) -> list[Variant]:
    """Every combination of `name=value,value,…`, the first of which is what the others are held against.

    Raises UsageError for a name or value that there isn't, and for more than 64 combinations.
    """
    choices: list[list[str]] = []
    for text in varied:
        name, equals, values = text.partition("=")
        listed = [value.strip() for value in values.split(",") if value.strip()]
        if not equals or not listed:
            raise UsageError(
                f"{text!r} varies nothing.", "Write name=value,value, such as retrieval.mode=hybrid,lexical."
            )
        choices.append([f"{name.strip()}={value}" for value in dict.fromkeys(listed)])
    combined = list(product(*choices)) if choices else []
    if not combined:
        raise UsageError("Nothing varies.", "Say what should: --vary retrieval.mode=hybrid,lexical,dense")
    if len(combined) > MOST:
        raise UsageError(f"That makes {len(combined)} policies; the limit is {MOST}.", "Vary less at once.")
    return [Variant(" ".join(settings), overridden(policy, settings)) for settings in combined]


async def ablate(
    dataset: Dataset, policies: Sequence[Variant], embedder: Embedder, told: Told
) -> AsyncIterator[tuple[Variant, Run]]:
    """A run for every policy, in order of what they cut; what a policy doesn't change is neither cut nor embedded anew.

    Raises what measuring raises.
    """
    model = remembering(embedder)
    for _, alike in groupby(sorted(policies, key=_cutting), key=_cutting):
        some = list(alike)
        async with throwaway(dataset, some[0].policy, model, told.documents) as bench:
            for variant in some:
                engine = bench.engine.with_policy(variant.policy)
                yield variant, await measure(dataset, replace(bench, engine=engine), _tell(told, variant))


def _cutting(variant: Variant) -> str:
    return repr((variant.policy.chunking, variant.policy.limits))


def _tell(told: Told, variant: Variant) -> Callable[[int], None]:
    return lambda done: told.questions(variant.name, done)
