"""The files with judges' verdicts.

- `claims.jsonl`: one entry for each distinct text (text, claims, judge, prompt)
- `verdicts.jsonl`: one for each claim, passage and judge (claim, passage, verdict,
  judge, prompt)
- `opinions.jsonl`: one for each further task, such as "relevance", and the texts that
  it is about (task, of, answer, judge, prompt)
- `passages.jsonl`: the passage of each document (id, passage), for rankings

Passages are named by a digest of their text. No text is judged twice, unless the reply
was unreadable (then the last entry counts): other cutoffs and measures cost nothing.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

from harness.records.jsonl import write_json_lines
from harness.records.judge_readings import (
    ENTAILMENT_WORDS,
    ClaimPassage,
    EntailmentWord,
    JudgeIdentity,
    JudgeReadings,
    short_digest,
)
from retrievers.errors import InputError, Problem
from retrievers.files.text_files import explain_write_errors, open_text_file

ANSWERS_FOLDER = "answers"
"""The folder of these files in a results folder."""
CLAIMS_FILE = "claims.jsonl"
VERDICTS_FILE = "verdicts.jsonl"
OPINIONS_FILE = "opinions.jsonl"
PASSAGES_FILE = "passages.jsonl"
RESERVED_SYSTEM_NAMES = frozenset({"claims", "verdicts", "opinions", "passages"})
"""Names that no system may have, since its file would be one of these."""


class ClaimsRow(NamedTuple):
    """The claims in a text."""

    text: str
    claims: tuple[str, ...] | None
    """The claims of the text; None if the judge's reply was unreadable."""

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> Self:
        """Return the row of a stored form; an error if the form is wrong."""
        claims = stored["claims"]
        text = str(stored["text"])
        return cls(text, None if claims is None else _text_list("claims", claims))


class VerdictRow(NamedTuple):
    """Whether a passage entails a claim."""

    claim: str
    passage: str
    """The digest of its text."""
    verdict: EntailmentWord | None
    """The verdict; None if the judge's reply was unreadable."""

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> Self:
        """Return the row of a stored form; an error if the form is wrong."""
        word = stored["verdict"]
        if word is not None and word not in ENTAILMENT_WORDS:
            words = f"{', '.join(ENTAILMENT_WORDS)} or null"
            raise ValueError(f"{word!r} is not a verdict ({words})")
        return cls(str(stored["claim"]), str(stored["passage"]), word)


class OpinionRow(NamedTuple):
    """The answer to another task."""

    task: str
    of: tuple[str, ...]
    """The digests of its texts."""
    answer: Any

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> Self:
        """Return the row of a stored form; an error if the form is wrong."""
        texts = _text_list("of", stored["of"])
        return cls(str(stored["task"]), texts, stored["answer"])


class PassageRow(NamedTuple):
    """The passage of a document."""

    id: str
    passage: str
    """The digest of its text."""

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> Self:
        """Return the row of a stored form; an error if the form is wrong."""
        return cls(str(stored["id"]), str(stored["passage"]))


StoredRow = TypeVar("StoredRow", ClaimsRow, VerdictRow, OpinionRow, PassageRow)


def read_readings(folder: Path, by: JudgeIdentity) -> JudgeReadings:
    """Read one judge's claims, verdicts and opinions in a folder; empty without files.

    Raises:
        InputError: with every line that cannot be read.
    """
    readings = JudgeReadings()
    problems: list[Problem] = []
    for claims in _read_rows(folder / CLAIMS_FILE, ClaimsRow.read, problems, by=by):
        readings.claims[claims.text] = claims.claims
    for row in _read_rows(folder / VERDICTS_FILE, VerdictRow.read, problems, by=by):
        readings.verdicts[row.claim, row.passage] = row.verdict
    for opinion in _read_rows(folder / OPINIONS_FILE, OpinionRow.read, problems, by=by):
        readings.opinions[opinion.task, opinion.of] = opinion.answer
    if problems:
        raise InputError(problems)
    return readings


def append_verdicts(
    folder: Path,
    by: JudgeIdentity,
    verdicts: Mapping[ClaimPassage, EntailmentWord | None],
) -> None:
    """Add verdicts to a folder's file; None for a reply that was unreadable."""
    rows = [
        VerdictRow(pair.claim, short_digest(pair.text), word)
        for pair, word in verdicts.items()
    ]
    _append_rows(folder / VERDICTS_FILE, by, rows)


def append_claims(
    folder: Path, by: JudgeIdentity, by_text: Mapping[str, Sequence[str] | None]
) -> None:
    """Add the claims of texts to a folder's file; None if they were unreadable."""
    rows = [
        ClaimsRow(text, None if claims is None else tuple(claims))
        for text, claims in by_text.items()
    ]
    _append_rows(folder / CLAIMS_FILE, by, rows)


def append_opinions(
    folder: Path, by: JudgeIdentity, task: str, answers: Mapping[tuple[str, ...], Any]
) -> None:
    """Add the answers to another task to a folder's file.

    Args:
        folder: of these files.
        by: the judge that answered.
        task: its name.
        answers: the texts that the task is about -> the answer.
    """
    rows = [
        OpinionRow(task, tuple(map(short_digest, texts)), answer)
        for texts, answer in answers.items()
    ]
    _append_rows(folder / OPINIONS_FILE, by, rows)


def write_passages(folder: Path, texts: Mapping[str, str]) -> None:
    """Write the passage of each document.

    Args:
        folder: of these files.
        texts: document id -> text.
    """
    rows = (
        PassageRow(document_id, short_digest(text))._asdict()
        for document_id, text in texts.items()
    )
    write_json_lines(folder / PASSAGES_FILE, rows)


def read_passages(folder: Path) -> dict[str, str]:
    """Return document id -> digest of its text.

    Raises:
        InputError: with every line that cannot be read.
    """
    problems: list[Problem] = []
    passages: dict[str, str] = {}
    for row in _read_rows(folder / PASSAGES_FILE, PassageRow.read, problems):
        passages[row.id] = row.passage
    if problems:
        raise InputError(problems)
    return passages


def _text_list(key: str, content: object) -> tuple[str, ...]:
    """Return a list of texts; a single text would be read as its letters.

    Raises:
        ValueError: it is not a list of texts.
    """
    if not isinstance(content, list):
        raise ValueError(f"{key} is not a list of texts")
    if not all(isinstance(text, str) for text in content):
        raise ValueError(f"{key} is not a list of texts")
    return tuple(content)


def _read_rows(
    path: Path,
    parse: Callable[[Mapping[str, Any]], StoredRow],
    problems: list[Problem],
    *,
    by: JudgeIdentity | None = None,
) -> Iterator[StoredRow]:
    """Yield the rows of a file, and add a problem for each line that is not a row.

    The last line is ignored if it is incomplete, because a run was stopped.

    Args:
        path: the file.
        parse: returns the row of a stored form.
        problems: those of lines are added.
        by: the judge whose rows are read; None: all rows.
    """
    if not path.is_file():
        return
    for number, line in enumerate(path.read_bytes().splitlines(keepends=True), start=1):
        if not line.strip() or not line.endswith(b"\n"):
            continue
        try:
            row = _parse_row(_parse_object(line), parse, by, path.name)
        except ValueError as error:
            where = f"{path}:{number}"
            problems.append(Problem(where, str(error), "remove the line"))
            continue
        if row is not None:
            yield row


def _parse_object(line: bytes) -> dict[str, Any]:
    """Return the JSON object of a line; ValueError with the problem if it has none."""
    try:
        stored = json.loads(line.decode())
    except (ValueError, RecursionError) as error:
        form = "UTF-8" if isinstance(error, UnicodeDecodeError) else "JSON"
        raise ValueError(f"is not {form}: {error}") from None
    if not isinstance(stored, dict):
        raise ValueError("is not a JSON object")
    return stored


def _parse_row(
    stored: Mapping[str, Any],
    parse: Callable[[Mapping[str, Any]], StoredRow],
    by: JudgeIdentity | None,
    file_name: str,
) -> StoredRow | None:
    """Return the row of an object; None if it is of another judge.

    Raises:
        ValueError: with the problem, if it is no row.
    """
    try:
        if by is not None and (stored["judge"], stored.get("prompt", "")) != by:
            return None
        return parse(stored)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"is not an entry of {file_name}: {error}") from None


def _append_rows(
    path: Path,
    by: JudgeIdentity,
    rows: Iterable[ClaimsRow | VerdictRow | OpinionRow],
) -> None:
    """Append rows, each with the judge that gave it; first repair a file cut off."""
    lines = [
        json.dumps({**row._asdict(), **by._asdict()}, ensure_ascii=False) + "\n"
        for row in rows
    ]
    if not lines:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    content = path.read_bytes() if path.is_file() else b""
    if content and not content.endswith(b"\n"):
        # A run was stopped in the middle of a line.
        path.write_bytes(content[: content.rfind(b"\n") + 1])
    with explain_write_errors(path), open_text_file(path, "a") as file:
        file.write("".join(lines))
