"""The judging page, one HTML file that needs no network, and the order in which it shows the pairs of a pool."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import jinja2
from markupsafe import Markup

from harness.dataset.judgments import JudgeKind, Judgment
from harness.english import counted
from harness.labels.pool import GRADE_WORDS, Pool, PooledDocument, PooledQuery, digest_of, shuffled_place
from harness.pages import embedded, head, policy
from retrievers.errors import InputError, Problem
from retrievers.opening import text_file, writing

REPEATED = 0.1
"""The share of the pairs that a person sees twice, to measure self-agreement."""
APART = 3
"""A pair is repeated after this many further queries, or at the end."""


class OrderedPair(NamedTuple):
    """One step in the order of judging."""

    query: int
    """Index of the query in the pool."""
    document: int
    """Index of the document within its query."""
    round: int
    """1; 2 or more if the pair is repeated."""

    def shown(self, pool: Pool) -> tuple[PooledQuery, PooledDocument]:
        """The text to read."""
        query = pool.queries[self.query]
        return query, query.documents[self.document]


class Signature(NamedTuple):
    """The judge, and the digest of the instructions."""

    judge: str
    kind: JudgeKind
    prompt: str
    """Digest of the policy, or of the prompt."""


def in_order(pool: Pool, *, repeated: float = REPEATED) -> list[OrderedPair]:
    """Return the pairs of a pool in the order of judging, some of them twice.

    Query by query, so that a judge who stops early leaves few half done. A hash decides which pairs are repeated;
    they come after three further queries.
    """
    pairs = round_of(pool, 1)
    by_chance = sorted(pairs, key=lambda one: shuffled_place(pool.drawn.seed, "again", *ids(pool, one)[:2]))
    again: dict[int, list[OrderedPair]] = {}
    for one in by_chance[: math.ceil(len(pairs) * repeated)]:
        again.setdefault(min(one.query + APART, len(pool.queries) - 1), []).append(one._replace(round=2))
    return [
        one
        for number in range(len(pool.queries))
        for one in [*(pair for pair in pairs if pair.query == number), *again.get(number, ())]
    ]


def twice_sentence(pool: Pool) -> str:
    """The number of pairs that come twice, and the number of labels, which the page counts to."""
    judgments = len(in_order(pool))
    return f"{judgments - pool.pairs:,} of them twice, which makes {counted(judgments, 'label')}"


def round_of(pool: Pool, number: int) -> list[OrderedPair]:
    """Return every pair of a pool once, as one round of judging."""
    return [OrderedPair(q, d, number) for q, query in enumerate(pool.queries) for d in range(len(query.documents))]


def ids(pool: Pool, one: OrderedPair) -> tuple[str, str, int]:
    """Query id, document id, round: judged once."""
    query, document = one.shown(pool)
    return query.query_id, document.id, one.round


def judgment_of(pool: Pool, one: OrderedPair, grade: int | None, by: Signature, **more: object) -> Judgment:
    """Make the judgment of one pair; `more` has further fields, such as the note and the time."""
    query, document = one.shown(pool)
    who = {"query_id": query.query_id, "document_id": document.id, "grade": grade, **by._asdict(), "round": one.round}
    drawn = {"design": pool.drawn.design, "inclusion": query.inclusion, "population": pool.drawn.population}
    read = {"pool": pool.digest, "text": document.digest, "asked": len(query.documents)}
    return Judgment.model_validate({**who, **drawn, **read, **more})


def judging_page(pool: Pool, *, choices: Mapping[int, str] | None = None) -> str:
    """Return the page as one HTML text.

    Args:
        pool: to judge.
        choices: the grades with their words; by default the scale from 0 to 3.
    """
    words = choices or GRADE_WORDS
    env = jinja2.Environment(
        loader=jinja2.PackageLoader("harness.labels"), autoescape=True, undefined=jinja2.StrictUndefined
    )
    style, script = (env.loader.get_source(env, name)[0] for name in ("judge.css", "judge.js"))  # type: ignore[union-attr]
    return env.get_template("judge.html").render(
        digest=pool.digest,
        head=head("Judge documents", policy([script], style), Markup(style)),  # noqa: S704 - ours
        script=Markup(script),  # noqa: S704 - ours
        data=Markup(embedded(_data(pool, words))),  # noqa: S704 - escaped for a script element
    )


def write_page(path: Path, pool: Pool, *, choices: Mapping[int, str] | None = None) -> None:
    """Write the page of a pool; InputError if it cannot be written, or would overwrite another kind of file."""
    with writing(path):
        if path.is_file() and not path.read_bytes().startswith((b"<!doctype html>", b"<!DOCTYPE html>")):
            what = "exists, and is not a judging page"
            raise InputError(Problem(str(path), what, "name another file with --output"))
    with writing(path), text_file(path, "w") as file:
        file.write(judging_page(pool, choices=choices))


def _data(pool: Pool, words: Mapping[int, str]) -> dict[str, object]:
    """The data of the script; each document's text is included once."""
    first = {(one.query, one.document): number for number, one in enumerate(round_of(pool, 1))}
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
        "documents": [document.model_dump() for query in pool.queries for document in query.documents],
        "items": [
            {"query": one.query, "document": one.document, "text": first[one.query, one.document], "round": one.round}
            for one in in_order(pool)
        ],
    }
