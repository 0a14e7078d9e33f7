"""What a gate found, as GitHub Actions shows it: an annotation of the change, and a summary of the job."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from harness.console.layout import visible
from harness.console.printing import say
from retrievers.opening import masking, writing

if TYPE_CHECKING:
    from harness.records import Results

SUMMARY = "GITHUB_STEP_SUMMARY"
"""The environment variable that names the file of the job's summary."""
WIDTH = 100
"""Cells of the leaderboard in it."""


def tell(results: Results, sentence: str, *, passed: bool, which: str) -> None:
    """Print the annotation, and add the paired leaderboard to the summary of the job; outside of one, print it, too.

    Args:
        results: whose leaderboard is shown.
        sentence: what the gate found.
        passed: whether it lets the change pass.
        which: run it speaks of.

    Raises:
        InputError: the summary cannot be written.
    """
    outcome = "passed" if passed else "failed"
    say(f"::{'notice' if passed else 'error'} title=Retrieval gate {outcome}::{_escaped(f'{sentence}; {which}')}")
    text = f"### Retrieval gate {outcome}\n\n{visible(sentence)}.\n\n```text\n{_leaderboard(results)}\n```\n\n{which}\n"
    place = os.environ.get(SUMMARY, "")
    if not place:
        say(*text.splitlines())
        return
    with writing(Path(place)), masking(place, "a") as file:
        file.write(text)


def _leaderboard(results: Results) -> str:
    from rich.console import Console

    from harness.console.forest import forest
    from harness.evaluation.board import board_of
    from harness.evaluation.evaluation import evaluation_of

    console = Console(width=WIDTH, color_system=None, force_terminal=False)
    with console.capture() as captured:
        for part in forest(board_of(evaluation_of(results)), width=WIDTH):
            console.print(part)
    lines = captured.get().replace("`", "'").splitlines()  # a fence in a name would end the block
    return "\n".join(line.rstrip() for line in lines)


def _escaped(text: str) -> str:
    r"""A message of a workflow command on one line.

    >>> _escaped("97 %\nof all")
    '97 %25%0Aof all'
    """
    return visible(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
