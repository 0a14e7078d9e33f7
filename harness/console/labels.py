"""The commands for labels that are there: labels agree, labels merge, labels export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from harness.console.groups import WholeSentences
from harness.console.options import Json, Policy, refuse
from harness.console.printing import print_json, say, warn

app = typer.Typer(
    cls=WholeSentences, help="Judgments of people and models: agreement, merging, export.", rich_markup_mode=None
)

JudgmentFiles = Annotated[list[Path], typer.Argument(metavar="JUDGMENTS", help="Files of judgments.")]
Sources = Annotated[list[Path], typer.Argument(metavar="DATASET|JUDGMENTS", help="A data set, or files of judgments.")]


@app.command()
def agree(paths: Sources, as_json: Json = False) -> None:
    """Tell how far judges agree: kappa, alpha, positive agreement, each in a second round, and what to talk about."""
    from harness.console.agreement import lines
    from harness.labels.agree import agree as measure

    agreements = measure(paths)
    if as_json:
        print_json(pairs=[_plain(one) for one in agreements.pairs], together=_plain(agreements.together),
                   themselves=[_plain(one) for one in agreements.repeated],
                   disputed=[one._asdict() for one in agreements.disputed],
                   apart=[one._asdict() for one in agreements.apart])  # fmt: skip
    else:
        say(*lines(agreements))


@app.command()
def merge(
    paths: JudgmentFiles,
    into: Annotated[str, typer.Option(metavar="DATASET", help="The data set whose questions were judged.")],
    queries: Annotated[list[str] | None, typer.Option(help="The file of queries that was asked, within it.")] = None,
    adjudicate: Annotated[Path | None, typer.Option(help="Write what people disagree on as a pool, to be settled.")] = (
        None
    ),
    policy: Policy = None,
    as_json: Json = False,
) -> None:
    """Write judgments beside the queries of a data set, where check, run and report read them; all or nothing."""
    from harness.dataset import DatasetReference
    from harness.labels.merge_labels import adjudication_pool, merge_into
    from harness.labels.model_grades import check_new
    from harness.labels.pool import read_policy, write_pool

    if adjudicate is None:
        refuse({"--policy": policy}, "goes with --adjudicate")
    reference = DatasetReference(Path(into), queries=tuple(queries or ()))
    if adjudicate is not None:
        check_new(adjudicate)
    merged = merge_into(paths, reference)
    if adjudicate is not None and merged.disputed:
        write_pool(adjudicate, adjudication_pool(merged.disputed, reference, read_policy(policy)))
    if as_json:
        disputed = [one._asdict() for one in merged.disputed]
        print_json(**{**merged._asdict(), "path": str(merged.path), "disputed": disputed})
        return
    of_people = f"questions judged by people {merged.people:,}, begun by people {merged.mixed:,}"
    say(f"{merged.path}: {merged.judgments:,} judgments, {merged.added:,} of them new")
    say(f"{of_people}, by a model alone {merged.model:,}")
    if adjudicate is not None and not merged.disputed:
        say(f"people differ by two grades on no document: there is nothing to settle, and {adjudicate} is not written")
    for one in merged.disputed:
        gave = ", ".join(f"{judge} {grade}" for judge, grade in one.grades)
        warn(f"to adjudicate: {one.query_id} {one.document_id}: {gave}")


@app.command()
def export(
    dataset: Annotated[str, typer.Argument(metavar="DATASET", help="A data set with labels.")],
    output: Annotated[Path, typer.Option(help="The file to write.")],
    form: Annotated[Literal["trec", "json"], typer.Option("--as", help="TREC qrels, or a data set's queries.json.")] = (
        "trec"
    ),
    queries: Annotated[list[str] | None, typer.Option(help="The file of queries, within the data set.")] = None,
    with_model: Annotated[
        bool, typer.Option("--with-model", help="Write a model's labels, too, where there are people's.")
    ] = False,
) -> None:
    """Write the merged labels as TREC qrels, or in the data set's own form: people's alone where there are any."""
    from harness.dataset import DatasetReference, load
    from harness.labels.merge_labels import export_labels

    data = load(DatasetReference(Path(dataset), queries=tuple(queries or ())))
    say(f"{output}: {export_labels(data, output, form, with_model=with_model).sentence()}")


def _plain(record: object) -> object:
    """A record as JSON has it: NaN, which it has no word for, becomes null."""
    if isinstance(record, tuple) and hasattr(record, "_asdict"):
        return {key: _plain(value) for key, value in record._asdict().items()}
    if isinstance(record, tuple):
        return [_plain(value) for value in record]
    return None if isinstance(record, float) and record != record else record
