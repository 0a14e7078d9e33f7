"""A language model as a judge of the same pool: planned, capped in dollars, cached, and resumed where it stopped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from harness.labels.files import appending, judged_before
from harness.labels.order import OrderedPair, Signature, ids, judgment_of, round_of
from harness.labels.pool import Pool
from harness.labels.prompt import LONGEST, UNREADABLE, is_cut, is_readable, prompt_digest, prompt_for, read_grade
from retrievers.errors import BackendError
from retrievers.meter import Meter
from retrievers.remote.chat import Chat, example_of
from retrievers.remote.prompts import ChatForecast, Prompt


class ModelJudging(NamedTuple):
    """What a model's judging came to."""

    asked: int
    """Prompts, those that the cache answered too."""
    graded: int
    unreadable: int
    """Answers that hold no grade of the scale: their judgments are null."""
    declined: int
    """Prompts that the endpoint would not answer: null, too."""
    cached: int
    usd: float
    truncated: int = 0
    """Pairs that were judged by the beginning of a document; each says so in its note."""
    without_schema: int = 0
    """Replies of a server that takes no schema for them."""

    def sentence(self) -> str:
        """The same in words."""
        nulls = f", {self.unreadable:,} unreadable and {self.declined:,} declined (null, never 0)"
        cut = f"; {self.truncated:,} by the beginning of a longer document (--longest)" if self.truncated else ""
        plain = f"; {self.without_schema:,} replies came without a schema" if self.without_schema else ""
        whole = f"{self.asked:,} pairs asked, {self.cached:,} of them from the cache: {self.graded:,} graded"
        return f"{whole}{nulls}{cut}{plain}"


class Manner(NamedTuple):
    """How a model is asked."""

    repeat: int = 1
    """Rounds; 2 asks for everything twice, which measures the model's own noise."""
    longest: int = LONGEST
    """Tokens of a document that it is shown, by an upper estimate."""


ONCE = Manner()


def plan_judging(pool: Pool, path: Path, chat: Chat, manner: Manner = ONCE) -> ChatForecast:
    """Forecast what is left to ask, in calls, tokens and dollars; no network."""
    waiting, _ = _left(pool, path, chat, manner.repeat)
    return chat.forecast(_prompts(pool, waiting, manner.longest), is_readable)


def judge_by_model(pool: Pool, path: Path, chat: Chat, meter: Meter, manner: Manner = ONCE) -> ModelJudging:
    """Ask a model for a grade of each pair of a pool, and append its judgments to a file as they come.

    What stands in the file already is not asked again, nor paid for: a run that was stopped goes on where it was. Only
    what could not be read is asked once more at the next call, and its judgment corrects the one before.

    Args:
        pool: what is to be judged.
        path: the file of judgments, made where absent.
        chat: the model, and the cache.
        meter: counts, and holds the budget.
        manner: rounds, and how much of a document is shown.

    Raises:
        InputError: the file holds judgments of another pool, or the key is not set.
        BackendError: the endpoint failed for good, the budget ends, or no reply held a grade; what was judged is in
            the file.
    """
    waiting, before = _left(pool, path, chat, manner.repeat)
    by = Signature(chat.model.options.model, "llm", prompt_digest(pool.policy, manner.longest))
    outcomes: Counter[str] = Counter()
    example = ""
    with appending(path) as file, meter.stage("judge", total=len(waiting)):
        for place, reply in chat.replies(_prompts(pool, waiting, manner.longest), meter, is_readable):
            grade, why = read_grade(reply)
            example = example or ("" if grade is not None else reply.declined or reply.text)
            if is_cut(waiting[place].shown(pool)[1], manner.longest):
                outcomes["truncated"] += 1
                why = f"{why}; read to {manner.longest:,} tokens".removeprefix("; ")
            outcomes["declined" if reply.declined else "unreadable" if grade is None else "graded"] += 1
            now = datetime.now(UTC).isoformat(timespec="seconds")
            more = {"note": why, "at": now, "corrects": ids(pool, waiting[place]) in before}
            file.write(judgment_of(pool, waiting[place], grade, by, **more).line())
    if waiting and not outcomes["graded"]:
        what = f"{len(waiting):,} replies of {chat.model.options.model} hold no grade, {example_of(example)}"
        raise BackendError(f"{what}: nothing was graded; look at the model and its server, and run again")
    counts = meter.counts("judge")
    return ModelJudging(len(waiting), outcomes["graded"], outcomes["unreadable"], outcomes["declined"],
                  cached=int(counts.get("cached", 0)), usd=counts.get("usd", 0.0), truncated=outcomes["truncated"],
                  without_schema=int(counts.get("without_schema", 0)))  # fmt: skip


def _left(pool: Pool, path: Path, chat: Chat, repeat: int) -> tuple[list[OrderedPair], set[tuple[str, str, int]]]:
    """What is still to be asked, and which of it was asked before and could not be read."""
    before = judged_before(path, pool, chat.model.options.model)
    again = {key for key, one in before.items() if one.grade is None and one.note.startswith(UNREADABLE)}
    done = before.keys() - again
    left = [one for number in range(1, repeat + 1) for one in round_of(pool, number) if ids(pool, one) not in done]
    return left, again


def _prompts(pool: Pool, waiting: Sequence[OrderedPair], longest: int) -> list[Prompt]:
    return [prompt_for(pool.policy, *one.shown(pool), one.round, longest) for one in waiting]
