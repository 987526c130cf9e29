"""How a calibrated confidence is shown, and put into a store."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from onrecord.apps.session import Session
from onrecord.apps.terminal import one_line, paragraph
from onrecord.errors import ModelMismatch

if TYPE_CHECKING:
    from onrecord.answer.confidence import Confidence
    from onrecord.lab.calibrate import Calibration


def install(this: Session, confidence: Confidence | None) -> None:
    """Gives the store a confidence, or takes it away; the store is made where there is none.

    Raises ModelMismatch where the store's vectors come from another model than the confidence was calibrated with.
    """
    from onrecord.answer import calibrated
    from onrecord.record import installed, write
    from onrecord.record.database import Database
    from onrecord.wiring import Settings, store_url

    database = Database(store_url(this.store or Settings.from_environment().store), create=confidence is not None)
    try:
        if confidence is None:
            installed.put_confidence(database, None)
            return
        assert confidence.promise is not None
        used, bound = confidence.promise.embedder, write.bound_model(database)
        if bound not in (None, used):
            raise ModelMismatch(
                f"This store's vectors come from the model {bound}, the run's from {used}.",
                "Calibrate with the store's model (ONRECORD_EMBEDDER).",
            )
        installed.put_confidence(database, calibrated.dump(confidence))
    finally:
        database.close()


def to_json(found: Calibration, kept: bool) -> dict[str, Any]:
    proof = found.proof
    return {
        "outcome": "kept" if kept else "proved" if proof else "not proved",
        "risk": found.risk,
        "confidence": found.level,
        "fit": found.fit,
        "losses": {name: round(loss, 6) for name, loss in found.losses.items()},
        "fitted_on": found.fitted_on,
        "tested": found.tested,
        "needed": found.needed,
        "lowest_risk": found.lowest[0] if found.lowest else None,
        "proof": {**asdict(proof), "coverage": proof.coverage} if proof else None,
        "artefact": found.confidence.name if proof else None,
        "doubts": list(found.doubts),
        "method": "learn then test: fixed sequences of exact binomial tests on questions that the fit did not see",
    }


def show(out: Console, found: Calibration, dry_run: bool) -> None:
    losses = ", ".join(f"{name} {loss:.3f}" for name, loss in found.losses.items())
    out.print(Text(f"Fitted on {found.fitted_on:,} questions: {found.fit} (log loss {losses})", style="dim"))
    sure, proof = f"{found.level:.0%}", found.proof
    if proof is None:
        told = f"Not proved: a share of wrong answers of at most {found.risk:.1%}, said with {sure} confidence."
        paragraph(out, Text(told, style="bold yellow"))
        needed = (
            f"That takes {found.needed:,} answers in a row without one wrong; {found.tested:,} questions were tested."
        )
        paragraph(out, Text(needed))
        if found.lowest is not None:
            risk, at = found.lowest
            told = f"These questions prove a share of at most {risk:.0%}, with {at.coverage:.0%} answered"
            paragraph(out, Text(f"{told}: --risk {risk:.2f}"))
        _doubts(out, found)
        paragraph(out, Text("Nothing was changed.", style="dim"))
        return
    told = f"At most {found.risk:.1%} of the answers are wrong, said with {sure} confidence, at a threshold of "
    paragraph(out, Text(f"{told}{proof.threshold:.3f}.", style="bold"))
    seen = f"{proof.wrong:,} of {proof.answered:,} answers were wrong, of {proof.tested:,} questions that were tested"
    paragraph(out, Text(f"{seen}; {proof.coverage:.0%} are answered. The exact upper bound is {proof.bound:.1%}."))
    paragraph(out, Text("It holds for questions like these, over all of them; not for each kind on its own."))
    _doubts(out, found)
    kept = "Nothing was changed." if dry_run else f"The store uses it now: {found.confidence.name}. Undo: --reset"
    paragraph(out, Text(kept, style="dim"))


def _doubts(out: Console, found: Calibration) -> None:
    for doubt in found.doubts:
        paragraph(out, Text(one_line(doubt), style="yellow"))
