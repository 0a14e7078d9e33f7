"""How far a judge agrees with people, who give verdicts on a sample as rows of verdicts.jsonl signed "person:NAME"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from harness import records
from harness.records import WORDS, Readings, Word
from harness.stats.agreement import cohen_kappa, confusion

PERSON = "person:"
Verdicts = Mapping[tuple[str, str], Word | None]
"""(Claim, digest of the passage) -> verdict."""


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
    for person, theirs in by_person(folder).items():
        pairs = [(WORDS.index(word), WORDS.index(mine_too)) for pair, word in theirs.items()
                 if word is not None and (mine_too := mine.get(pair)) is not None]  # fmt: skip
        table = confusion([a for a, _ in pairs], [b for _, b in pairs], range(len(WORDS)))
        same = sum(a == b for a, b in pairs)
        compared.append(WithPerson(person, len(pairs), same, float(cohen_kappa(table))))
    return compared


def by_person(folder: Path) -> dict[str, Verdicts]:
    """What each person said in a folder, in the first round."""
    people = (by for by in records.judges_in(folder) if by.judge.startswith(PERSON))
    return {by.judge.removeprefix(PERSON): records.read_readings(folder, by).verdicts.get(1, {}) for by in people}


def settled(people: Iterable[Verdicts]) -> dict[tuple[str, str], Word | None]:
    """What people say of each pair together; None where two of them differ, or nobody could tell.

    >>> settled([{("c", "p"): "entailed"}, {("c", "p"): "neutral", ("d", "p"): "entailed"}])
    {('c', 'p'): None, ('d', 'p'): 'entailed'}
    """
    given: dict[tuple[str, str], set[Word]] = {}
    for verdicts in people:
        for pair, word in verdicts.items():
            given.setdefault(pair, set()).update([] if word is None else [word])
    return {pair: next(iter(words)) if len(words) == 1 else None for pair, words in given.items()}


def keep_people(new: Path, earlier: Path) -> None:
    """Take over what people said in an earlier run's folder: a judge can be asked again, people should not be."""
    for by in records.judges_in(earlier):
        if by.judge.startswith(PERSON):
            for round_, words in records.read_readings(earlier, by).verdicts.items():
                records.append_judged(new, by, words, round_)
