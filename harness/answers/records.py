"""Claims once, verdicts once: what judges said of texts, kept as files, so that every measure is computed from them.

`claims.jsonl` holds one entry for each distinct text (text, claims, judge, prompt), `verdicts.jsonl` one for each
claim, passage, judge and round (claim, passage, verdict, judge, prompt, round), `opinions.jsonl` whatever else a judge
was asked (task, of, answer, judge, prompt). Passages are named by a digest of their text. A text that was read once is
never read again: other cutoffs and other measures cost nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from harness.answers.judging import SUPPORTS, WORDS, Judge, Pair, Replies, Word, digest_of, truth_of
from harness.measures.truth import Truth
from retrievers.errors import InputError, Problem

CLAIMS, VERDICTS, OPINIONS = "claims.jsonl", "verdicts.jsonl", "opinions.jsonl"
RESERVED = frozenset({"claims", "verdicts", "opinions"})
"""Names that no system may have, since its file would be one of these."""
Given = TypeVar("Given")
Answer = TypeVar("Answer")


class By(NamedTuple):
    """Who read a text: a judge, and a digest of what it was told to do."""

    judge: str
    prompt: str = ""

    @classmethod
    def of(cls, judge: Judge) -> By:
        """What stands in every row of this judge."""
        return cls(judge.name, judge.prompt)


@dataclass(slots=True)
class Readings:
    """What one judge said, by text: an unreadable answer is None, and one that is absent was not asked for."""

    claims: dict[str, tuple[str, ...] | None] = field(default_factory=dict)
    """Text -> its claims."""
    verdicts: dict[int, dict[tuple[str, str], Word | None]] = field(default_factory=dict)
    """Round -> (claim, digest of the passage) -> verdict."""
    opinions: dict[tuple[str, tuple[str, ...]], Any] = field(default_factory=dict)
    """(Task, digests of the texts it is about) -> answer."""

    def word(self, claim: str, text: str, round_: int = 1) -> Word | None:
        """The verdict on a claim and a passage; None where there is none that could be read."""
        return self.verdicts.get(round_, {}).get((claim, digest_of(text)))

    def truth(self, claim: str, text: str) -> Truth:
        """Whether a passage entails a claim; unknown without a verdict."""
        return truth_of(self.word(claim, text))

    def opinion(self, task: str, *texts: str) -> Any:
        """The answer to another task about some texts; None where there is none that could be read."""
        return self.opinions.get((task, tuple(map(digest_of, texts))))


def read_readings(folder: Path, by: By) -> Readings:
    """Read what one judge said in a folder; nothing where the files are not there.

    Raises:
        InputError: with every line that cannot be read.
    """
    found, problems = Readings(), list[Problem]()
    for name, put in ((CLAIMS, _put_claims), (VERDICTS, _put_verdict), (OPINIONS, _put_opinion)):
        for place, row in _rows(folder / name, problems):
            try:
                if (row["judge"], row.get("prompt", "")) == by:
                    put(found, row)
            except (KeyError, TypeError, ValueError) as error:
                problems.append(Problem(place, f"is no entry of {name}: {error}", "remove the line"))
    if problems:
        raise InputError(problems)
    return found


def judges_in(folder: Path) -> list[By]:
    """The judges whose verdicts a folder holds, the last one to write last."""
    rows = (row for _, row in _rows(folder / VERDICTS, []))
    return list(dict.fromkeys(By(str(row.get("judge", "")), str(row.get("prompt", ""))) for row in rows))


def append_verdicts(folder: Path, by: By, said: Mapping[Pair, Word | None], round_: int = 1) -> None:
    """Add verdicts to a folder's file."""
    _append(folder / VERDICTS, (
        {"claim": pair.claim, "passage": digest_of(pair.text), "verdict": word, **by._asdict(), "round": round_}
        for pair, word in said.items()
    ))  # fmt: skip


def append_claims(folder: Path, by: By, said: Mapping[str, Sequence[str] | None]) -> None:
    """Add the claims of texts to a folder's file."""
    _append(folder / CLAIMS, (
        {"text": text, "claims": None if claims is None else list(claims), **by._asdict()}
        for text, claims in said.items()
    ))  # fmt: skip


def append_opinions(folder: Path, by: By, task: str, said: Mapping[tuple[str, ...], Any]) -> None:
    """Add the answers to another task to a folder's file."""
    _append(folder / OPINIONS, (
        {"task": task, "of": list(map(digest_of, texts)), "answer": answer, **by._asdict()}
        for texts, answer in said.items()
    ))  # fmt: skip


def asked_once(
    wanted: Iterable[Given], known: Callable[[Given], bool], ask: Callable[[Sequence[Given]], Replies[Answer]]
) -> dict[Given, Answer | None]:
    """Ask for what is not known yet, each thing once.

    Returns:
        What came back, in the order in which it was wanted; None where it could not be read or did not come.

    >>> asked_once(["a", "b", "a"], {"b"}.__contains__, lambda missing: iter([(0, len(missing))]))
    {'a': 1}
    """
    missing = [one for one in dict.fromkeys(wanted) if not known(one)]
    found: dict[int, Answer | None] = dict(ask(missing)) if missing else {}
    return {one: found.get(place) for place, one in enumerate(missing)}


def _put_claims(found: Readings, row: Mapping[str, Any]) -> None:
    claims = row["claims"]
    found.claims[str(row["text"])] = None if claims is None else tuple(map(str, claims))


def _put_verdict(found: Readings, row: Mapping[str, Any]) -> None:
    word = row["verdict"]
    if word is not None and word not in WORDS:
        raise ValueError(f"{word!r} is no verdict ({', '.join(WORDS)} or null)")
    found.verdicts.setdefault(int(row.get("round", 1)), {})[str(row["claim"]), str(row["passage"])] = word


def _put_opinion(found: Readings, row: Mapping[str, Any]) -> None:
    if row["task"] == "support" and row["answer"] not in (None, *SUPPORTS):
        raise ValueError(f"{row['answer']!r} is no support ({', '.join(SUPPORTS)} or null)")
    found.opinions[str(row["task"]), tuple(map(str, row["of"]))] = row["answer"]


def _rows(path: Path, problems: list[Problem]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of a file, each with its place; a last line that broke off when a run was stopped is left out."""
    if not path.is_file():
        return
    lines = path.read_text(encoding="utf-8").split("\n")
    for number, line in enumerate(lines[:-1], start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            problems.append(Problem(f"{path}:{number}", f"is not JSON: {error}", "remove the line"))
            continue
        if isinstance(row, dict):
            yield f"{path}:{number}", row
        else:
            problems.append(Problem(f"{path}:{number}", "is not a JSON object", "remove the line"))


def _append(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    written = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    if not written:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = path.read_bytes() if path.is_file() else b""
    if whole and not whole.endswith(b"\n"):  # a run was stopped in the middle of a line
        path.write_bytes(whole[: whole.rfind(b"\n") + 1])
    with path.open("a", encoding="utf-8", newline="\n") as file:
        file.writelines(written)
