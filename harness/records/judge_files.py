"""The files with judges' verdicts.

- `claims.jsonl`: one entry for each distinct text (text, claims, judge, prompt)
- `verdicts.jsonl`: one for each claim, passage and judge (claim, passage, verdict,
  judge, prompt)
- `opinions.jsonl`: the answers to other tasks (task, of, answer, judge, prompt)
- `passages.jsonl`: the passage of each document (id, passage), for rankings

Passages are named by a digest of their text. No text is judged twice: other cutoffs and
other measures cost nothing.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

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


class JudgeRow(NamedTuple):
    """A row of one of these files, with its location for messages."""

    where: str
    row: dict[str, Any]


def read_readings(folder: Path, by: JudgeIdentity) -> JudgeReadings:
    """Read one judge's claims, verdicts and opinions in a folder; empty without files.

    Raises:
        InputError: with every line that cannot be read.
    """
    readings = JudgeReadings()
    problems: list[Problem] = []
    add_functions: dict[str, Callable[[JudgeReadings, Mapping[str, Any]], None]] = {
        CLAIMS_FILE: _add_claims,
        VERDICTS_FILE: _add_verdict,
        OPINIONS_FILE: _add_opinion,
    }
    for name, add_row in add_functions.items():
        for where, row in _read_rows(folder / name, problems):
            try:
                if (row["judge"], row.get("prompt", "")) == by:
                    add_row(readings, row)
            except (KeyError, TypeError, ValueError, OverflowError) as error:
                problem = f"is not an entry of {name}: {error}"
                problems.append(Problem(where, problem, "remove the line"))
    if problems:
        raise InputError(problems)
    return readings


def append_verdicts(
    folder: Path,
    by: JudgeIdentity,
    verdicts: Mapping[ClaimPassage, EntailmentWord | None],
) -> None:
    """Add verdicts to a folder's file."""
    rows = [
        {
            "claim": pair.claim,
            "passage": short_digest(pair.text),
            "verdict": word,
            **by._asdict(),
        }
        for pair, word in verdicts.items()
    ]
    _append_rows(folder / VERDICTS_FILE, rows)


def append_claims(
    folder: Path, by: JudgeIdentity, by_text: Mapping[str, Sequence[str] | None]
) -> None:
    """Add the claims of texts to a folder's file."""
    rows = [
        {
            "text": text,
            "claims": None if claims is None else list(claims),
            **by._asdict(),
        }
        for text, claims in by_text.items()
    ]
    _append_rows(folder / CLAIMS_FILE, rows)


def append_opinions(
    folder: Path, by: JudgeIdentity, task: str, answers: Mapping[tuple[str, ...], Any]
) -> None:
    """Add the answers to another task to a folder's file."""
    rows = [
        {
            "task": task,
            "of": list(map(short_digest, texts)),
            "answer": answer,
            **by._asdict(),
        }
        for texts, answer in answers.items()
    ]
    _append_rows(folder / OPINIONS_FILE, rows)


def write_passages(folder: Path, texts: Mapping[str, str]) -> None:
    """Write the passage of each document.

    Args:
        folder: of these files.
        texts: document id -> text.
    """
    rows = (
        {"id": document_id, "passage": short_digest(text)}
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
    for _, row in _read_rows(folder / PASSAGES_FILE, problems):
        passages[str(row.get("id"))] = str(row.get("passage"))
    if problems:
        raise InputError(problems)
    return passages


def _add_claims(readings: JudgeReadings, row: Mapping[str, Any]) -> None:
    claims = row["claims"]
    text = str(row["text"])
    readings.claims[text] = None if claims is None else _text_list("claims", claims)


def _add_verdict(readings: JudgeReadings, row: Mapping[str, Any]) -> None:
    word = row["verdict"]
    if word is not None and word not in ENTAILMENT_WORDS:
        words = f"{', '.join(ENTAILMENT_WORDS)} or null"
        raise ValueError(f"{word!r} is not a verdict ({words})")
    readings.verdicts[str(row["claim"]), str(row["passage"])] = word


def _add_opinion(readings: JudgeReadings, row: Mapping[str, Any]) -> None:
    texts = _text_list("of", row["of"])
    readings.opinions[str(row["task"]), texts] = row["answer"]


def _text_list(key: str, content: object) -> tuple[str, ...]:
    """Return a list of texts; a single text would be read as its letters.

    Raises:
        ValueError: it is none.
    """
    if not isinstance(content, list):
        raise ValueError(f"{key} is not a list of texts")
    if not all(isinstance(text, str) for text in content):
        raise ValueError(f"{key} is not a list of texts")
    return tuple(content)


def _read_rows(path: Path, problems: list[Problem]) -> Iterator[JudgeRow]:
    """Yield the rows of a file, and add a problem for each line that is none.

    The last line is ignored if it is incomplete, because a run was stopped.
    """
    if not path.is_file():
        return
    for number, line in enumerate(path.read_bytes().splitlines(keepends=True), start=1):
        if not line.strip() or not line.endswith(b"\n"):
            continue
        where = f"{path}:{number}"
        try:
            row = json.loads(line.decode())
        except (ValueError, RecursionError) as error:
            form = "UTF-8" if isinstance(error, UnicodeDecodeError) else "JSON"
            problem = f"is not {form}: {error}"
            problems.append(Problem(where, problem, "remove the line"))
            continue
        if isinstance(row, dict):
            yield JudgeRow(where, row)
        else:
            problems.append(Problem(where, "is not a JSON object", "remove the line"))


def _append_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    if not lines:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    content = path.read_bytes() if path.is_file() else b""
    if content and not content.endswith(b"\n"):
        # A run was stopped in the middle of a line.
        path.write_bytes(content[: content.rfind(b"\n") + 1])
    with explain_write_errors(path), open_text_file(path, "a") as file:
        # All at once: secrets in it are searched once.
        file.write("".join(lines))
