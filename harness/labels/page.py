"""The judging page: one HTML file that needs no network, and no trust in what it shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import jinja2
from markupsafe import Markup

from harness.labels.order import in_order
from harness.labels.policy import GRADE_WORDS, digest_of
from harness.labels.pool import Pool
from harness.pages import embedded, policy
from retrievers.errors import InputError, Problem


def judging_page(
    pool: Pool, *, title: str = "Judge documents", choices: Mapping[int, str] | None = None, asked: str = "Question"
) -> str:
    """Return the page as one HTML text.

    Args:
        pool: what is to be judged.
        title: what stands above.
        choices: the grades that can be given, with their words; the scale from 0 to 3 if left out.
        asked: what stands above the document that is judged.
    """
    words = choices or GRADE_WORDS
    env = jinja2.Environment(
        loader=jinja2.PackageLoader("harness.labels"), autoescape=True, undefined=jinja2.StrictUndefined
    )
    style, script = (env.loader.get_source(env, name)[0] for name in ("judge.css", "judge.js"))  # type: ignore[union-attr]
    return env.get_template("judge.html").render(
        title=title,
        asked=asked,
        digest=pool.digest,
        policy=policy([script], style),
        style=Markup(style),  # noqa: S704 - ours
        script=Markup(script),  # noqa: S704 - ours
        data=Markup(embedded(_data(pool, words))),  # noqa: S704 - escaped for a script element
    )


def write_page(
    path: Path, pool: Pool, *, title: str = "Judge documents", choices: Mapping[int, str] | None = None,
    asked: str = "Question",
) -> None:  # fmt: skip
    """Write the page of a pool; InputError where that cannot be done."""
    try:
        path.write_text(judging_page(pool, title=title, choices=choices, asked=asked), encoding="utf-8", newline="\n")
    except OSError as error:
        raise InputError(Problem(str(path), f"cannot be written: {error.strerror}")) from None


def _data(pool: Pool, words: Mapping[int, str]) -> dict[str, object]:
    """What the script reads; each document's text stands once, however often it is asked."""
    first = {place: number for number, place in enumerate(_places(pool))}
    return {
        "pool": pool.digest,
        "policy": pool.policy,
        "prompt": digest_of(pool.policy),
        "design": pool.drawn.design,
        "population": pool.drawn.population,
        "choices": [{"value": value, "words": meaning} for value, meaning in words.items()],
        "queries": [
            {"id": query.query_id, "text": query.query, "inclusion": query.inclusion, "asked": len(query.documents)}
            for query in pool.queries
        ],
        "documents": [
            {"id": document.id, "title": document.title, "text": document.text, "digest": document.digest}
            for query in pool.queries
            for document in query.documents
        ],
        "items": [
            {"query": one.query, "document": one.document, "text": first[one.query, one.document], "round": one.round}
            for one in in_order(pool)
        ],
    }


def _places(pool: Pool) -> Iterator[tuple[int, int]]:
    for q, query in enumerate(pool.queries):
        for d in range(len(query.documents)):
            yield q, d
