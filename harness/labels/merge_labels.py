"""Judgments into a data set, and out of it: checked as a whole, written as a whole."""

import json
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from harness.dataset import BY_MODEL, Dataset, DatasetReference, Labels, load, trec
from harness.dataset.judgments import NAME, Judgment, merge, read_file, read_judgments, resolve_corrections, text_digest
from harness.dataset.source import Findings
from harness.english import counted
from harness.evaluation.grading import labels_that_count
from harness.labels.disagreement import Dispute, as_opinions, disputes
from harness.labels.drafts import KEEP
from harness.labels.pool import DrawnPool, Pool, check_new, digest_of, pool_of, pooled_query
from retrievers.errors import InputError, Problem, did_you_mean
from retrievers.opening import text_file, writing


class Merged(NamedTuple):
    """The result of merging."""

    path: Path
    judgments: int
    added: int
    people: int
    """Questions that people judged whole."""
    mixed: int
    """Questions that people began and did not finish."""
    model: int
    """Questions that a model alone judged."""
    disputed: tuple[Dispute, ...]
    opinions: tuple[str, ...]
    """Judges in whose name something would have been corrected; it is kept as a second answer."""


def merge_into(paths: Sequence[Path], reference: DatasetReference, corrected: Collection[str] = ()) -> Merged:
    """Write judgments beside the queries of a data set, with those that stand there already; all of them or none.

    Args:
        paths: files of judgments.
        reference: the data set.
        corrected: people whose corrections of their own grades count; those of others are second answers.

    Raises:
        InputError: a line cannot be read, judges a question, a document or a text that the data set does not have, or
            contradicts another judgment of the same judge; nothing is written then.
    """
    if reference.scheme or not reference.folder.is_dir():
        raise InputError(Problem(reference.name, "is not a folder", "judgments are written beside its queries"))
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
    opinions = {new.judge for (_, old), (_, new) in zip(said, joining, strict=True) if old.round != new.round}
    temporary = path.with_name(f"{NAME}.part")
    with writing(path):
        with text_file(temporary, "w") as file:
            file.writelines(one.line() for one in whole)
        os.replace(temporary, path)  # noqa: PTH105 - replaces on Windows, too
    sources = [labels.source for labels in merge(whole).values()]
    return Merged(path, len(whole), len(whole) - len(before), sources.count("people"), sources.count("mixed"),
                  sources.count("model"), tuple(disputes(whole)), tuple(sorted(opinions)))  # fmt: skip


def adjudication_pool(disputed: Sequence[Dispute], reference: DatasetReference, policy: str) -> Pool:
    """The disputed pairs as a pool of their own: its judgments go before all others."""
    dataset = load(reference)
    queries = {query.id: query for query in dataset.recorded}
    texts = dataset.texts({one.document_id for one in disputed})
    lines = tuple(pooled_query(one.query_id, queries[one.query_id].text, [texts[one.document_id]]) for one in disputed)
    drawn = DrawnPool(depth=0, seed=0, population=len(queries), sampled=len(lines), design="adjudication")
    return pool_of(policy, drawn, lines)


class Exported(NamedTuple):
    """How many questions' labels were written."""

    people: int
    model: int
    """By a model, wholly or in part."""
    left: int
    """A model's labels that were left out, since there are people's."""

    def sentence(self) -> str:
        """The same in words."""
        of_model = f", {self.model:,} of them judged by a model, wholly or in part" if self.model else ""
        left = f"; {self.left:,} that a model judged are left out (--with-model writes them too)" if self.left else ""
        return f"labels of {counted(self.people + self.model, 'question')}{of_model}{left}"


def export_labels(dataset: Dataset, path: Path, form: Literal["trec", "json"], *, with_model: bool = False) -> Exported:
    """Write the labels of a data set as TREC qrels, or as `queries.json`.

    Args:
        dataset: whose labels.
        path: the file to write, which is not there yet.
        form: of the file; JSON says of each question who labelled it, models as `llm:NAME`.
        with_model: also write what a model judged where there are people's labels; else those alone are written, as
            those alone make a score.

    Raises:
        InputError: the file is there already or cannot be written, or there are no labels.
    """
    check_new(path)  # it may be that of the judgments themselves
    there = {query: given for query, given in dataset.labels.items() if given.judged}
    if not there:
        raise InputError(Problem(dataset.path, "has no labels", "harness labels merge brings judgments into it"))
    labels = there if with_model else labels_that_count(there)
    with writing(path):
        if form == "trec":
            trec.write_qrels(path, {query: _grades(given) for query, given in labels.items()})
        else:
            by = _labellers(dataset, labels)
            rows = [
                {"id": query.id, "query": query.text, **({"fields": dict(query.fields)} if query.fields else {}),
                 **({"labelled_by": by[query.id]} if by[query.id] else {}),
                 "relevant_documents": _written(labels[query.id])}
                for query in dataset.judged if query.id in labels
            ]  # fmt: skip
            with text_file(path, "w") as file:
                file.write(json.dumps(rows, ensure_ascii=False, indent=1) + "\n")
    by_model = sum(given.source in ("model", "mixed") for given in labels.values())
    return Exported(len(labels) - by_model, by_model, len(there) - len(labels))


def _labellers(dataset: Dataset, labels: Mapping[str, Labels]) -> dict[str, str]:
    """Who gave the labels of each query: people by name, models as `llm:NAME`."""
    beside = Path(dataset.path) / NAME
    people: dict[str, set[str]] = {}
    models: dict[str, set[str]] = {}
    for one in read_judgments([beside]) if beside.is_file() else []:
        if one.design != "next":
            of, name = (people, one.judge) if one.kind == "human" else (models, BY_MODEL + one.judge)
            of.setdefault(one.query_id, set()).add(name)
    by = {}
    for query, given in labels.items():
        persons = people.get(query, set()) if given.source != "model" else set()
        named = persons | (models.get(query, set()) if given.source != "people" else set())
        by[query] = ", ".join([*sorted(persons), *sorted(named - persons)]) if given.source and named else given.by
    return by


def _grades(labels: Labels) -> dict[str, int]:
    return dict(labels.grades) if labels.grades is not None else dict.fromkeys(labels.documents, 1)


def _written(labels: Labels) -> object:
    if labels.grades is not None:
        return dict(labels.grades)
    return [list(group) for group in labels.groups] if labels.groups is not None else list(labels.ranked or ())


def _check(judgments: Sequence[Judgment], dataset: Dataset) -> None:
    """Refuse judgments of questions, documents or texts that the data set does not have."""
    queries = {query.id: query for query in dataset.recorded}
    texts = dataset.texts({one.document_id for one in judgments})
    seen = Findings()
    for one in judgments:
        where = f"query {one.query_id!r}, document {one.document_id!r}"
        if one.prompt == digest_of(KEEP):
            seen.wrong(where, "keeps or drops a draft, and grades no document", "harness queries keep")
        elif one.query_id not in queries:
            remedy = did_you_mean(one.query_id, queries) if len(queries) <= 2_000 else ""
            seen.wrong(where, f"the data set has no such query: a pool of other queries? {remedy}")
        elif one.document_id not in texts:
            seen.wrong(where, "the data set has no such document: a pool of another corpus?")
        elif one.text != text_digest(queries[one.query_id].text, texts[one.document_id]):
            what = "the question or the document has changed since it was judged"
            seen.wrong(where, what, "make a new pool and judge it again")
    if seen:
        raise InputError(seen.problems)
