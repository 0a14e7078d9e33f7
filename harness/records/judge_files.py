"""The files that hold what judges said.

`claims.jsonl` holds one entry for each distinct text (text, claims, judge, prompt), `verdicts.jsonl` one for each
claim, passage and judge (claim, passage, verdict, judge, prompt), `opinions.jsonl` whatever else a judge
was asked (task, of, answer, judge, prompt). Passages are named by a digest of their text; for rankings,
`passages.jsonl` says which document has which (id, passage). A text that was read once is never read again: other
cutoffs and other measures cost nothing.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

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
"""Where these files are in a results folder."""


CLAIMS_FILE, VERDICTS_FILE, OPINIONS_FILE, PASSAGES_FILE = (
    "claims.jsonl",
    "verdicts.jsonl",
    "opinions.jsonl",
    "passages.jsonl",
)
RESERVED_SYSTEM_NAMES = frozenset({"claims", "verdicts", "opinions", "passages"})
"""Names that no system may have, since its file would be one of these."""


def read_readings(folder: Path, by: JudgeIdentity) -> JudgeReadings:
    """Read what one judge said in a folder; nothing where the files are not there.

    Raises:
        InputError: with every line that cannot be read.
    """
    readings, problems = JudgeReadings(), list[Problem]()
    for name, put in (
        (CLAIMS_FILE, _put_claims),
        (VERDICTS_FILE, _put_verdict),
        (OPINIONS_FILE, _put_opinion),
    ):
        for place, row in _rows(folder / name, problems):
            try:
                if (row["judge"], row.get("prompt", "")) == by:
                    put(readings, row)
            except (KeyError, TypeError, ValueError, OverflowError) as error:
                problems.append(
                    Problem(
                        place, f"is not an entry of {name}: {error}", "remove the line"
                    )
                )
    if problems:
        raise InputError(problems)
    return readings


def append_verdicts(
    folder: Path, by: JudgeIdentity, words: Mapping[ClaimPassage, EntailmentWord | None]
) -> None:
    """Add verdicts to a folder's file."""
    _append(
        folder / VERDICTS_FILE,
        (
            {
                "claim": pair.claim,
                "passage": short_digest(pair.text),
                "verdict": word,
                **by._asdict(),
            }
            for pair, word in words.items()
        ),
    )


def append_claims(
    folder: Path, by: JudgeIdentity, by_text: Mapping[str, Sequence[str] | None]
) -> None:
    """Add the claims of texts to a folder's file."""
    _append(
        folder / CLAIMS_FILE,
        (
            {
                "text": text,
                "claims": None if claims is None else list(claims),
                **by._asdict(),
            }
            for text, claims in by_text.items()
        ),
    )


def append_opinions(
    folder: Path, by: JudgeIdentity, task: str, answers: Mapping[tuple[str, ...], Any]
) -> None:
    """Add the answers to another task to a folder's file."""
    _append(
        folder / OPINIONS_FILE,
        (
            {
                "task": task,
                "of": list(map(short_digest, texts)),
                "answer": answer,
                **by._asdict(),
            }
            for texts, answer in answers.items()
        ),
    )


def write_passages(folder: Path, texts: Mapping[str, str]) -> None:
    """Write which document has which text: document id -> text."""
    write_json_lines(
        folder / PASSAGES_FILE,
        ({"id": id_, "passage": short_digest(text)} for id_, text in texts.items()),
    )


def read_passages(folder: Path) -> dict[str, str]:
    """Document id -> digest of its text; InputError with every line that cannot be read."""
    problems: list[Problem] = []
    passages = {
        str(row.get("id")): str(row.get("passage"))
        for _, row in _rows(folder / PASSAGES_FILE, problems)
    }
    if problems:
        raise InputError(problems)
    return passages


def _put_claims(readings: JudgeReadings, row: Mapping[str, Any]) -> None:
    claims = row["claims"]
    readings.claims[str(row["text"])] = (
        None if claims is None else _texts("claims", claims)
    )


def _put_verdict(readings: JudgeReadings, row: Mapping[str, Any]) -> None:
    word = row["verdict"]
    if word is not None and word not in ENTAILMENT_WORDS:
        raise ValueError(
            f"{word!r} is not a verdict ({', '.join(ENTAILMENT_WORDS)} or null)"
        )
    if int(row.get("round", 1)) == 1:  # earlier versions could ask twice
        readings.verdicts[str(row["claim"]), str(row["passage"])] = word


def _put_opinion(readings: JudgeReadings, row: Mapping[str, Any]) -> None:
    readings.opinions[str(row["task"]), _texts("of", row["of"])] = row["answer"]


def _texts(key: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise ValueError(
            f"{key} is not a list of texts"
        )  # a text would be read as its letters
    return tuple(value)


def _rows(path: Path, problems: list[Problem]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of a file, each with its place; a last line that broke off when a run was stopped is left out."""
    if not path.is_file():
        return
    for number, line in enumerate(path.read_bytes().splitlines(keepends=True), start=1):
        if not line.strip() or not line.endswith(b"\n"):
            continue
        try:
            row = json.loads(line.decode())
            what = "" if isinstance(row, dict) else "is not a JSON object"
        except (ValueError, RecursionError) as error:
            what = f"is not {'UTF-8' if isinstance(error, UnicodeDecodeError) else 'JSON'}: {error}"
        if what:
            problems.append(Problem(f"{path}:{number}", what, "remove the line"))
        else:
            yield f"{path}:{number}", row


def _append(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    if not (written := [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = path.read_bytes() if path.is_file() else b""
    if whole and not whole.endswith(b"\n"):  # a run was stopped in the middle of a line
        path.write_bytes(whole[: whole.rfind(b"\n") + 1])
    with explain_write_errors(path), open_text_file(path, "a") as file:
        file.write(
            "".join(written)
        )  # at once: what may not be written is looked up once
