"""The command on blind preferences."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from harness.console import options as shared
from harness.console.output import print_result
from harness.english import count_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness.labels.compared_rankings import ComparisonDesign
    from harness.labels.preference_counts import LabelAgreement, PreferenceCounts
    from harness.records import Results
    from harness.wording.preferences import LabelDirection, PreferenceTotals

RetrieverA = Annotated[str, typer.Argument(metavar="A", help="A retriever.")]
RetrieverB = Annotated[str, typer.Argument(metavar="B", help="Another retriever.")]
ExportedFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--from", metavar="FILE", help="Exported preferences; may be repeated."
    ),
]
NoTexts = Annotated[
    bool, typer.Option("--no-texts", help="Show ids in place of texts.")
]


def prefer(
    *,
    results: shared.ResultsFolder,
    a: RetrieverA,
    b: RetrieverB,
    exported: ExportedFiles = None,
    queries: Annotated[
        int, typer.Option(min=1, help="Number of queries, drawn by the seed.")
    ] = 25,
    depth: Annotated[
        int, typer.Option(min=1, max=20, help="Documents of each list.")
    ] = 5,
    seed: Annotated[int, typer.Option(help="Seed of queries, order and sides.")] = 0,
    no_texts: NoTexts = False,
    output: Annotated[Path, typer.Option(help="File to write.")] = Path("prefer.html"),
    as_json: shared.JsonOutput = False,
) -> None:
    """Write a blind page that compares two retrievers, or count what people prefer."""
    from harness import records
    from harness.labels.compared_rankings import compare_design

    stored = records.read_results(results)
    if exported:
        _print_counts(stored, exported, a, b, as_json=as_json)
        return
    design = compare_design(stored, a, b, depth, seed=seed)
    command = f"harness prefer {quote(results.as_posix())} {quote(a)} {quote(b)}"
    _write_page(
        stored,
        design,
        output,
        command=f"{command} --from ~/Downloads/preferences.jsonl",
        queries=queries,
        no_texts=no_texts,
        as_json=as_json,
    )


def _write_page(
    stored: Results,
    design: ComparisonDesign,
    output: Path,
    *,
    command: str,
    queries: int,
    no_texts: bool,
    as_json: bool,
) -> None:
    """Write the page on which people choose between rankings; print what it takes."""
    from harness.evaluation.judging_pace import SECONDS_PER_COMPARISON
    from harness.labels.compared_rankings import comparison_steps, differing_rankings
    from harness.labels.preference_page import PreferencePage, write_preference_page
    from harness.wording.preferences import preference_power_sentence

    compared = differing_rankings(stored, design)
    power = preference_power_sentence(min(queries, len(compared)))
    page = PreferencePage(
        design, compared, stored.documents, command, power, queries, no_texts
    )
    write_preference_page(output, page)
    steps = len(comparison_steps(page.shown, design.seed))
    differing = count_of(len(compared), "query")
    minutes = count_of(max(1, round(steps * SECONDS_PER_COMPARISON / 60)), "minute")
    lines = [
        f"{output}: {len(page.shown)} of {differing} whose first {design.depth} "
        f"differ, {steps - len(page.shown)} of them twice; about {minutes}",
        power,
        f"page: {output.resolve().as_uri()}",
        f"when it is answered, export; then: {command}",
    ]
    print_result(
        lines,
        as_json=as_json,
        path=str(output),
        queries=len(page.shown),
        differing=len(compared),
        answers=steps,
    )


def _print_counts(
    stored: Results, paths: Sequence[Path], a: str, b: str, *, as_json: bool
) -> None:
    """Count the preferences in exported files, and print them.

    Depth and seed are those of the page, which each of its lines has; the options of
    this command are for a new page.
    """
    from harness.labels.compared_rankings import compare_design
    from harness.labels.preference_counts import count_preferences
    from harness.labels.preferences_file import read_preferences

    files = read_preferences([path.expanduser() for path in paths])
    any_preference = files[0][0]  # all files are of one page, and none is empty
    design = compare_design(
        stored, a, b, any_preference.depth, seed=any_preference.seed
    )
    counts = count_preferences(stored, design, files)
    print_result(
        _count_lines(counts),
        as_json=as_json,
        a=counts.a,
        b=counts.b,
        for_a=counts.for_a,
        for_b=counts.for_b,
        same=counts.same,
        p=counts.p,
        level=counts.level,
        leader=counts.leader,
        shown=counts.is_shown,
        interval=counts.interval,
        self_agreement=counts.self_agreement,
        labels=counts.labels,
    )


def _count_lines(counts: PreferenceCounts) -> Iterator[str]:
    """Yield the preferences in words: totals, people, looks, and what labels say."""
    from harness.wording.preferences import (
        label_sentences,
        preference_look_sentence,
        self_agreement_sentence,
        total_sentences,
    )

    totals = _totals(counts)
    yield from total_sentences(totals)
    if len(counts.judges) > 1:
        people = count_of(len(counts.judges), "person").replace("persons", "people")
        yield f"{people}: for each query the majority counts."
    sentences = [
        self_agreement_sentence(*counts.self_agreement),
        preference_look_sentence(counts.look, counts.earlier, counts.queries),
    ]
    yield from filter(None, sentences)
    if counts.labels is not None:
        yield from label_sentences(_direction(counts, counts.labels), totals)


def _totals(counts: PreferenceCounts) -> PreferenceTotals:
    from harness.wording.preferences import PreferenceTotals

    leader = counts.leader
    return PreferenceTotals(
        leader=leader,
        other=counts.b if leader == counts.a else counts.a,
        for_leader=max(counts.for_a, counts.for_b),
        for_other=min(counts.for_a, counts.for_b),
        same=counts.same,
        p=counts.p,
        interval=counts.interval,
        level=counts.level,
        is_shown=counts.is_shown,
    )


def _direction(counts: PreferenceCounts, labels: LabelAgreement) -> LabelDirection:
    from harness.wording.preferences import LabelDirection

    leader = ""
    if labels.difference:
        leader = counts.a if labels.difference > 0 else counts.b
    return LabelDirection(
        labels.measure,
        leader,
        abs(labels.difference),
        labels.is_shown,
        labels.both,
        labels.agreeing,
    )
