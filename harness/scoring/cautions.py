"""What may change a decision and is no statistic: documents half read, hits that nobody judged, foreign hits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from harness.experiment import Question
from harness.measures import parse
from harness.records import Manifest
from harness.scoring.grading import GradedLabels, scores_of
from harness.stats import Whole, judged_note
from harness.stats.words import counted, join
from retrievers.types import Ranking

CUT = 0.05
"""Share of the documents of which a model read only the beginning, from which on the first screen says so."""
FOREIGN = 0.05
"""Share of a system's hits that are no documents of the data set, from which on the first screen says so."""


def judged_shares(
    question: Question, judged: GradedLabels, rankings: Mapping[str, Mapping[str, Ranking]]
) -> dict[str, float]:
    """Return how many of each retriever's hits within the primary measure's cutoff have a label: a share, 0 to 1.

    Empty where claims decide, and where only relevant documents are listed: there nothing tells an unjudged document
    from an irrelevant one.
    """
    graded = judged.grades.values()
    if question.primary.claimed or not any(grade <= 0 for labels in graded for grade in labels.values()):
        return {}
    measure = parse(f"Judged@{question.primary.cutoff or question.experiment.depth}")
    shares = {}
    for name, answers in rankings.items():
        documents = {query: ranking.doc_ids for query, ranking in answers.items()}
        shares[name] = float(scores_of([measure], judged, documents).means()[measure])
    return shares


def cautions(manifest: Manifest, whole: Whole) -> list[str]:
    """Return what a reader of the verdict must know, the gravest first."""
    return [*half_read(manifest), *foreign_hits(manifest), *_unjudged(manifest, whole)]


def half_read(manifest: Manifest) -> Iterator[str]:
    """Models that read only the beginning of many documents, each with what is made of it."""
    documents, resolved = manifest.dataset.documents, manifest.resolved
    for name in manifest.finished:
        if resolved.blocks[name].get("derived_from") in manifest.finished:
            continue  # its vectors are those of another, which is told
        number = len(manifest.ledger.retrievers[name].notes.get("truncated", ()))
        if number and number >= CUT * documents:
            others = [other for other in manifest.finished if other != name and _is_made_of(other, name, manifest)]
            made = f" {join(others)} {'is' if len(others) == 1 else 'are'} made of it." if others else ""
            yield (
                f"{name} read only the beginning of {number:,} of {documents:,} documents ({number / documents:.0%}): "
                f"what stands later in them was not searched. Cut them into passages (chunk), or take a model that "
                f"reads more.{made}"
            )


def foreign_hits(manifest: Manifest) -> Iterator[str]:
    """Other systems whose index holds many documents that the data set has not."""
    for name in manifest.finished:
        own = manifest.ledger.retrievers[name]
        counts = own.counts.get("search", {})
        foreign, hits = counts.get("foreign_hits", 0), counts.get("hits_given", 0)
        if foreign and foreign >= FOREIGN * hits:
            example = next(iter(own.notes.get("not-in-corpus", ())), "")
            yield (
                f"{foreign:,.0f} of {counted(round(hits), 'hit')} of {name} are no documents of the data set, such as "
                f"{example!r}: they count as irrelevant. Its index may be of other documents, or have other ids."
            )


def _is_made_of(retriever: str, name: str, manifest: Manifest) -> bool:
    """Whether a retriever, or one that it is made of, has the vectors of another."""
    parts = manifest.resolved.parts(retriever)
    return name in parts or any(manifest.resolved.blocks[part].get("derived_from") == name for part in parts)


def _unjudged(manifest: Manifest, whole: Whole) -> Iterator[str]:
    """The retriever whose hits were judged least in comparison with the leader's, where that is much."""
    shares, leader = manifest.judged, whole.leader
    others = [name for name in whole.means if name != leader and name in shares]
    if leader in shares and others:
        apart = max(others, key=lambda name: abs(shares[name] - shares[leader]))
        if note := judged_note(leader, apart, shares[leader], shares[apart]):
            yield note
