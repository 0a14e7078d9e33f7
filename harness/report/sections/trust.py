"""What to know before the verdict is believed; labels, judged claims, counts and data are its folds."""

from __future__ import annotations

import math

from harness.english import join
from harness.evaluation.board import reference_of
from harness.evaluation.cautions import flattery_sentence, judged_note, judged_only_sentence
from harness.evaluation.wording import interval_note
from harness.measures import parse
from harness.report import text
from harness.report.figures import Section
from harness.report.view import View
from harness.stats.power import FEWEST
from harness.stats.resampling import cross_fitted

PLACE = 70


def section(view: View) -> Section:
    """Warnings of the run, what flatters the winner, labels that may favour someone."""
    return Section("trust", "Can I trust it?", {"notes": caveats(view)})


def caveats(view: View) -> list[str]:
    """Warnings of the run, flattery of the winner, short intervals, labels that may favour someone."""
    notes = [text.visible(warning) for warning in view.manifest.warnings]
    notes += [
        f"{name} failed and is not compared: {text.visible(error)}" for name, error in view.manifest.failed.items()
    ]
    if view.resolved.baseline and view.baseline is None:
        notes.append(f"The baseline {view.resolved.baseline} failed: all pairs were compared instead.")
    if len(view.retrievers) > 1 and view.n > 1 and view.conclusion.measured:
        table = view.evaluation.scores
        best = cross_fitted(table.values[view.primary], table.ids, table.units, seed=view.settings.seed)
        if best is not None and best.flattered >= 0.0005:
            notes.append(flattery_sentence(best, len(view.retrievers)))
    if parse(view.primary).get("ideal") in ("retrieved", "retrieved-all"):
        notes.append(
            "The ideal of the primary measure is what was retrieved: one relevant document at rank 1 scores 1, "
            "however much was missed."
        )
    rows = view.comparisons[view.primary]
    few = [row for row in rows if 0 < row.wins + row.losses < FEWEST]
    if few:
        pairs = join([f"{row.a} and {row.b}" for row in few[:3]] + (["other pairs"] if few[3:] else []))
        notes.append(f"Fewer than {FEWEST} queries differ between {pairs}: the intervals there are likely too short.")
    others = [row for row in rows if reference_of(view.evaluation) not in (row.a, row.b)]  # the board's are told above
    return [note for note in [*notes, interval_note(others, view.settings), *_judged(view)] if note]


def _judged(view: View) -> list[str]:
    """Whether unjudged documents may favour someone; a measure by claims needs no judged documents."""
    if parse(view.primary).claimed:
        return []
    if all(grade > 0 for judged in view.grades.values() for grade in judged.values()):
        # Judged is precision then, and says nothing of pooling.
        return [judged_only_sentence()]
    shares = {name: math.fsum(answers.judged) / view.n for name, answers in view.answers.items()}
    leader = view.conclusion.leader
    notes = (judged_note(leader, other, shares[leader], shares[other]) for other in view.ranked[1:])
    return [note for note in notes if note]
