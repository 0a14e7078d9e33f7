"""What people judge: the page, one HTML file that needs no network, with its order; and the merging of their labels."""

import json
import math
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import jinja2
from markupsafe import Markup

from harness.dataset import BY_MODEL, Dataset, DatasetReference, Labels, load, trec
from harness.dataset.judgments import (
    NAME,
    JudgeKind,
    Judgment,
    merge,
    read_file,
    read_judgments,
    resolve_corrections,
    text_digest,
)
from harness.dataset.source import Findings
from harness.english import counted
from harness.evaluation.grading import labels_that_count
from harness.labels.agree import Dispute, as_opinions, disputes
from harness.labels.drafts import KEEP
from harness.labels.pool import (
    GRADE_WORDS,
    DrawnPool,
    Pool,
    PooledDocument,
    PooledQuery,
    check_new,
    digest_of,
    pool_of,
    pooled_query,
    shuffled_place,
)
from harness.pages import embedded, head, policy
from retrievers.errors import InputError, Problem, did_you_mean
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
    by_chance = sorted(
        pairs,
        key=lambda one: shuffled_place(pool.drawn.seed, "again", *ids(pool, one)[:2]),
    )
    again: dict[int, list[OrderedPair]] = {}
    for one in by_chance[: math.ceil(len(pairs) * repeated)]:
        again.setdefault(min(one.query + APART, len(pool.queries) - 1), []).append(
            one._replace(round=2)
        )
    return [
        one
        for number in range(len(pool.queries))
        for one in [
            *(pair for pair in pairs if pair.query == number),
            *again.get(number, ()),
        ]
    ]


def twice_sentence(pool: Pool) -> str:
    """The number of pairs that come twice, and the number of labels, which the page counts to."""
    judgments = len(in_order(pool))
    return f"{judgments - pool.pairs:,} of them twice, which makes {counted(judgments, 'label')}"


def round_of(pool: Pool, number: int) -> list[OrderedPair]:
    """Return every pair of a pool once, as one round of judging."""
    return [
        OrderedPair(q, d, number)
        for q, query in enumerate(pool.queries)
        for d in range(len(query.documents))
    ]


def ids(pool: Pool, one: OrderedPair) -> tuple[str, str, int]:
    """Query id, document id, round: judged once."""
    query, document = one.shown(pool)
    return query.query_id, document.id, one.round


def judgment_of(
    pool: Pool, one: OrderedPair, grade: int | None, by: Signature, **more: object
) -> Judgment:
    """Make the judgment of one pair; `more` has further fields, such as the note and the time."""
    query, document = one.shown(pool)
    who = {
        "query_id": query.query_id,
        "document_id": document.id,
        "grade": grade,
        **by._asdict(),
        "round": one.round,
    }
    drawn = {
        "design": pool.drawn.design,
        "inclusion": query.inclusion,
        "population": pool.drawn.population,
    }
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
        head=head("Judge documents", policy([script], style), Markup(style)),  # noqa: S704 - ours
        script=Markup(script),  # noqa: S704 - ours
        data=Markup(embedded(_data(pool, words))),  # noqa: S704 - escaped for a script element
    )


def write_page(
    path: Path, pool: Pool, *, choices: Mapping[int, str] | None = None
) -> None:
    """Write the page of a pool; InputError if it cannot be written, or would overwrite another kind of file."""
    with writing(path):
        if path.is_file() and not path.read_bytes().startswith(
            (b"<!doctype html>", b"<!DOCTYPE html>")
        ):
            what = "exists, and is not a judging page"
            raise InputError(
                Problem(str(path), what, "name another file with --output")
            )
    with writing(path), text_file(path, "w") as file:
        file.write(judging_page(pool, choices=choices))


def _data(pool: Pool, words: Mapping[int, str]) -> dict[str, object]:
    """The data of the script; each document's text is included once."""
    first = {
        (one.query, one.document): number
        for number, one in enumerate(round_of(pool, 1))
    }
    return {
        "pool": pool.digest,
        "policy": pool.policy,
        "prompt": digest_of(pool.policy),
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
            for one in in_order(pool)
        ],
    }


class Merged(NamedTuple):
    """The result of a merge."""

    path: Path
    judgments: int
    added: int
    people: int
    """Queries that people judged completely."""
    mixed: int
    """Queries that people did not finish."""
    model: int
    """Queries that only a model judged."""
    disputed: tuple[Dispute, ...]
    opinions: tuple[str, ...]
    """Judges whose corrections were not accepted and are kept as a second round."""


def merge_into(
    paths: Sequence[Path], reference: DatasetReference, corrected: Collection[str] = ()
) -> Merged:
    """Add judgments to a data set's own; all of them or none.

    Args:
        paths: files of judgments.
        reference: the data set.
        corrected: people whose corrections of their own grades count; other corrections are second rounds.

    Raises:
        InputError: a line cannot be read, judges a query, document or text that the data set does not have, or
            contradicts another judgment of the same judge; then nothing is written.
    """
    if reference.scheme or not reference.folder.is_dir():
        raise InputError(
            Problem(
                reference.name,
                "is not a folder",
                "labels are stored in the data set's folder",
            )
        )
    path = reference.folder / NAME
    dataset, seen = load(reference), Findings()
    there = list(read_file(path, seen)) if path.is_file() else []
    before = resolve_corrections(there, seen)
    said = [line for file in paths for line in read_file(file, seen)]
    joining = list(as_opinions(before, said, corrected))
    whole = resolve_corrections([*there, *joining], seen)
    if seen:
        raise InputError(seen.problems)
    _check([one for _, one in joining], dataset)
    opinions = {
        new.judge
        for (_, old), (_, new) in zip(said, joining, strict=True)
        if old.round != new.round
    }
    temporary = path.with_name(f"{NAME}.part")
    with writing(path):
        with text_file(temporary, "w") as file:
            file.writelines(one.line() for one in whole)
        os.replace(temporary, path)  # noqa: PTH105 - replaces on Windows, too
    sources = [labels.source for labels in merge(whole).values()]
    return Merged(
        path,
        len(whole),
        len(whole) - len(before),
        sources.count("people"),
        sources.count("mixed"),
        sources.count("model"),
        tuple(disputes(whole)),
        tuple(sorted(opinions)),
    )


def adjudication_pool(
    disputed: Sequence[Dispute], reference: DatasetReference, policy: str
) -> Pool:
    """The disputed pairs as a pool, whose judgments take precedence."""
    dataset = load(reference)
    queries = {query.id: query for query in dataset.recorded}
    texts = dataset.texts({one.document_id for one in disputed})
    lines = tuple(
        pooled_query(one.query_id, queries[one.query_id].text, [texts[one.document_id]])
        for one in disputed
    )
    drawn = DrawnPool(
        depth=0,
        seed=0,
        population=len(queries),
        sampled=len(lines),
        design="adjudication",
    )
    return pool_of(policy, drawn, lines)


class Exported(NamedTuple):
    """Queries with labels."""

    people: int
    model: int
    """Queries that a model judged, completely or in part."""
    left: int
    """Queries of a model that were omitted, because people judged others."""

    def sentence(self) -> str:
        """The result as a sentence."""
        of_model = (
            f", {self.model:,} of them judged by a model, completely or in part"
            if self.model
            else ""
        )
        left = (
            f"; {self.left:,} that a model judged are omitted (--with-model writes them too)"
            if self.left
            else ""
        )
        return f"labels of {counted(self.people + self.model, 'query')}{of_model}{left}"


def export_labels(
    dataset: Dataset,
    path: Path,
    form: Literal["trec", "json"],
    *,
    with_model: bool = False,
) -> Exported:
    """Write the labels of a data set as TREC qrels, or as `queries.json`.

    Args:
        dataset: with the labels.
        path: a new file.
        form: of the file; JSON has the labellers of each query, models as `llm:NAME`.
        with_model: also write the labels of models if there are labels of people; by default those are omitted, as in
            scores.

    Raises:
        InputError: the file exists or cannot be written, or there are no labels.
    """
    check_new(path)  # it may be the file of judgments
    there = {query: given for query, given in dataset.labels.items() if given.judged}
    if not there:
        raise InputError(
            Problem(
                dataset.path, "has no labels", "use harness labels merge to add some"
            )
        )
    labels = there if with_model else labels_that_count(there)
    with writing(path):
        if form == "trec":
            trec.write_qrels(
                path, {query: _grades(given) for query, given in labels.items()}
            )
        else:
            by = _labellers(dataset, labels)
            rows = [
                {
                    "id": query.id,
                    "query": query.text,
                    **({"fields": dict(query.fields)} if query.fields else {}),
                    **({"labelled_by": by[query.id]} if by[query.id] else {}),
                    "relevant_documents": _written(labels[query.id]),
                }
                for query in dataset.judged
                if query.id in labels
            ]
            with text_file(path, "w") as file:
                file.write(json.dumps(rows, ensure_ascii=False, indent=1) + "\n")
    by_model = sum(given.source in ("model", "mixed") for given in labels.values())
    return Exported(len(labels) - by_model, by_model, len(there) - len(labels))


def _labellers(dataset: Dataset, labels: Mapping[str, Labels]) -> dict[str, str]:
    """The labellers of each query: people by name, models as `llm:NAME`."""
    beside = Path(dataset.path) / NAME
    people: dict[str, set[str]] = {}
    models: dict[str, set[str]] = {}
    for one in read_judgments([beside]) if beside.is_file() else []:
        if one.design != "next":
            of, name = (
                (people, one.judge)
                if one.kind == "human"
                else (models, BY_MODEL + one.judge)
            )
            of.setdefault(one.query_id, set()).add(name)
    by = {}
    for query, given in labels.items():
        persons = people.get(query, set()) if given.source != "model" else set()
        named = persons | (
            models.get(query, set()) if given.source != "people" else set()
        )
        by[query] = (
            ", ".join([*sorted(persons), *sorted(named - persons)])
            if given.source and named
            else given.by
        )
    return by


def _grades(labels: Labels) -> dict[str, int]:
    return (
        dict(labels.grades)
        if labels.grades is not None
        else dict.fromkeys(labels.documents, 1)
    )


def _written(labels: Labels) -> object:
    if labels.grades is not None:
        return dict(labels.grades)
    return (
        [list(group) for group in labels.groups]
        if labels.groups is not None
        else list(labels.ranked or ())
    )


def _check(judgments: Sequence[Judgment], dataset: Dataset) -> None:
    """Refuse judgments of queries, documents or texts that the data set does not have."""
    queries = {query.id: query for query in dataset.recorded}
    texts = dataset.texts({one.document_id for one in judgments})
    seen = Findings()
    for one in judgments:
        where = f"query {one.query_id!r}, document {one.document_id!r}"
        if one.prompt == digest_of(KEEP):
            seen.wrong(
                where,
                "keeps or drops a draft; it is not a grade of a document",
                "harness queries keep",
            )
        elif one.query_id not in queries:
            remedy = (
                did_you_mean(one.query_id, queries) if len(queries) <= 2_000 else ""
            )
            seen.wrong(
                where,
                f"the data set has no such query: a pool of other queries? {remedy}",
            )
        elif one.document_id not in texts:
            seen.wrong(
                where, "the data set has no such document: a pool of another corpus?"
            )
        elif one.text != text_digest(
            queries[one.query_id].text, texts[one.document_id]
        ):
            what = "the query or the document has changed since it was judged"
            seen.wrong(where, what, "make a new pool and judge it again")
    if seen:
        raise InputError(seen.problems)
