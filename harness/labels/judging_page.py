"""The page for people who judge."""

from collections.abc import Mapping
from pathlib import Path

import jinja2
from markupsafe import Markup

from harness.labels.judging_order import judging_order, round_pairs
from harness.labels.pool import GRADE_MEANINGS, Pool, PooledQuery, digest_texts
from harness.pages import content_security_policy, page_head, script_json
from retrievers.errors import InputError, Problem
from retrievers.files.text_files import explain_write_errors, open_text_file

PAGE_BEGINNINGS = (b"<!doctype html>", b"<!DOCTYPE html>")


def render_judging_page(pool: Pool, *, choices: Mapping[int, str] | None = None) -> str:
    """Return the page as one HTML text.

    Args:
        pool: to judge.
        choices: the grades with their words; by default the scale from 0 to 3.
    """
    loader = jinja2.PackageLoader("harness.labels")
    env = jinja2.Environment(
        loader=loader,
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )
    style = loader.get_source(env, "judge.css")[0]
    script = loader.get_source(env, "judge.js")[0]
    page_data = script_json(_page_data(pool, choices or GRADE_MEANINGS))
    return env.get_template("judge.html").render(
        digest=pool.digest,
        head=page_head(
            "Judge documents",
            content_security_policy([script], style),
            Markup(style),  # noqa: S704
        ),
        script=Markup(script),  # noqa: S704  (a file of this package)
        data=Markup(page_data),  # noqa: S704  (escaped for a script element)
    )


def write_judging_page(
    path: Path, pool: Pool, *, choices: Mapping[int, str] | None = None
) -> None:
    """Write the page of a pool.

    Raises:
        InputError: it cannot be written, or would overwrite another kind of file.
    """
    with explain_write_errors(path):
        if path.is_file() and not path.read_bytes().startswith(PAGE_BEGINNINGS):
            problem = "exists, and is not a judging page"
            remedy = "name another file with --output"
            raise InputError(Problem(str(path), problem, remedy))
    with explain_write_errors(path), open_text_file(path, "w") as file:
        file.write(render_judging_page(pool, choices=choices))


def _page_data(pool: Pool, choices: Mapping[int, str]) -> dict[str, object]:
    """Return the data of the script; each document's text is included once."""
    documents = [
        document.model_dump() for query in pool.queries for document in query.documents
    ]
    return {
        "pool": pool.digest,
        "policy": pool.policy,
        "prompt": digest_texts(pool.policy),
        "design": pool.drawn.design,
        "population": pool.drawn.population,
        "choices": [
            {"value": grade, "words": words} for grade, words in choices.items()
        ],
        "queries": [_query_row(query) for query in pool.queries],
        "documents": documents,
        "items": _judging_steps(pool),
    }


def _query_row(query: PooledQuery) -> dict[str, object]:
    return {
        "id": query.query_id,
        "text": query.query,
        "inclusion": query.inclusion,
        "asked": len(query.documents),
    }


def _judging_steps(pool: Pool) -> list[dict[str, int]]:
    """Return the steps in the order of judging, with the numbers of their texts."""
    text_numbers: dict[tuple[int, int], int] = {}
    for number, pair in enumerate(round_pairs(pool, 1)):
        text_numbers[pair.query, pair.document] = number
    return [
        {
            "query": pair.query,
            "document": pair.document,
            "text": text_numbers[pair.query, pair.document],
            "round": pair.round,
        }
        for pair in judging_order(pool)
    ]
