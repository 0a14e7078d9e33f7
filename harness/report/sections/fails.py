"""The queries on which a retriever fails.

It is the one that the verdict says to keep, else the leader.

Each is a card, the largest loss first, as far as the page has room; the others go to a
page of their own. The slices and groups that they are sorted into are those of
`failing_slices` and `query_groups`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from harness import records
from harness.english import count_of
from harness.pages import visible_text
from harness.report.numbers import difference_text, score_text
from harness.report.query_browser import QueryBrowser, build_query_browser
from harness.report.query_evidence import (
    DocumentNumbers,
    Evidence,
    EvidenceGroup,
    LabelledDocument,
    QueryEvidence,
    packed_size,
)
from harness.report.ranking_digests import EMPTY_RANKING, RankingDigest
from harness.report.sections.failing_slices import (
    FailingSlices,
    failing_slices,
    property_texts,
)
from harness.report.sections.query_groups import (
    QueryGroup,
    group_queries,
    order_by_loss,
    query_rivals,
    score_gaps,
)
from harness.report.templates import Section
from harness.report.view import View
from harness.wording.agent_trace import trace_sentence
from harness.wording.verdicts import capitalized

REMAINING_PAGE = "queries.html"
"""The second page, with the queries for which the report has no room."""
MAX_PAGE_BYTES = 1_000_000
"""About the largest size of a page's packed evidence."""
MAX_REMAINING_BYTES = 4 * MAX_PAGE_BYTES
"""The same of the second page."""
DEFAULT_HITS = 10
"""Hits of a card whose cutoff is deeper than the documents that are stored."""
SCORE_DIGITS = 4
"""Decimals of a score in the page's evidence, as on its cards."""
SINGLE_KEY = "Boxed: grades of the labelled documents."
LABELLED_KEY = f"{SINGLE_KEY} Orange: the left retriever ranks it lower."


@dataclass(frozen=True, slots=True)
class FailsContext:
    """The section's content."""

    browser: QueryBrowser
    slices: FailingSlices
    omitted: int
    """Queries that are not on this page."""
    other_page: str
    """The file name of the page that has them, as far as it has room."""


class RemainingQueries(NamedTuple):
    """The queries for which the page has no room."""

    view: View
    """Lists these queries only."""
    section: Section[FailsContext]


def fails_section(view: View) -> Section[FailsContext]:
    """The query on which the examined retriever loses most, and all that have room."""
    return _build_section(view, MAX_PAGE_BYTES, other_page=REMAINING_PAGE)


def remaining_queries(view: View, page: FailsContext) -> RemainingQueries | None:
    """The queries that are not in the section of the page; None if it has all."""
    on_page = {query.id for query in page.browser.evidence.queries}
    indices = tuple(i for i in view.order if visible_text(view.ids[i]) not in on_page)
    if not indices:
        return None
    remaining = replace(view, listed_queries=indices)
    section = _build_section(
        remaining, MAX_REMAINING_BYTES, other_page=records.REPORT_FILE
    )
    return RemainingQueries(remaining, section)


def _build_section(
    view: View, max_bytes: int, *, other_page: str
) -> Section[FailsContext]:
    slices = failing_slices(view)
    evidence = build_evidence(view, slices.groups, max_bytes)
    context = FailsContext(
        build_query_browser(evidence, loss_sentence(view, evidence)),
        slices,
        omitted=view.n - len(evidence.queries),
        other_page=other_page,
    )
    return Section("fails", "Where it fails", context)


def loss_sentence(view: View, evidence: Evidence) -> str:
    """How many queries the examined retriever lost, and which one is shown.

    Only the former if the first card is not that of the worst query, which may be on
    another page. A retriever that ran alone lost none: only the latter, else "".
    """
    examined = view.examined
    first = evidence.first_query
    order = order_by_loss(view)
    shows_worst = first is not None and first.id == visible_text(view.ids[order[0]])
    if len(view.ranked) == 1:
        queries = count_of(view.n, "query")
        return f"This query scores lowest of {queries}." if shows_worst else ""
    lost = sum(gap < 0 for gap in score_gaps(view))
    sentence = f"{examined} lost {_lost_words(view, lost)}."
    if not shows_worst:
        return sentence
    if not lost:
        return f"{sentence} This one it scores lowest."
    return f"{sentence} {'This one it lost most.' if lost > 1 else 'It is this one.'}"


def _lost_words(view: View, lost: int) -> str:
    """Return how many queries were lost, and to which retriever."""
    if not lost:
        return "no query"
    rivals = query_rivals(view)
    other = "another retriever"
    if len(rivals) == 1:
        other = rivals[0]
    elif len(rivals) < len(view.ranked) - 1:
        other = "a retriever that may be as good"
    return f"{lost:,} of {count_of(view.n, 'query')} to {other}"


def build_evidence(
    view: View, slice_groups: Sequence[QueryGroup], max_bytes: int
) -> Evidence:
    """Return the rankings of the page's queries.

    The largest losses come first, as far as there is room.

    Args:
        view: the results; only its `listed_queries` are on the page.
        slice_groups: groups of the list, after that of the lost queries.
        max_bytes: about how large all queries are when packed.
    """
    numbers = DocumentNumbers()
    queries = _queries_that_fit(view, numbers, max_bytes)
    groups = group_queries(view, slice_groups)
    return Evidence(
        title=visible_text(view.manifest.name),
        section=f"where {view.examined} fails",
        measure=view.names[view.primary].short,
        query_count=view.n,
        cutoff=shown_hits(view),
        is_labelled=True,
        retrievers=view.ranked,
        means=tuple(view.evaluation.means.values()),
        documents=tuple(map(view.document_title, numbers.document_ids)),
        queries=queries,
        groups=evidence_groups(groups, queries),
        key=LABELLED_KEY if len(view.ranked) > 1 else SINGLE_KEY,
    )


def _queries_that_fit(
    view: View, numbers: DocumentNumbers, max_bytes: int
) -> tuple[QueryEvidence, ...]:
    """Return the worst queries that have room, one at least."""
    cutoff = shown_hits(view)
    properties = property_texts(view)
    gaps = score_gaps(view)
    listed = set(view.listed_queries)
    queries: list[QueryEvidence] = []
    size = 0
    measured_documents = 0
    for i in filter(listed.__contains__, order_by_loss(view)):
        query = _query_evidence(
            view,
            i,
            gaps[i],
            numbers=numbers,
            cutoff=cutoff,
            properties=capitalized(", ".join(properties.get(view.ids[i], ()))),
        )
        new_documents = numbers.document_ids[measured_documents:]
        measured_documents += len(new_documents)
        titles = [view.document_title(doc) for doc in new_documents]
        size += packed_size([query, titles])
        if queries and size > max_bytes:
            break
        queries.append(query)
    return tuple(queries)


def shown_hits(view: View) -> int:
    """The number of hits of a card."""
    return view.cutoff if view.cutoff <= records.KEPT_RANKS else DEFAULT_HITS


def evidence_groups(
    groups: Sequence[QueryGroup], queries: Sequence[QueryEvidence]
) -> tuple[EvidenceGroup, ...]:
    """The groups by the numbers of the page's queries."""
    number_by_id = {query.id: number for number, query in enumerate(queries)}
    rows: list[EvidenceGroup] = []
    for group in groups:
        ids = [visible_text(query_id) for query_id in group.query_ids]
        on_page = tuple(
            number_by_id[query_id] for query_id in ids if query_id in number_by_id
        )
        rows.append(EvidenceGroup(group.title, group.count, on_page))
    return tuple(rows)


def _query_evidence(
    view: View,
    i: int,
    gap: float,
    *,
    numbers: DocumentNumbers,
    cutoff: int,
    properties: str,
) -> QueryEvidence:
    """Return what the page shows of one query.

    Args:
        view: the results.
        i: index of the query.
        gap: the examined retriever's score less that of its best rival.
        numbers: gives each document of the page its number.
        cutoff: hits of a ranking that are shown.
        properties: of the query, in words.
    """
    query_id = view.ids[i]
    digests = [view.ranking_digests[retriever] for retriever in view.ranked]
    hits: list[tuple[int, ...]] = []
    for digest in digests:
        ranking = digest.top_hits.get(query_id, EMPTY_RANKING)
        hits.append(numbers.numbers(ranking.doc_ids[:cutoff]))
    scores = view.values_by_measure[view.primary]
    is_alone = len(view.ranked) == 1
    pair = (view.examined, view.examined if is_alone else _best_rival(view, i))
    return QueryEvidence(
        id=visible_text(query_id),
        text=view.query_text(query_id),
        scores=tuple(
            round(float(scores[name][i]), SCORE_DIGITS) for name in view.ranked
        ),
        hits=tuple(hits),
        labelled=tuple(_labelled_documents(view, query_id, numbers)),
        pair=(view.ranked.index(pair[0]), view.ranked.index(pair[1])),
        properties=properties,
        amount=score_text(gap) if is_alone else difference_text(gap),
        agents=_agent_sentences(digests, query_id),
    )


def _agent_sentences(
    digests: Sequence[RankingDigest], query_id: str
) -> tuple[str, ...]:
    """What each agent did in the first trial; empty without any agent."""
    traces = [digest.top_hits.get(query_id, EMPTY_RANKING).trace for digest in digests]
    if not any(traces):
        return ()
    return tuple(
        visible_text(trace_sentence(trace)) if trace else "" for trace in traces
    )


def _best_rival(view: View, i: int) -> str:
    """The rival that scores best on a query; of equal ones the first by mean."""
    scores = view.values_by_measure[view.primary]
    return max(query_rivals(view), key=lambda name: float(scores[name][i]))


def _labelled_documents(
    view: View, query_id: str, numbers: DocumentNumbers
) -> list[LabelledDocument]:
    """The relevant documents with their ranks, the highest grade first."""
    grades = view.grades[query_id]
    relevant = sorted(
        (doc for doc in grades if grades[doc] > 0), key=lambda doc: (-grades[doc], doc)
    )
    documents: list[LabelledDocument] = []
    for doc in relevant:
        ranks = tuple(
            view.ranking_digests[name].relevant_ranks.get(query_id, {}).get(doc, 0)
            for name in view.ranked
        )
        documents.append(LabelledDocument(numbers.number(doc), grades[doc], ranks))
    return documents
