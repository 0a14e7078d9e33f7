"""The page for people who judge."""

from collections.abc import Mapping
from pathlib import Path

import jinja2
from markupsafe import Markup

from harness.labels.judging_order import judging_order, round_pairs
from harness.labels.pool import GRADE_MEANINGS, Pool, digest_texts
from harness.pages import content_security_policy, page_head, script_json
from retrievers.errors import InputError, Problem
from retrievers.files.text_files import explain_write_errors, open_text_file


def render_judging_page(pool: Pool, *, choices: Mapping[int, str] | None = None) -> str:
    """Return the page as one HTML text.

    Args:
        pool: to judge.
        choices: the grades with their words; by default the scale from 0 to 3.
    """
    words = choices or GRADE_MEANINGS
    env = jinja2.Environment(
        loader=jinja2.PackageLoader("harness.labels"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )
    style, script = (
        env.loader.get_source(env, name)[0]  # type: ignore[union-attr]
        for name in ("judge.css", "judge.js")
    )
    return env.get_template("judge.html").render(
        digest=pool.digest,
        head=page_head(
            "Judge documents",
            content_security_policy([script], style),
            Markup(style),  # noqa: S704
        ),
        script=Markup(script),  # noqa: S704 - ours
        data=Markup(script_json(_data(pool, words))),  # noqa: S704 - escaped for a script element
    )


def write_judging_page(
    path: Path, pool: Pool, *, choices: Mapping[int, str] | None = None
) -> None:
    """Write the page of a pool; InputError if it cannot be written, or would overwrite another kind of file."""
    with explain_write_errors(path):
        if path.is_file() and not path.read_bytes().startswith(
            (b"<!doctype html>", b"<!DOCTYPE html>")
        ):
            what = "exists, and is not a judging page"
            raise InputError(
                Problem(str(path), what, "name another file with --output")
            )
    with explain_write_errors(path), open_text_file(path, "w") as file:
        file.write(render_judging_page(pool, choices=choices))


def _data(pool: Pool, words: Mapping[int, str]) -> dict[str, object]:
    """The data of the script; each document's text is included once."""
    first = {
        (one.query, one.document): number
        for number, one in enumerate(round_pairs(pool, 1))
    }
    return {
        "pool": pool.digest,
        "policy": pool.policy,
        "prompt": digest_texts(pool.policy),
        "design": pool.drawn.design,
        "population": pool.drawn.population,
        "choices": [
            {"value": value, "words": meaning} for value, meaning in words.items()
        ],
        "queries": [
            {
                "id": query.query_id,
                "text": query.query,
                "inclusion": query.inclusion,
                "asked": len(query.documents),
            }
            for query in pool.queries
        ],
        "documents": [
            document.model_dump()
            for query in pool.queries
            for document in query.documents
        ],
        "items": [
            {
                "query": one.query,
                "document": one.document,
                "text": first[one.query, one.document],
                "round": one.round,
            }
            for one in judging_order(pool)
        ],
    }
