"""The only maker of claims: a draft becomes one if its quotes are in the passages and say what it says."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from onrecord import fold
from onrecord.answer.demand import demand
from onrecord.spans import locate as locate_quote
from onrecord.spans import readable
from onrecord.types import Chunk, Citation, Claim, Draft, Evidence, Place, Span, Verdict

Placer = Callable[[str, Span], Place | None]

_NEGATIONS = frozenset(
    """
    no not never none nobody nothing without cannot neither nor dont doesnt isnt arent cant wont
    """.split()
)


def locate(draft: Draft, evidence: Evidence, place: Placer) -> tuple[Citation, ...]:
    """The draft's quotes as citations; empty unless every one stands in the very passage that it names."""
    citations: list[Citation] = []
    for label, quote in draft.quotes:
        passage = evidence.passage(label)
        found = locate_quote(quote, passage.chunk.text) if passage is not None and quote.strip() else None
        if passage is None or found is None:
            return ()
        chunk = passage.chunk
        span = found.shift(chunk.span.start)
        citations.append(
            Citation(
                document=chunk.document.uri,
                title=chunk.document.title,
                version_id=chunk.version_id,
                span=span,
                quote=found.of(chunk.text),
                section=chunk.section,
                place=place(chunk.version_id, span),
                superseded=chunk.superseded,
            )
        )
    return tuple(citations)


async def verify(draft: Draft, citations: Sequence[Citation], evidence: Evidence) -> Verdict:
    """Every content word, number and negation of the draft has to stand in the words it quotes.

    Exact by design: it lets through what copies or shortens its quotes, and nothing that rephrases them. What its part
    of the question demands for certain has to be there as well.
    """
    quoted = [_seen(citation, evidence) for citation in citations]
    said = [t for t in fold.tokens(draft.text) if not t.stop]
    stand = {term for text in quoted for term in fold.terms(text)}
    foreign = [t for t in said if t.terms[0] not in stand]
    if foreign:
        words = ", ".join(draft.text[t.start : t.end] for t in foreign[:3])
        share = 1.0 - len(foreign) / len(said)
        return Verdict("unsupported", share, "quote+lexical", f"not in the quote: {words}")
    if _negations(draft.text) != _negations(" ".join(quoted)):
        return Verdict("contradicted", 0.0, "quote+lexical", "a negation was lost or added")
    if unmet := _unmet(draft, citations, evidence):
        return Verdict("partial", 0.5, "demand", f"it doesn't answer what was asked: {unmet}")
    return Verdict("supported", 1.0, "quote+lexical")


def claim(draft: Draft, citations: tuple[Citation, ...], verdict: Verdict) -> Claim:
    """Raises ValueError for a draft that isn't supported or cites nothing: a caller's bug."""
    if verdict.label != "supported" or not citations:
        raise ValueError("only a supported draft with citations is a claim")
    return Claim(draft.text, citations, verdict, draft.part)


def _unmet(draft: Draft, citations: Sequence[Citation], evidence: Evidence) -> str:
    part = next((support.part for support in evidence.supports if support.part.number == draft.part), None)
    if part is None:
        return ""
    chunks = [_chunk(citation, evidence) for citation in citations]
    around = frozenset(term for c in chunks for terms in (c.terms, c.heading_terms) for term in terms)
    return demand(part.text).unmet(draft.text, around)


def _chunk(citation: Citation, evidence: Evidence) -> Chunk:
    return next(
        p.chunk
        for p in evidence.passages
        if p.chunk.version_id == citation.version_id and p.chunk.span.holds(citation.span)
    )


def _seen(citation: Citation, evidence: Evidence) -> str:
    """A quote as its reader sees it, without the marks of its markup."""
    chunk = _chunk(citation, evidence)
    return readable(chunk.text, chunk.markup, citation.span.shift(-chunk.span.start))


def _negations(text: str) -> frozenset[str]:
    return frozenset(term for term in fold.terms(text) if term in _NEGATIONS)
