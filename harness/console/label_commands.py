"""The commands on labels."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from harness.console import options as shared
from harness.console.agreement_text import agreement_lines
from harness.console.output import print_json, print_lines, print_result, print_warnings
from harness.english import count_of

if TYPE_CHECKING:
    from harness.labels.merge import MergedJudgments

labels_app = shared.command_group(
    "Compare, merge and export labels by people and models."
)

JudgmentFiles = Annotated[
    list[Path], typer.Argument(metavar="JUDGMENTS", help="Files of labels.")
]
LabelSources = Annotated[
    list[Path],
    typer.Argument(metavar="DATASET|JUDGMENTS", help="A data set, or files of labels."),
]


@labels_app.command()
def agree(paths: LabelSources, as_json: shared.JsonOutput = False) -> None:
    """Measure how far judges agree, with others and with themselves, and list the pairs
    to talk about.
    """  # noqa: D205
    from harness.labels.agreement import measure_agreement

    agreements = measure_agreement(paths)
    print_result(agreement_lines(agreements), as_json=as_json, **agreements._asdict())


CORRECTS_HELP = (
    "A judge whose later grades replace earlier ones; without it the first grade stays."
)
Corrects = Annotated[
    list[str] | None, typer.Option(metavar="JUDGE", help=CORRECTS_HELP)
]


@labels_app.command()
def merge(
    *,
    paths: JudgmentFiles,
    into: Annotated[
        str,
        typer.Option(metavar="DATASET", help="The data set whose queries were judged."),
    ],
    queries: Annotated[
        list[str] | None,
        typer.Option(help="The file of queries in it that was judged."),
    ] = None,
    adjudicate: Annotated[
        Path | None,
        typer.Option(help="Write a pool of what people disagree on, to be settled."),
    ] = None,
    policy: shared.PolicyFile = None,
    corrects: Corrects = None,
    as_json: shared.JsonOutput = False,
) -> None:
    """Add labels to a data set, where check, run and report read them; all or none."""
    from harness.dataset import DatasetReference
    from harness.labels.merge import adjudication_pool, merge_into_dataset
    from harness.labels.pool import check_new_file, read_policy, write_pool

    if adjudicate is None:
        shared.refuse_options({"--policy": policy}, "goes with --adjudicate")
    reference = DatasetReference(Path(into), queries=tuple(queries or ()))
    if adjudicate is not None:
        check_new_file(adjudicate)
    merged = merge_into_dataset(paths, reference, corrects or ())
    if adjudicate is not None and merged.disputes:
        pool = adjudication_pool(merged.disputes, reference, read_policy(policy))
        write_pool(adjudicate, pool)
    if as_json:
        _print_merge_json(merged)
        return
    _print_merge(merged, adjudicate)


def _print_merge_json(merged: MergedJudgments) -> None:
    print_json(
        path=str(merged.path),
        judgments=merged.judgment_count,
        added=merged.new_judgment_count,
        people=merged.people_query_count,
        mixed=merged.mixed_query_count,
        model=merged.model_query_count,
        disputed=merged.disputes,
        opinions=merged.later_round_judges,
    )


def _print_merge(merged: MergedJudgments, adjudicate: Path | None) -> None:
    """Print what a merge changed, and what people have to settle."""
    labels = count_of(merged.judgment_count, "label")
    print_lines(
        f"{merged.path}: {labels}, {merged.new_judgment_count:,} of them new",
        f"queries judged by people {merged.people_query_count:,}, begun by people "
        f"{merged.mixed_query_count:,}, by a model alone {merged.model_query_count:,}",
    )
    if adjudicate is not None and not merged.disputes:
        print_lines(
            "people differ by two grades on no document: there is nothing to settle, "
            f"and {adjudicate} is not written"
        )
    for judge in merged.later_round_judges:
        print_warnings(
            f"later grades by {judge} do not replace the first ones; "
            f"if they should: --corrects {quote(judge)}"
        )
    for dispute in merged.disputes:
        grades = ", ".join(f"{judge} {grade}" for judge, grade in dispute.grades)
        print_warnings(
            f"to adjudicate: {dispute.query_id} {dispute.document_id}: {grades}"
        )


WithModel = Annotated[
    bool,
    typer.Option(
        "--with-model", help="Also write a model's labels where there are people's."
    ),
]


@labels_app.command()
def export(
    *,
    dataset: Annotated[
        str, typer.Argument(metavar="DATASET", help="A data set with labels.")
    ],
    output: Annotated[Path, typer.Option(help="File to write.")],
    form: Annotated[
        Literal["trec", "json"],
        typer.Option("--as", help="TREC qrels, or a data set's queries.json."),
    ] = "trec",
    queries: Annotated[
        list[str] | None, typer.Option(help="The file of queries, within the data set.")
    ] = None,
    with_model: WithModel = False,
) -> None:
    """Write the merged labels as TREC qrels, or in the data set's own form; only
    people's where there are any.
    """  # noqa: D205
    from harness.console.labelling_text import exported_labels_sentence
    from harness.dataset import DatasetReference, load_dataset
    from harness.labels.export_labels import export_labels

    reference = DatasetReference(Path(dataset), queries=tuple(queries or ()))
    labelled = load_dataset(reference)
    exported = export_labels(labelled, output, form, with_model=with_model)
    print_lines(f"{output}: {exported_labels_sentence(exported)}")
