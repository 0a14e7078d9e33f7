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
from harness.labels.prompt import LONGEST, is_cut, prompt_digest, prompt_for, read_grade
from retrievers.meter import Meter
from retrievers.remote.chat import Chat
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
    return chat.forecast(_prompts(pool, _left(pool, path, chat, manner.repeat), manner.longest))


def judge_by_model(pool: Pool, path: Path, chat: Chat, meter: Meter, manner: Manner = ONCE) -> ModelJudging:
    """Ask a model for a grade of each pair of a pool, and append its judgments to a file as they come.

    What stands in the file already is not asked again, nor paid for: a run that was stopped goes on where it was.

    Args:
        pool: what is to be judged.
        path: the file of judgments, made where absent.
        chat: the model, and the cache.
        meter: counts, and holds the budget.
        manner: rounds, and how much of a document is shown.

    Raises:
        InputError: the file holds judgments of another pool, or the key is not set.
        BackendError: the endpoint failed for good, or the budget ends; what was judged is in the file.
    """
    waiting = _left(pool, path, chat, manner.repeat)
    by = Signature(chat.model.options.model, "llm", prompt_digest(pool.policy, manner.longest))
    outcomes: Counter[str] = Counter()
    with appending(path) as file, meter.stage("judge", total=len(waiting)):
        for place, reply in chat.replies(_prompts(pool, waiting, manner.longest), meter):
            grade, why = read_grade(reply)
            if is_cut(waiting[place].shown(pool)[1], manner.longest):
                outcomes["truncated"] += 1
                why = f"{why}; read to {manner.longest:,} tokens".removeprefix("; ")
            outcomes["declined" if reply.declined else "unreadable" if grade is None else "graded"] += 1
            now = datetime.now(UTC).isoformat(timespec="seconds")
            file.write(judgment_of(pool, waiting[place], grade, by, note=why, at=now).line())
    counts = meter.counts("judge")
    return ModelJudging(len(waiting), outcomes["graded"], outcomes["unreadable"], outcomes["declined"],
                  cached=int(counts.get("cached", 0)), usd=counts.get("usd", 0.0), truncated=outcomes["truncated"],
                  without_schema=int(counts.get("without_schema", 0)))  # fmt: skip


def _left(pool: Pool, path: Path, chat: Chat, repeat: int) -> list[OrderedPair]:
    done = judged_before(path, pool, chat.model.options.model)
    return [one for number in range(1, repeat + 1) for one in round_of(pool, number) if ids(pool, one) not in done]


def _prompts(pool: Pool, waiting: Sequence[OrderedPair], longest: int) -> list[Prompt]:
    return [prompt_for(pool.policy, *one.shown(pool), one.round, longest) for one in waiting]
