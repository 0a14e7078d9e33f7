"""Files of what judges said of texts, claims and verdicts, each once, so that every measure is computed from them.

`claims.jsonl` holds one entry for each distinct text (text, claims, judge, prompt), `verdicts.jsonl` one for each
claim, passage and judge (claim, passage, verdict, judge, prompt), `opinions.jsonl` whatever else a judge
was asked (task, of, answer, judge, prompt). Passages are named by a digest of their text; for rankings,
`passages.jsonl` says which document has which (id, passage). A text that was read once is never read again: other
cutoffs and other measures cost nothing.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from harness.measures import Claimed
from harness.measures.measure import Truth
from harness.records.manifest import write_jsonl
from retrievers.errors import InputError, Problem
from retrievers.opening import text_file, writing
from retrievers.types import Query

Word = Literal["entailed", "contradicted", "neutral"]
WORDS: tuple[str, ...] = get_args(Word)
FOLDER = "answers"
"""Where these files are in a results folder."""
PEOPLE = "people"
"""Stands in the place of a judge for claims that came with the data."""
CLAIMS, VERDICTS, OPINIONS, PASSAGES = (
    "claims.jsonl",
    "verdicts.jsonl",
    "opinions.jsonl",
    "passages.jsonl",
)
RESERVED = frozenset({"claims", "verdicts", "opinions", "passages"})
"""Names that no system may have, since its file would be one of these."""


class By(NamedTuple):
    """Who read a text: a judge, and a digest of what it was told to do."""

    judge: str
    prompt: str = ""


class ClaimPassage(NamedTuple):
    """A claim, and a text that may entail it."""

    claim: str
    text: str


@lru_cache(maxsize=1 << 16)
def digest_of(text: str) -> str:
    """A short name of a text: 16 hexadecimal digits of its SHA-256.

    >>> digest_of("The fee is 300 yen.")
    'f36a08de5a65a3e3'
    """
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def truth_of(word: str | None) -> Truth:
    """Whether a verdict says that the claim is entailed; unknown without a verdict.

    >>> truth_of("entailed"), truth_of("contradicted"), truth_of(None)
    (True, False, None)
    """
    return None if word is None else word == "entailed"


class ClaimsJudging(NamedTuple):
    """What became of the claims of one run."""

    claims: Mapping[str, Claimed]
    """By query id; empty where the judge failed."""
    facts: Mapping[str, str]
    """For the manifest: who judged, and how much."""
    warning: str = ""


@dataclass(slots=True)
class Readings:
    """What one judge said, by text: an unreadable answer is None, and one that is absent was not asked for."""

    claims: dict[str, tuple[str, ...] | None] = field(default_factory=dict)
    """Text -> its claims."""
    verdicts: dict[tuple[str, str], Word | None] = field(default_factory=dict)
    """(Claim, digest of the passage) -> verdict."""
    opinions: dict[tuple[str, tuple[str, ...]], Any] = field(default_factory=dict)
    """(Task, digests of the texts it is about) -> answer."""

    def word(self, claim: str, text: str) -> Word | None:
        """The verdict on a claim and a passage; None where there is none that could be read."""
        return self.verdicts.get((claim, digest_of(text)))

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
    readings, problems = Readings(), list[Problem]()
    for name, put in (
        (CLAIMS, _put_claims),
        (VERDICTS, _put_verdict),
        (OPINIONS, _put_opinion),
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
    folder: Path, by: By, words: Mapping[ClaimPassage, Word | None]
) -> None:
    """Add verdicts to a folder's file."""
    _append(
        folder / VERDICTS,
        (
            {
                "claim": pair.claim,
                "passage": digest_of(pair.text),
                "verdict": word,
                **by._asdict(),
            }
            for pair, word in words.items()
        ),
    )


def append_claims(
    folder: Path, by: By, by_text: Mapping[str, Sequence[str] | None]
) -> None:
    """Add the claims of texts to a folder's file."""
    _append(
        folder / CLAIMS,
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
    folder: Path, by: By, task: str, answers: Mapping[tuple[str, ...], Any]
) -> None:
    """Add the answers to another task to a folder's file."""
    _append(
        folder / OPINIONS,
        (
            {
                "task": task,
                "of": list(map(digest_of, texts)),
                "answer": answer,
                **by._asdict(),
            }
            for texts, answer in answers.items()
        ),
    )


def write_passages(folder: Path, texts: Mapping[str, str]) -> None:
    """Write which document has which text: document id -> text."""
    write_jsonl(
        folder / PASSAGES,
        ({"id": id_, "passage": digest_of(text)} for id_, text in texts.items()),
    )


def read_passages(folder: Path) -> dict[str, str]:
    """Document id -> digest of its text; InputError with every line that cannot be read."""
    problems: list[Problem] = []
    passages = {
        str(row.get("id")): str(row.get("passage"))
        for _, row in _rows(folder / PASSAGES, problems)
    }
    if problems:
        raise InputError(problems)
    return passages


def claims_of(query: Query, readings: Readings) -> tuple[str, ...]:
    """The claims of a query's reference answer: those of the data, else those that the judge took out of the answer."""
    if query.reference.claims:
        return tuple(claim.text for claim in query.reference.claims)
    recorded = [readings.claims.get(text) for text in query.reference.answers[:1]]
    return recorded[0] or () if recorded else ()


def claimed(
    queries: Iterable[Query], readings: Readings, passages: Mapping[str, str]
) -> dict[str, Claimed]:
    """What measures by claims are computed from: for each query that has any, its claims and what entails them.

    Args:
        queries: those that are measured.
        readings: the judge's verdicts.
        passages: document id -> digest of its text.
    """
    verdicts, by_query = readings.verdicts, {}
    for query in queries:
        if claims := claims_of(query, readings):
            by_document = {
                document: tuple(
                    truth_of(verdicts.get((claim, passage))) for claim in claims
                )
                for document, passage in passages.items()
            }
            by_query[query.id] = Claimed(
                claims,
                {doc: row for doc, row in by_document.items() if set(row) != {None}},
            )
    return by_query


def _put_claims(readings: Readings, row: Mapping[str, Any]) -> None:
    claims = row["claims"]
    readings.claims[str(row["text"])] = (
        None if claims is None else _texts("claims", claims)
    )


def _put_verdict(readings: Readings, row: Mapping[str, Any]) -> None:
    word = row["verdict"]
    if word is not None and word not in WORDS:
        raise ValueError(f"{word!r} is not a verdict ({', '.join(WORDS)} or null)")
    if int(row.get("round", 1)) == 1:  # earlier versions could ask twice
        readings.verdicts[str(row["claim"]), str(row["passage"])] = word


def _put_opinion(readings: Readings, row: Mapping[str, Any]) -> None:
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
    with writing(path), text_file(path, "a") as file:
        file.write(
            "".join(written)
        )  # at once: what may not be written is looked up once
