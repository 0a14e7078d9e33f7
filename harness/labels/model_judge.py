"""A model as a judge of a pool."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from harness.dataset.judgment import Judgment, read_judgments
from harness.english import count_of
from harness.labels.judging_order import (
    JudgeSignature,
    OrderedPair,
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
from retrievers.services.chat_model import ChatForecast
from retrievers.services.chat_replies import (
    MAX_TEXT_TOKENS,
    ChatRequest,
    ask_requests,
    unreadable_replies_error,
)


def read_earlier_judgments(
    path: Path, pool: Pool, signature: JudgeSignature
) -> dict[tuple[str, str, int], Judgment]:
    """Read a judge's judgments of a pool: (query id, document id, round) -> judgment; empty without a file.

    Raises:
        InputError: a line cannot be read, judges another pool, or has another server or prompt.
    """
    if not path.exists():
        return {}
    judgments = read_judgments([path])
    if foreign := next((one for one in judgments if one.pool != pool.digest), None):
        what = f"holds labels of pool {foreign.pool}, and this is pool {pool.digest}"
        raise InputError(
            Problem(str(path), what, "use one file per pool: --output FILE")
        )
    mine = {
        (*one.key, one.round): one for one in judgments if one.judge == signature.judge
    }
    if any(one.prompt != signature.prompt for one in mine.values()):
        what = (
            f"holds labels of {signature.judge} of another server, prompt or --longest"
        )
        raise InputError(
            Problem(
                str(path), what, "use the same options, or another file: --output FILE"
            )
        )
    return mine


class ModelJudging(NamedTuple):
    """The result of a model's judging."""

    asked: int
    """Prompts, including those from the cache."""
    graded: int
    unreadable: int
    """Replies without a grade of the scale: their judgments are null."""
    declined: int
    """Prompts that the endpoint declined: null, too."""
    cached: int
    usd: float
    truncated: int = 0
    """Pairs that were judged by the start of a document, as their notes state."""
    without_schema: int = 0
    """Replies of a server that supports no schema."""

    def sentence(self) -> str:
        """The same in words."""
        nulls = f", {self.unreadable:,} unreadable and {self.declined:,} declined (null, never 0)"
        cut = (
            f"; {self.truncated:,} by the start of a longer document (--longest)"
            if self.truncated
            else ""
        )
        plain = (
            f"; {self.without_schema:,} replies came without a schema"
            if self.without_schema
            else ""
        )
        whole = f"{count_of(self.asked, 'pair')} requested, {self.cached:,} from the cache: {self.graded:,} graded"
        return f"{whole}{nulls}{cut}{plain}"


class ModelJudgingOptions(NamedTuple):
    """The options of model judging."""

    repeat: int = 1
    """Rounds; 2 judges everything twice, which measures the model's noise."""
    longest: int = MAX_TEXT_TOKENS
    """Estimated tokens of a document that the model gets."""


ONE_ROUND = ModelJudgingOptions()


def forecast_pool_judging(
    pool: Pool, path: Path, chat: Chat, options: ModelJudgingOptions = ONE_ROUND
) -> ChatForecast:
    """Forecast the remaining calls, tokens and dollars; no network."""
    waiting, _ = _left(pool, path, _signature(pool, chat, options), options.repeat)
    prompts = [one.prompt for one in _asked(pool, waiting, options.longest)]
    return chat.forecast(prompts, lambda _, reply: read_grade(reply.text) is not None)


def judge_by_model(
    pool: Pool,
    path: Path,
    chat: Chat,
    meter: Meter,
    options: ModelJudgingOptions = ONE_ROUND,
) -> ModelJudging:
    """Ask a model for a grade of each pair of a pool, and append the judgments to a file as they arrive.

    Judgments in the file are not requested or paid again: a stopped run resumes. Only unreadable replies are requested
    again at the next call; the new judgment corrects the earlier one.

    Args:
        pool: to judge.
        path: the file of judgments, created if absent.
        chat: the model, and the cache.
        meter: counts, and has the budget.
        options: rounds, and the tokens of a document.

    Raises:
        InputError: the file holds judgments of another pool or prompt, or the key is not set.
        BackendError: the endpoint failed permanently, the budget is spent, or no reply has a grade; the file has the
            judgments so far.
    """
    by = _signature(pool, chat, options)
    outcomes: Counter[str] = Counter()
    example = ""
    with explain_write_errors(path):
        path.parent.stat()  # a lock would create the folder
        alone = exclusive_lock(
            path,
            "is in use by another process",
            "wait for it, or name another file with --output",
        )
    with alone:
        waiting, before = _left(pool, path, by, options.repeat)
        asked = _asked(pool, waiting, options.longest)
        whole = path.read_bytes() if path.exists() else b""
        with explain_write_errors(path), meter.stage("judge", total=len(waiting)):
            replies = ask_requests(chat, meter, asked, read_grade)
            first = list(islice(replies, 1))  # a refusal leaves no empty file
            with open_text_file(path, "a") as file:
                file.write(
                    "\n" if whole and not whole.endswith(b"\n") else ""
                )  # an editor's last line
                for place, reply, grade in chain(first, replies):
                    why = "" if grade is not None else missing_grade_reason(reply)
                    example = example or (
                        "" if grade is not None else quote_reply(reply)
                    )
                    if asked[place].is_truncated:
                        why = f"{why}; read to {options.longest:,} tokens".removeprefix(
                            "; "
                        )
                    outcomes[
                        "declined"
                        if reply.declined
                        else "unreadable"
                        if grade is None
                        else "graded"
                    ] += 1
                    now = datetime.now(UTC).isoformat(timespec="seconds")
                    more = {
                        "note": why,
                        "at": now,
                        "corrects": pair_key(pool, waiting[place]) in before,
                    }
                    file.write(
                        build_judgment(pool, waiting[place], grade, by, **more).line()
                    )
    if waiting and not outcomes["graded"]:
        raise unreadable_replies_error(
            chat.model.model, len(waiting), "grade", "graded", example
        )
    counts = meter.counts("judge")
    graded = (outcomes["graded"], outcomes["unreadable"], outcomes["declined"])
    cached, truncated, without_schema = (
        int(counts.get(one, 0)) for one in ("cached", "truncated", "without_schema")
    )
    return ModelJudging(
        len(waiting), *graded, cached, counts.get("usd", 0.0), truncated, without_schema
    )


def _signature(pool: Pool, chat: Chat, manner: ModelJudgingOptions) -> JudgeSignature:
    model = chat.model
    return JudgeSignature(
        model.model,
        "llm",
        prompt_digest(pool.policy, manner.longest, model.other_server),
    )


def _left(
    pool: Pool, path: Path, by: JudgeSignature, repeat: int
) -> tuple[list[OrderedPair], set[tuple[str, str, int]]]:
    """The pairs that are left, and those of them with an unreadable reply."""
    before = read_earlier_judgments(path, pool, by)
    again = {
        key
        for key, one in before.items()
        if one.grade is None and one.note.startswith(UNREADABLE_NOTE)
    }
    done = before.keys() - again
    left = [
        one
        for number in range(1, repeat + 1)
        for one in round_pairs(pool, number)
        if pair_key(pool, one) not in done
    ]
    return left, again


def _asked(
    pool: Pool, waiting: Sequence[OrderedPair], longest: int
) -> list[ChatRequest]:
    return [
        grade_request(pool.policy, *one.pair_texts(pool), one.round, longest)
        for one in waiting
    ]
