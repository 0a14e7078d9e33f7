"""The page for people who prefer one of two lists."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.labels.answers_page import render_answers_page, write_answers_page
from harness.labels.compared_rankings import (
    COMPARED_QUERIES,
    ComparedRankings,
    ComparisonDesign,
    comparison_digest,
    comparison_steps,
)
from retrievers.types import Document


@dataclass(frozen=True, slots=True)
class PreferencePage:
    """What a page of preferences shows."""

    design: ComparisonDesign
    compared: Sequence[ComparedRankings]
    """Every query whose rankings differ, in the order of the page."""
    documents: Mapping[str, Document]
    next_command: str
    """What to type when all is answered."""
    power: str
    """The sentence that says what so many answers can show."""
    queries: int = COMPARED_QUERIES
    """How many of the queries to show."""
    no_texts: bool = False
    """Whether ids are shown in place of texts."""

    @property
    def shown(self) -> Sequence[ComparedRankings]:
        """The queries that the page shows."""
        return self.compared[: self.queries]


def render_preference_page(page: PreferencePage) -> str:
    """Return the page as one HTML text, which names no retriever."""
    page_data = _page_data(page)
    words = {
        "digest": page_data["page"],
        "next_command": page.next_command,
        "power": page.power,
        "repeated": len(page_data["steps"]) - len(page.shown),
    }
    title = "Which list is better?"
    return render_answers_page(
        title, "prefer", page_data, styles=("prefer.css",), words=words
    )


def write_preference_page(path: Path, page: PreferencePage) -> None:
    """Write the page.

    Raises:
        InputError: it cannot be written, or would overwrite another kind of file.
    """
    write_answers_page(path, render_preference_page(page))


def _page_data(page: PreferencePage) -> dict[str, Any]:
    """Return the data of the script, in which retrievers have no names."""
    numbers: dict[str, int] = {}  # document id -> its position among the texts
    queries: list[dict[str, object]] = []
    for pair in page.shown:
        for id_ in sorted({*pair.a, *pair.b}):
            numbers.setdefault(id_, len(numbers))
        list_a = [numbers[id_] for id_ in pair.a]
        list_b = [numbers[id_] for id_ in pair.b]
        sides = (list_a, list_b) if pair.a_is_left else (list_b, list_a)
        text = pair.query.id if page.no_texts else pair.query.text_with_history
        queries.append(
            {"id": pair.query.id, "text": text, "left": sides[0], "right": sides[1]}
        )
    steps = comparison_steps(page.shown, page.design.seed)
    return {
        "page": comparison_digest(page.compared, page.design),
        "depth": page.design.depth,
        "seed": page.design.seed,
        "queries": queries,
        "documents": [_document_row(page, id_) for id_ in numbers],
        "steps": [step._asdict() for step in steps],
    }


def _document_row(page: PreferencePage, id_: str) -> dict[str, str]:
    document = page.documents.get(id_)
    if page.no_texts or document is None:
        return {"title": id_, "text": ""}
    return {"title": document.title, "text": document.text}
