"""How far a judge agrees with people, who give verdicts on a sample as rows of verdicts.jsonl signed "person:NAME"."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from harness import records
from harness.records import WORDS, Readings
from harness.stats.agreement import cohen_kappa, confusion

PERSON = "person:"


class WithPerson(NamedTuple):
    """One person's verdicts beside the judge's."""

    person: str
    both: int
    """Pairs on which both gave a verdict."""
    same: int
    kappa: float
    """Cohen's, of the three verdicts; NaN where one of the two used only one of them."""

    def sentence(self) -> str:
        """What stands beside every measure that the judge's verdicts make."""
        if not self.both:
            return f"{self.person} judged none of these pairs"
        kappa = "" if self.kappa != self.kappa else f", Cohen's kappa {self.kappa:.2f}"
        return f"{self.person} agrees with the judge on {self.same:,} of {self.both:,} verdicts{kappa}"


def with_people(folder: Path, readings: Readings) -> list[WithPerson]:
    """Compare the judge's verdicts of a folder with those of every person who gave some there."""
    mine = readings.verdicts.get(1, {})
    compared = []
    for by in records.judges_in(folder):
        if by.judge.startswith(PERSON):
            theirs = records.read_readings(folder, by).verdicts.get(1, {})
            pairs = [(WORDS.index(word), WORDS.index(mine_too)) for pair, word in theirs.items()
                     if word is not None and (mine_too := mine.get(pair)) is not None]  # fmt: skip
            table = confusion([a for a, _ in pairs], [b for _, b in pairs], range(len(WORDS)))
            same = sum(a == b for a, b in pairs)
            compared.append(WithPerson(by.judge.removeprefix(PERSON), len(pairs), same, float(cohen_kappa(table))))
    return compared
