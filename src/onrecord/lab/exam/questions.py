"""From material to candidates: each function knows one way to ask, and is the provenance of what it makes."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from onrecord import fold
from onrecord.lab.exam.material import Block, Corpus, Page, Quote, Row

# What a label over a section asks, of the thing that the page is about.
_LABELS: Mapping[str, str] = {
    "meaning": "What does {} mean?",
    "impact": "What is the impact of {}?",
    "severity": "What is the severity of {}?",
    "mitigation": "How do I mitigate {}?",
    "resolution": "How is {} resolved?",
    "remediation": "How is {} remediated?",
    "diagnosis": "How do I diagnose {}?",
    "cause": "What causes {}?",
    "causes": "What causes {}?",
    "root cause": "What is the root cause of {}?",
    "symptoms": "What are the symptoms of {}?",
    "purpose": "What is the purpose of {}?",
    "scope": "What is the scope of {}?",
    "prerequisites": "What are the prerequisites of {}?",
    "owner": "Who owns {}?",
    "rollback": "How is {} rolled back?",
    "escalation": "How is {} escalated?",
}
_GENERAL = frozenset(
    """overview introduction readme index about home contents summary notes general background faq other misc links
    references appendix changelog description definition table example examples usage""".split()
)
_ASKED = re.compile(r"^(?:what|who|when|where|which|why|how|can|do|does|is|are|should|may|will|must)\b.*\?$", re.I)
_DEFINES = re.compile(
    r"^(?P<article>(?:The|An?) )?(?P<what>[A-Za-z][\w./+-]*(?: [\w./+-]+){0,3}?)(?: \([^)]{2,20}\))? "
    r"(?:is|are) (?:an? |the |responsible for |used (?:to|for) )(?P<rest>.{12,})"
)
# What only a person is.
_OFFICE = re.compile(
    r"\b(?:officer|manager|director|engineer|lead|head|chair|owner|member|contact) (?:of|for|at|in)\b|officer\b"
)
_LASTS = re.compile(
    r"^(?P<what>(?:The |An? |All )?[A-Za-z][\w/-]*(?: (?!is |are |who |that |which )[\w/-]+){0,5}?) (?P<be>is|are) "
    r"(?P<done>\w+(?:ed|pt|nt|un)) (?P<how>for|every|within) "
    r"(?P<amount>(?:\d[\d.,]*|one|two|three|four|five|six|seven|ten|twelve) (?:working |calendar |business |more )?"
    r"(?:second|minute|hour|day|week|month|year)s?)\b"
)
_ODD = re.compile(r"[<>{}\[\]|`*_#]|https?:|\.\.\.|…|:$")
_POINTS = re.compile(
    r"\b(?:this|that|these|those|it|its|they|them|their|he|she|such|here|there|above|below|following|previous|same"
    r"|former|latter|other|another|first|next|one|some|many|most|i|we|you)\b",
    re.I,
)
# "How long does it take" points at nothing.
_EXPLETIVE = re.compile(r"\b(?:does|did|will|would|is) it (?=take\b|possible\b|safe\b|allowed\b)", re.I)
# Words that no name holds.
_LOOSE = frozenset(
    """and or but so because then also note see if when while as to for in on at by with from of not no all any every
    each your our my their make sure sometimes usually often typical only""".split()
)
# Heads of columns that ask nothing.
_VAGUE = frozenset(
    """value values notes note remark remarks comment comments description event item name type kind what who where how
    between within answer other details example examples more after before light link links yes no has have
    can be is are may must""".split()
)
_TOLD = 5  # sentences that a section's beginning counts as its answer
# What may be asked of a named alert or component; the words by which a page would say it (none: any number would).
_FACTS = tuple(
    (question, frozenset(fold.terms(words)))
    for question, words in (
        ("Which team owns {}?", "team owner own owned owns responsible maintainer contact escalate escalation group"),
        ("What is the severity of {}?", "severity severities critical warning info priority page sev urgent"),
        ("For how long must the condition last before {} fires?", "minute minutes hour hours second seconds m h long"),
        ("At what threshold does {} fire?", ""),
        ("Since which version is {} available?", "version versions release released since added introduced"),
    )
)
# How things can be; a name's state is swapped for another of the same row.
_STATES = (
    ("High", "Low", "Critical", "Warning", "Full"),
    ("Down", "Unavailable", "Unreachable", "Unhealthy", "Degraded", "Lost"),
    ("Failed", "Failing", "Failure", "Failures", "Error", "Errors", "Timeout", "Slow", "Stuck", "Blocked", "Halted"),
    ("Missing", "Expired", "Mismatch"),
)
_FAILURES = frozenset(("Failed", "Failing", "Failure", "Failures", "Error", "Errors"))
_NUMBERS = frozenset(fold.terms("half one two three four five ten majority quorum quarter third most all any percent"))
_OF_NAMES = ("What does {} mean?", "How do I fix {}?", "What is the impact of {}?", "What triggers {}?")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A question with what is known of its truth. `source` names the function that made it.

    Answerable: `quotes` answer it. Unanswerable: `near` are the documents that tempt. `original` is the question as
    it was made, where the model `worded_by` has worded it.
    """

    question: str
    kind: str
    source: str
    answerable: bool
    quotes: tuple[Quote, ...] = ()
    answers: tuple[str, ...] = ()
    near: tuple[str, ...] = ()
    original: str = ""
    worded_by: str = ""

    @property
    def document(self) -> str:
        return self.quotes[0].document if self.quotes else self.near[0]


# ---------------------------------------------------------------- answerable


def from_labels(corpus: Corpus) -> Iterator[Candidate]:
    """A section under a label such as "Impact", on a page about one thing: "What is the impact of X?"."""
    for thing, label, blocks in _labelled(corpus):
        told = [quote for block in blocks for quote in block.sentences][:_TOLD]
        if told and _is_statement(told[0].text):
            yield Candidate(_LABELS[label].format(thing), "section", "label", True, tuple(told))


def from_headings(corpus: Corpus) -> Iterator[Candidate]:
    """A heading that is a question, answered below it."""
    seen: set[tuple[str, str]] = set()
    for block in corpus.blocks():
        key = (block.document, block.label)
        if key in seen or not _ASKED.match(block.label) or not block.sentences or _ODD.search(block.label):
            continue
        seen.add(key)
        if stands_alone(block.label) and len(block.label.split()) >= 5 and _is_statement(block.sentences[0].text):
            yield Candidate(_sentence(block.label), "faq", "heading", True, block.sentences[:_TOLD])


def from_definitions(corpus: Corpus) -> Iterator[Candidate]:
    """A sentence that says what a named thing is."""
    for block in corpus.blocks():
        for quote in block.sentences:
            found = _DEFINES.match(quote.text)
            if found and _is_name(found["what"]) and _is_statement(quote.text):
                what = f"{(found['article'] or '').lower()}{found['what']}"
                verb = "are" if " are " in quote.text[: found.start("rest")] else "is"
                asks = "Who" if not found["article"] and _OFFICE.search(found["rest"]) else "What"
                yield Candidate(f"{asks} {verb} {what}?", "definition", "definition", True, (quote,))


def from_durations(corpus: Corpus) -> Iterator[Candidate]:
    """A sentence that says for how long, how often or within what time something is done."""
    asks = {"for": "For how long {} {} {}?", "every": "How often {} {} {}?", "within": "Within what time {} {} {}?"}
    for block in corpus.blocks():
        for quote in block.sentences:
            found = _LASTS.match(quote.text)
            if found and _is_plain(found["what"]) and not _ODD.search(quote.text):
                first, *rest = found["what"].split()
                what = " ".join([first.lower() if first.istitle() else first, *rest])
                question = asks[found["how"]].format(found["be"], what, found["done"])
                yield Candidate(question, "value", "duration", True, (quote,), (found["amount"],))


def from_tables(corpus: Corpus) -> Iterator[Candidate]:
    """A cell, asked for by its row's first cell and its column's head."""
    for _, row, head, cell in _cells(corpus):
        yield Candidate(_of_cell(row.cells[0].text, head), "table", "cell", True, (row.whole,), (cell.text,))


# ---------------------------------------------------------------- near misses


def missing_facts(corpus: Corpus) -> Iterator[Candidate]:
    """What may be asked of a named thing, and no page that names it says a word about."""
    named: dict[str, set[str]] = defaultdict(set)
    for thing, _, blocks in _labelled(corpus):
        if len(_humps(thing)) >= 2:
            named[thing].add(blocks[0].document)
    for thing, uris in named.items():
        own = fold.terms(thing)[0]
        about = [page.terms for page in corpus.pages if own in page.terms or page.uri in uris]
        for question, words in _FACTS:
            said = (words & terms if words else any(t.isdigit() or t in _NUMBERS for t in terms) for terms in about)
            if not any(said):
                yield Candidate(question.format(thing), "missing fact", "fact", False, near=tuple(sorted(uris)))


def swapped_names(corpus: Corpus) -> Iterator[Candidate]:
    """A name whose state is another one, so that nothing bears it: KubeletUnreachable beside KubeletDown."""
    named: dict[str, set[str]] = defaultdict(set)
    for thing, _, blocks in _labelled(corpus):
        if len(_humps(thing)) >= 2:
            named[thing].add(blocks[0].document)
    for name in sorted(named):
        *front, last = _humps(name)
        for state in next((row for row in _STATES if last in row), ()):
            made = "".join([*front, state])
            # a failure and an error are one thing to who asks
            if state != last and not {state, last} <= _FAILURES and not corpus.holds(fold.terms(made)[:1]):
                question = _OF_NAMES[len(made) % len(_OF_NAMES)].format(made)
                yield Candidate(question, "swapped name", "name", False, near=tuple(sorted(named[name])))


def swapped_identifiers(corpus: Corpus) -> Iterator[Candidate]:
    """An identifier with another number, which nothing bears: RDS-4479 beside RDS-4471."""
    seen: set[str] = set()
    for block in corpus.blocks():
        for row in block.rows[1:]:
            found = _IDENTIFIER.fullmatch(row.cells[0].text) if row.cells else None
            if not found or found[0] in seen:
                continue
            seen.add(found[0])
            digits = found[2]
            for step in (7, 3, 5, 1):
                made = found[1] + str(int(digits) + step).zfill(len(digits))
                if not corpus.holds(fold.terms(made)[:1]):
                    near = (block.document,)
                    yield Candidate(f"What does {made} mean?", "swapped identifier", "identifier", False, near=near)
                    break


def missing_columns(corpus: Corpus) -> Iterator[Candidate]:
    """A column that another table of the same sort of things has, asked of a row whose table lacks it."""
    heads: dict[tuple[str, str], set[str]] = defaultdict(set)
    rows: dict[tuple[str, str], Block] = {}
    for block, row, head, _ in _cells(corpus):
        heads[_sort(block), head].add(block.document)
        rows.setdefault((block.document, row.cells[0].text), block)
    wanted = sorted(heads)
    for (document, key), block in rows.items():
        own = {cell.text.lower() for cell in block.rows[0].cells}
        about = frozenset(fold.terms(key))
        for sort, head in wanted:
            asked = frozenset(fold.terms(head))
            strange = sort == _sort(block) and document not in heads[sort, head] and head.lower() not in own
            if strange and asked and not _says(corpus, {document}, asked) and not corpus.holds(about | asked):
                yield Candidate(_of_cell(key, head), "missing column", "cell", False, near=(document,))


# ---------------------------------------------------------------- parts

_IDENTIFIER = re.compile(r"([A-Z]{2,8}-)(\d{2,6})")
_HUMP = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+")


def _labelled(corpus: Corpus) -> Iterator[tuple[str, str, list[Block]]]:
    """(thing, label, blocks) of the sections under a known label on pages that are about one thing."""
    for page in corpus.pages:
        found: dict[tuple[str, str], list[Block]] = defaultdict(list)
        for block in page.blocks:
            thing, label = _thing(page, block), block.label.strip().lower().rstrip(":.")
            if label in _LABELS and thing and len(block.path) <= 3:
                found[thing, label].append(block)
        for (thing, label), blocks in found.items():
            yield thing, label, blocks


def _thing(page: Page, block: Block) -> str:
    """What a page is about: its top heading, or its title where labels stand at the top."""
    name = (block.path[-2] if len(block.path) > 1 else page.title).strip()
    words = name.split()
    plain = not _ODD.search(name) and not _POINTS.search(name) and name.lower() not in _GENERAL
    return name if plain and 1 <= len(words) <= 3 and name.lower() not in _LABELS and len(name) >= 4 else ""


def _cells(corpus: Corpus) -> Iterator[tuple[Block, Row, str, Quote]]:
    """(block, row, column head, cell) of small, well-formed tables with short keys and cells."""
    for block in corpus.blocks():
        widths = {len(row.cells) for row in block.rows}
        if len(block.rows) < 3 or len(widths) != 1 or not 2 <= min(widths) <= 7:
            continue
        header, *rows = block.rows
        keys = [row.cells[0].text for row in rows]
        if len(set(keys)) < len(keys):
            continue
        for row in rows:
            if not _is_key(row.cells[0].text):
                continue
            for head, cell in zip(header.cells[1:], row.cells[1:], strict=True):
                told = 1 <= len(cell.text) <= 120 and cell.text.strip("-–—? ") and not _same(cell, row.cells[0])
                if _is_head(head.text) and told:
                    yield block, row, head.text.strip(), cell


def _sort(block: Block) -> str:
    """What the rows of a table are: the head of its first column."""
    return block.rows[0].cells[0].text.lower()


def _same(one: Quote, other: Quote) -> bool:
    return one.text.lower() == other.text.lower()


def _of_cell(key: str, head: str) -> str:
    asked = " ".join(word.lower() if word.istitle() else word for word in head.split())
    verb = "are" if asked.endswith("s") and not asked.endswith(("ss", "us", "is")) else "is"
    return f"What {verb} the {asked} for {key}?"


def _says(corpus: Corpus, uris: set[str], terms: frozenset[str]) -> bool:
    return any(terms & page.terms for page in corpus.pages if page.uri in uris)


def _humps(name: str) -> list[str]:
    return _HUMP.findall(name) if name.isalnum() and not name.islower() else []


def _is_key(text: str) -> bool:
    if not (text[:1].isupper() or len(_humps(text)) >= 2 or "-" in text or "_" in text) or ":" in text:
        return False
    telling = len(text.split()) >= 2 or any(c.isdigit() or c in "-_." for c in text) or len(_humps(text)) >= 2
    return telling and len(text.split()) <= 4 and _is_plain(text) and not text.isdigit()


def _is_head(text: str) -> bool:
    words = text.lower().split()
    told = len(text) >= 4 and text.replace(" ", "").isalpha()
    return 1 <= len(words) <= 3 and told and _LOOSE.isdisjoint(words) and _VAGUE.isdisjoint(words)


def _is_name(text: str) -> bool:
    """A proper name or a term, not a pronoun or a part of a sentence."""
    words = text.split()
    shown = any(len(_humps(word)) >= 2 or word.isupper() or "-" in word for word in words)
    titled = sum(word[0].isupper() for word in words) >= 2
    odd = any(w.lower() in _LOOSE or w.endswith(("ing", "ly", ".", "'s")) for w in words)
    return _is_plain(text) and text.lower() not in _GENERAL and (shown or titled) and not odd


def stands_alone(question: str) -> bool:
    """Whether it can be read without a page at hand: no markup in it, and nothing that points elsewhere."""
    return _is_plain(_EXPLETIVE.sub("", question))


def _is_plain(text: str) -> bool:
    return not _ODD.search(text) and not _POINTS.search(text)


def _is_statement(text: str) -> bool:
    """Whether a sentence can stand as an answer on its own; one that sends elsewhere can't."""
    words = text.split()
    elsewhere = words[:1] and words[0].lower() in ("see", "refer", "read", "follow", "list")
    return 5 <= len(words) <= 60 and not text.endswith(("?", ":")) and not _ODD.search(text) and not elsewhere


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]
