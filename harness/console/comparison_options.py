"""Options of `harness compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.console.completion import (
    complete_corrections,
    complete_results_retrievers,
    complete_tests,
)

if TYPE_CHECKING:
    pass


BASELINE_HELP = "Compare every other run with this one; default: all pairs."
BaselineOption = Annotated[
    str | None,
    typer.Option(help=BASELINE_HELP, autocompletion=complete_results_retrievers),
]
MARGIN_HELP = (
    "A difference of means too small to matter; default: the margin of the folders."
)
MarginOption = Annotated[float | None, typer.Option(help=MARGIN_HELP)]
TEST_HELP = (
    "The test that decides: randomization, wilcoxon, t; default: that of "
    "the folders, or randomization."
)
DecidingTest = Annotated[
    str | None, typer.Option(help=TEST_HELP, autocompletion=complete_tests)
]
CORRECTION_HELP = (
    "holm, bonferroni, bh; default: the correction of the folders, or holm."
)
CorrectionName = Annotated[
    str | None, typer.Option(help=CORRECTION_HELP, autocompletion=complete_corrections)
]
RANGE_HELP = (
    "Lowest and highest value of the first measure of a file of scores; default: 0 1."
)
ScoreRange = Annotated[
    tuple[float, float] | None,
    typer.Option("--range", metavar="LOW HIGH", help=RANGE_HELP),
]
ComparisonPage = Annotated[
    Path | None, typer.Option(help="Write a page, of runs or of a file of scores.")
]
