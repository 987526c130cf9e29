"""Does the promise of `eval calibrate` hold? Draws calibration and held-out questions, again and again.

    python benchmarks/calibration.py RUN --risk 0.2 --draws 100

RUN is a file that `onrecord eval run` wrote. Each draw parts its documents at random: on one half the confidence is
calibrated, of the other as many questions are drawn with repetition as there are, and the share of wrong answers at
the calibrated threshold is counted. A draw that proves nothing answers nothing.
"""

from __future__ import annotations

import argparse
import pathlib
import random
from dataclasses import replace

import numpy as np

from onrecord.answer.confidence import shipped
from onrecord.lab import calibrate, results
from onrecord.lab.trial import Trial


def halves(trials: list[Trial], draw: int) -> tuple[list[Trial], list[Trial]]:
    documents = sorted({calibrate.about(trial) for trial in trials})
    chosen = set(random.Random(draw).sample(documents, len(documents) // 2))
    return (
        [t for t in trials if calibrate.about(t) in chosen],
        [t for t in trials if calibrate.about(t) not in chosen],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=pathlib.Path)
    parser.add_argument("--risk", type=float, default=0.2)
    parser.add_argument("--draws", type=int, default=100)
    args = parser.parse_args()
    run = results.read(args.run)
    kept, proved, coverage, realised = 0, 0, [], []
    for draw in range(args.draws):
        first, second = halves([t for t in run.trials if t.parts], draw)
        found = calibrate.calibrate(replace(run, trials=tuple(first)), shipped(), args.risk)
        fresh = random.Random(draw).choices(second, k=len(second))
        if found.proof is None:
            kept += 1
            continue
        proved += 1
        scored = calibrate.scored(fresh, found.confidence.support)
        answered = [q for q in scored if q.confidence >= found.proof.threshold]
        wrong = sum(q.wrong_at(found.proof.threshold) for q in answered) / max(1, len(answered))
        kept += wrong <= args.risk
        coverage.append(len(answered) / len(fresh))
        realised.append(wrong)
    print(f"{run.stamp.dataset} {run.stamp.dataset_hash}, commit {run.stamp.commit}, policy {run.stamp.policy}")
    print(f"risk {args.risk}: kept in {kept} of {args.draws} draws, {proved} of which proved a threshold")
    if proved:
        means = f"share of wrong answers {np.mean(realised):.3f}, of questions answered {np.mean(coverage):.3f}"
        print(f"of these, on average: {means}")


if __name__ == "__main__":
    main()
