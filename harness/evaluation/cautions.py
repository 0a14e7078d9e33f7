"""Cautions beside a verdict: how often it was asked, what was not judged, what was not read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from harness.english import count, counted, few_names, join
from harness.evaluation.conclusion import Conclusion
from harness.evaluation.grading import GradedLabels
from harness.experiment import Question
from harness.measures import Measure, parse, score
from harness.measures.compute import Judgments
from harness.records import Manifest
from harness.stats.power import Look
from retrievers.types import Ranking

CUT = 0.05
"""Share of the documents of which a model read only the beginning, from which on the first screen says so."""
FOREIGN = 0.05
"""Share of a system's hits that are not documents of the data set, from which on the first screen says so."""


def judged_shares(
    question: Question, judged: GradedLabels, rankings: Mapping[str, Mapping[str, Ranking]]
) -> dict[str, float]:
    """Return how many of each retriever's hits within the primary measure's cutoff have a label, by `judged_share`.

    Empty where claims decide, and where only relevant documents are listed: there nothing tells an unjudged document
    from an irrelevant one.
    """
    if not tells_unjudged(question.primary, judged.grades):
        return {}
    measure = parse(f"Judged@{question.primary.cutoff or question.experiment.depth}")
    return {
        name: judged_share(measure, judged.grades, {query: ranking.doc_ids for query, ranking in answers.items()})
        for name, answers in rankings.items()
    }


def judged_share(measure: Measure, grades: Judgments, rankings: Mapping[str, Sequence[str]]) -> float:
    """Return the mean of a Judged@k over the queries with labels that have a hit: an empty answer is not unjudged.

    >>> judged_share(parse("Judged@2"), {"q": {"a": 0}, "r": {"b": 1}}, {"q": ["a", "x"], "r": []})
    0.5
    """
    answered = {query: documents for query, documents in rankings.items() if documents and grades.get(query)}
    if not answered:
        return 1.0
    return float(score([measure], {query: grades[query] for query in answered}, answered).means()[measure])


def tells_unjudged(primary: Measure, grades: Judgments) -> bool:
    """Whether documents are judged irrelevant, so that others are unjudged; never where claims decide."""
    return not primary.claimed and any(grade <= 0 for labels in grades.values() for grade in labels.values())


def cautions(manifest: Manifest, result: Conclusion) -> list[str]:
    """Return what a reader of the verdict must know, the gravest first."""
    cutoff = parse(result.measure).cutoff or manifest.resolved.depth
    unjudged = judged_caution(manifest.judged, tuple(result.means), cutoff)
    told = (*half_read(manifest), *foreign_hits(manifest), unjudged, *clicked(manifest))
    return [one for one in told if one]


def clicked(manifest: Manifest) -> Iterator[str]:
    """That labels are clicks, where they are."""
    if number := len(manifest.ledger.dataset.get("clicked-label", ())):
        yield (
            f"The labels of {counted(number, 'query')} are clicks: what people opened of what some search showed "
            "them, not what anybody judged. They favour that search, and whatever resembles it."
        )


def half_read(manifest: Manifest) -> Iterator[str]:
    """Models that read only the beginning of many documents, with what is made of them, in one sentence."""
    documents, resolved = manifest.dataset.documents, manifest.resolved
    cut = {
        name: number
        for name in manifest.finished
        if resolved.blocks[name].get("derived_from") not in manifest.finished  # else the other is told
        and (number := len(manifest.ledger.retrievers[name].notes.get("truncated", ())))
        and number >= CUT * documents
    }
    if not cut:
        return
    also = [name for name in manifest.finished if any(_is_made_of(name, of, manifest) for of in cut)]
    names, up_to = list(dict.fromkeys((*cut, *also))), "up to " if len(set(cut.values())) > 1 else ""
    yield (
        f"{few_names(names)} {'reads' if len(names) == 1 else 'read'} only the start of "
        f"{up_to}{100 * max(cut.values()) / documents:.0f} % of the documents: try chunking."
    )


def foreign_hits(manifest: Manifest) -> Iterator[str]:
    """Retrievers with an index of their own whose ids were matched, or of which many hits are unknown."""
    for name in manifest.finished:
        own = manifest.ledger.retrievers[name]
        counts = own.counts.get("search", {})
        foreign, hits = counts.get("foreign_hits", 0), counts.get("hits_given", 0)
        if foreign and foreign >= FOREIGN * hits:
            example = next(iter(own.notes.get("not-in-corpus", ())), "")
            yield (
                f"{name} returned {foreign:,.0f} of {counted(round(hits), 'hit')} with unknown ids, such as "
                f"{example!r}: they count as irrelevant. Check that both sides use the same ids."
            )
        if matched := own.notes.get("matched-hit", ()):
            ways = Counter(one.rpartition("(by ")[2].rstrip(")") for one in matched)
            told = ", ".join(f"{number:,} by {way}" for way, number in ways.items())
            yield f"Ids of {name} are written otherwise than those of the documents: {told} (e.g. {matched[0]})."


def _is_made_of(retriever: str, name: str, manifest: Manifest) -> bool:
    """Whether a retriever, or one that it is made of, has the vectors of another."""
    parts = manifest.resolved.parts(retriever)
    return name in parts or any(manifest.resolved.blocks[part].get("derived_from") == name for part in parts)


UNJUDGED = 0.1
"""Share of the first hits that nobody judged, from which on the first screen says so."""


def unjudged_note(shares: Mapping[str, float], leader: str, cutoff: int) -> str:
    """Return whose hits nobody judged most, beside the leader's; "" below a tenth of them.

    Args:
        shares: retriever -> share of its first hits that nobody judged; empty where nothing tells.
        leader: of the means.
        cutoff: hits of a query that were looked at.

    >>> unjudged_note({"a": 0.04, "b": 0.25}, "a", 10)
    "Nobody judged 25 % of the first 10 hits of b (4 % of a's): unjudged documents count as irrelevant."
    """
    worst = max(shares, key=lambda name: shares[name], default="")
    if not worst or shares[worst] < UNJUDGED:
        return ""
    beside = f" ({100 * shares[leader]:.0f} % of {leader}'s)" if worst != leader and leader in shares else ""
    return (
        f"Nobody judged {100 * shares[worst]:.0f} % of the first {cutoff} hits of {worst}{beside}: unjudged documents "
        "count as irrelevant."
    )


def judged_caution(shares: Mapping[str, float], names: Sequence[str], cutoff: int) -> str:
    """Whose hits were judged otherwise than the leader's, where that is much; else whose hits nobody judged.

    Args:
        shares: retriever -> share of its first hits that are judged; empty where nothing tells.
        names: the retrievers, that of the highest mean first.
        cutoff: hits of a query that were looked at.
    """
    leader, note = names[0], ""
    others = [name for name in names[1:] if name in shares]
    if leader in shares and others:
        apart = max(others, key=lambda name: abs(shares[name] - shares[leader]))
        note = judged_note(leader, apart, shares[leader], shares[apart])
    return note or unjudged_note({name: 1 - share for name, share in shares.items()}, leader, cutoff)


JUDGED_GAP = 0.1
"""Difference of mean Judged@k above which the judgments may favour the better judged of two retrievers."""


def judged_note(a: str, b: str, judged_a: float, judged_b: float) -> str:
    """Return the caveat where the mean Judged@k of two retrievers differs by more than 0.1, else "".

    >>> judged_note("x", "y", 0.9, 0.85)
    ''
    """
    if abs(judged_a - judged_b) <= JUDGED_GAP + 1e-10:
        return ""
    more, less = (a, b) if judged_a > judged_b else (b, a)
    high, low = max(judged_a, judged_b), min(judged_a, judged_b)
    return (
        f"{100 * high:.0f} % of what {more} returned was judged, but {100 * low:.0f} % of {less}'s: unjudged documents "
        f"count as irrelevant, which favours {more}."
    )


def look_sentence(look: Look, queries: int) -> str:
    """Return which look this is, and the level that it has."""
    planned = join([f"{n:,}" for n in look.planned])
    if look.spent:
        what = f"Looks were planned at {planned} queries, and these are {queries:,}"
        return f"{what}: alpha is spent, nothing is claimed."
    kind = "" if queries in look.planned else f"; {queries:,} was not planned, and has what its share of them leaves"
    return (
        f"This is look {look.number} (planned at {planned} queries{kind}): its tests have the level {look.level:.2g}, "
        f"so that all looks together keep {look.alpha:g} (O'Brien & Fleming's boundary, spent as by Lan & DeMets)."
    )


def second_look_sentence(number: int) -> str:
    """Return the caveat where earlier runs asked some of these queries and no looks were planned; "" at the first."""
    if number < 2:
        return ""
    return (
        f"This is look number {number}: earlier runs tested the same question on some of these queries. Without "
        "planned looks, every further one makes a false claim more likely than the level says (three looks: about "
        "one in ten rather than one in twenty); declare `looks` under [statistics] before the next one."
    )


def judged_only_sentence() -> str:
    """Return the caveat of labels that name relevant documents only."""
    return (
        "The labels name relevant documents only: every other document counts as irrelevant, read or not. "
        "That favours retrievers whose results were read when the labels were made."
    )


def asked_sentence(n: int, clusters: int | None) -> str:
    """Return what the tests count as one observation, "" where that is a query."""
    if clusters is None:
        return ""
    return f"Queries that ask the same count as one: {count(n)}, {counted(clusters, 'different question')}."
