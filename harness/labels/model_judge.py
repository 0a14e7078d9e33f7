"""A model as a judge of a pool.

`judge_by_model` asks for a grade of each pair of which the file of judgments has none
by this model, and appends a line for each reply: one without a grade is null, never 0.
`model_prompt` has the request and reads the reply.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from harness.dataset.judgment import Judgment, read_judgments
from harness.labels.judging_order import (
    JudgeSignature,
    OrderedPair,
    PairRound,
    build_judgment,
    pair_key,
    round_pairs,
)
from harness.labels.model_prompt import (
    UNREADABLE_NOTE,
    grade_request,
    missing_grade_reason,
    prompt_digest,
    read_grade,
)
from harness.labels.pool import Pool
from retrievers.errors import InputError, Problem
from retrievers.files.text_files import (
    exclusive_lock,
    explain_write_errors,
    open_text_file,
)
from retrievers.meter import Meter
from retrievers.services.chat import Chat, quote_reply
from retrievers.services.chat_model import ChatForecast, Reply
from retrievers.services.chat_replies import (
    MAX_TEXT_TOKENS,
    ChatRequest,
    ask_requests,
    unreadable_replies_error,
)


class ModelJudging(NamedTuple):
    """The result of a model's judging."""

    asked: int
    """Number of prompts, including those from the cache."""
    graded: int
    unreadable: int
    """Replies without a grade of the scale: their judgments are null."""
    declined: int
    """Prompts that the endpoint declined: their judgments are null as well."""
    cached: int
    usd: float
    truncated: int = 0
    """Pairs that were judged by the start of a document, as their notes state."""
    without_schema: int = 0
    """Replies of a server that supports no schema."""


class ModelJudgingOptions(NamedTuple):
    """How a model judges a pool."""

    repeat: int = 1
    """Rounds; 2 judges everything twice, which measures the model's noise."""
    longest: int = MAX_TEXT_TOKENS
    """Estimated tokens of a document that the model gets."""


ONE_ROUND = ModelJudgingOptions()


class _PendingPairs(NamedTuple):
    """The pairs that a model must still judge."""

    pairs: list[OrderedPair]
    unreadable: set[PairRound]
    """Pairs and rounds with an unreadable reply, which are judged again."""


def forecast_pool_judging(
    pool: Pool, path: Path, chat: Chat, options: ModelJudgingOptions = ONE_ROUND
) -> ChatForecast:
    """Forecast the remaining calls, tokens and dollars, without a network."""
    signature = _model_signature(pool, chat, options)
    pending = _pending_pairs(pool, path, signature, options.repeat)
    requests = _grade_requests(pool, pending.pairs, options.longest)
    prompts = [request.prompt for request in requests]
    return chat.forecast(prompts, lambda _, reply: read_grade(reply.text) is not None)


def judge_by_model(
    pool: Pool,
    path: Path,
    chat: Chat,
    meter: Meter,
    *,
    options: ModelJudgingOptions = ONE_ROUND,
) -> ModelJudging:
    """Judge each pair of a pool by a model, and append the judgments to a file.

    Judgments are written as they arrive, and those of this model in the file are not
    requested or paid again: a stopped run resumes. Only unreadable replies are
    requested again at the next call; the new judgment corrects the earlier one.

    Args:
        pool: to judge.
        path: the file of judgments, created if absent.
        chat: the model, and the cache.
        meter: counts, and has the budget.
        options: rounds, and the tokens of a document.

    Raises:
        InputError: the file has judgments of another pool or prompt, or the key is not
            set.
        BackendError: the endpoint failed permanently, the budget is spent, or no reply
            has a grade; the file has the judgments so far.
    """
    signature = _model_signature(pool, chat, options)
    with explain_write_errors(path):
        path.parent.stat()  # refuses a folder that is missing: a lock would create it
        lock = exclusive_lock(
            path,
            "is in use by another process",
            "wait for it, or name another file with --output",
        )
    with lock:
        pending = _pending_pairs(pool, path, signature, options.repeat)
        requests = _grade_requests(pool, pending.pairs, options.longest)
        writer = _JudgmentWriter(pool, pending, signature, options)
        with explain_write_errors(path), meter.stage("judge", total=len(requests)):
            replies = ask_requests(chat, meter, requests, read_grade)
            # Opened after the first reply: an error before it leaves no empty file.
            first_reply = list(islice(replies, 1))
            lacks_line_end = _lacks_line_end(path)
            with open_text_file(path, "a") as file:
                if lacks_line_end:
                    file.write("\n")
                for number, reply, grade in chain(first_reply, replies):
                    is_truncated = requests[number].is_truncated
                    file.write(writer.line(number, reply, grade, is_truncated))
    outcomes = writer.outcomes
    if requests and not outcomes["graded"]:
        raise unreadable_replies_error(
            chat.model.model,
            len(requests),
            "grade",
            "graded",
            example=writer.unreadable_example,
        )
    return _judging_result(len(requests), outcomes, meter)


def _judging_result(
    requests: int, outcomes: Counter[str], meter: Meter
) -> ModelJudging:
    counts = meter.counts("judge")
    return ModelJudging(
        asked=requests,
        graded=outcomes["graded"],
        unreadable=outcomes["unreadable"],
        declined=outcomes["declined"],
        cached=int(counts.get("cached", 0)),
        usd=counts.get("usd", 0.0),
        truncated=int(counts.get("truncated", 0)),
        without_schema=int(counts.get("without_schema", 0)),
    )


def _lacks_line_end(path: Path) -> bool:
    """Whether the last line of a file has no end, as some editors leave it."""
    content = path.read_bytes() if path.exists() else b""
    return content != b"" and not content.endswith(b"\n")


class _JudgmentWriter:
    """Makes the lines of a model's judgments, and counts their outcomes."""

    def __init__(
        self,
        pool: Pool,
        pending: _PendingPairs,
        signature: JudgeSignature,
        options: ModelJudgingOptions,
    ) -> None:
        self._pool = pool
        self._pending = pending
        self._signature = signature
        self._longest = options.longest
        self.outcomes = Counter[str]()
        self.unreadable_example = ""

    def line(
        self, number: int, reply: Reply, grade: int | None, is_truncated: bool
    ) -> str:
        """Return the line of a judgment, for a pair by its number."""
        self._count(reply, grade)
        pair = self._pending.pairs[number]
        notes: list[str] = []
        if grade is None:
            notes.append(missing_grade_reason(reply))
        if is_truncated:
            notes.append(f"read to {self._longest:,} tokens")
        judgment = build_judgment(
            self._pool,
            pair,
            grade,
            self._signature,
            note="; ".join(notes),
            at=datetime.now(UTC).isoformat(timespec="seconds"),
            corrects=pair_key(self._pool, pair) in self._pending.unreadable,
        )
        return judgment.line()

    def _count(self, reply: Reply, grade: int | None) -> None:
        if grade is None and not self.unreadable_example:
            self.unreadable_example = quote_reply(reply)
        outcome = "graded" if grade is not None else "unreadable"
        if reply.declined:
            outcome = "declined"
        self.outcomes[outcome] += 1


def _model_signature(
    pool: Pool, chat: Chat, options: ModelJudgingOptions
) -> JudgeSignature:
    """Return the signature of a model's judgments: its name, and all that it reads."""
    model = chat.model
    prompt = prompt_digest(pool.policy, options.longest, model.other_server)
    return JudgeSignature(model.model, "llm", prompt)


def _pending_pairs(
    pool: Pool, path: Path, signature: JudgeSignature, rounds: int
) -> _PendingPairs:
    """Return the pairs and rounds without a judgment, or with an unreadable reply."""
    earlier = _read_earlier_judgments(path, pool, signature)
    unreadable: set[PairRound] = set()
    for key, judgment in earlier.items():
        if judgment.grade is None and judgment.note.startswith(UNREADABLE_NOTE):
            unreadable.add(key)
    done = earlier.keys() - unreadable
    pairs: list[OrderedPair] = []
    for number in range(1, rounds + 1):
        pairs.extend(
            pair
            for pair in round_pairs(pool, number)
            if pair_key(pool, pair) not in done
        )
    return _PendingPairs(pairs, unreadable)


def _read_earlier_judgments(
    path: Path, pool: Pool, signature: JudgeSignature
) -> dict[PairRound, Judgment]:
    """Return a judge's judgments of a pool; empty without a file.

    Raises:
        InputError: a line cannot be read, judges another pool, or has another server or
            prompt.
    """
    if not path.exists():
        return {}
    judgments = read_judgments([path])
    for judgment in judgments:
        if judgment.pool != pool.digest:
            pools = f"labels of pool {judgment.pool}, and this is pool {pool.digest}"
            remedy = "use one file per pool: --output FILE"
            raise InputError(Problem(str(path), f"holds {pools}", remedy))
    by_judge: dict[PairRound, Judgment] = {}
    for judgment in judgments:
        if judgment.judge == signature.judge:
            by_judge[*judgment.key, judgment.round] = judgment
    for judgment in by_judge.values():
        if judgment.prompt != signature.prompt:
            options = "another server, prompt or --longest"
            problem = f"holds labels of {signature.judge} of {options}"
            remedy = "use the same options, or another file: --output FILE"
            raise InputError(Problem(str(path), problem, remedy))
    return by_judge


def _grade_requests(
    pool: Pool, pairs: Sequence[OrderedPair], longest: int
) -> list[ChatRequest]:
    return [
        grade_request(pool.policy, pair.pair_texts(pool), pair.round, longest)
        for pair in pairs
    ]
