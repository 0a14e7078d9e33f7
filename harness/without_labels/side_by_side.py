"""Rankings side by side."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import fmean
from typing import NamedTuple

import jinja2
from markupsafe import Markup

from harness.pages import content_security_policy, page_head, visible_text
from harness.records import Results
from harness.stats.rank_overlap import rank_overlap
from harness.without_labels.layout import TryFolder
from harness.without_labels.titles import DocumentTitle
from retrievers.files.text_files import explain_write_errors, open_text_file

SHOWN_RANKS = 5
"""First hits that are shown side by side."""
TEXT_LENGTH = 600
"""Characters of a document that the page shows."""


class QuestionRankings(NamedTuple):
    """What each retriever found for one question."""

    query_id: str
    question: str
    difference: float
    """The mean of 1 - RBO (rank-biased overlap) over the pairs of retrievers.

    0 for equal rankings, and with fewer than two retrievers.
    """
    documents: Mapping[str, tuple[str, ...]]
    """Retriever -> its first documents."""


class ShownDocument(NamedTuple):
    """A document as the page shows it."""

    id: str
    title: str
    text: str
    only_here: bool
    """Whether no other retriever has it among its first."""


class ShownColumn(NamedTuple):
    """The first documents of one retriever."""

    retriever: str
    documents: tuple[ShownDocument, ...]


class ShownQuestion(NamedTuple):
    """One question with a column for each retriever."""

    question: str
    difference: float
    columns: tuple[ShownColumn, ...]


def rankings_by_question(results: Results) -> list[QuestionRankings]:
    """Return the rankings of each question, those that differ most first."""
    rankings = {name: results.rankings(name) for name in results.retrievers}
    rows: list[QuestionRankings] = []
    for query_id, labelled in results.queries.items():
        ids = {
            name: ranking[query_id].doc_ids
            for name, ranking in rankings.items()
            if query_id in ranking
        }
        overlaps = [
            rank_overlap(ids[a], ids[b]).extrapolated for a, b in combinations(ids, 2)
        ]
        difference = 1 - fmean(overlaps) if overlaps else 0.0
        first_ids = {
            name: tuple(document_ids[:SHOWN_RANKS])
            for name, document_ids in ids.items()
        }
        rows.append(
            QuestionRankings(query_id, labelled.query.text, difference, first_ids)
        )
    rows.sort(key=lambda row: (-row.difference, row.query_id))
    return rows


def write_rankings_page(
    folder: TryFolder,
    results: Results,
    rankings: Sequence[QuestionRankings],
    titles: Sequence[DocumentTitle],
) -> None:
    """Write the page of rankings side by side: no scores, no order of retrievers.

    Args:
        folder: of the trial.
        results: have the beginnings of the texts.
        rankings: the questions in the order of the page.
        titles: of the documents, which the results lack.
    """
    loader = jinja2.PackageLoader("harness.without_labels")
    env = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined
    )
    style = loader.get_source(env, "rankings.css")[0]
    title_by_document = {title.document_id: title.text for title in titles}
    questions = [_shown_question(row, results, title_by_document) for row in rankings]
    page = env.get_template("rankings.html").render(
        head=page_head(
            f"{folder.name}: rankings side by side",
            content_security_policy([], style),
            Markup(style),  # noqa: S704  (a file of this package)
        ),
        name=folder.name,
        questions=questions,
        documents=results.manifest.dataset.documents,
    )
    path = folder.rankings_page
    with explain_write_errors(path), open_text_file(path, "w") as file:
        file.write(page)


def _shown_question(
    row: QuestionRankings, results: Results, titles: Mapping[str, str]
) -> ShownQuestion:
    """Return one question with the first documents of each retriever."""
    columns: list[ShownColumn] = []
    for retriever, ids in row.documents.items():
        others: set[str] = set()
        for other, other_ids in row.documents.items():
            if other != retriever:
                others.update(other_ids)
        documents = [
            ShownDocument(
                id=id_,
                title=visible_text(titles.get(id_, "") or id_),
                text=visible_text(results.documents[id_].text[:TEXT_LENGTH]),
                only_here=id_ not in others,
            )
            for id_ in ids
        ]
        columns.append(ShownColumn(retriever, tuple(documents)))
    return ShownQuestion(visible_text(row.question), row.difference, tuple(columns))
