"""The same judging without a browser: one question and one document at a time, each answer on disk at once."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from harness.dataset.judgments import GRADES
from harness.labels.files import appending, judged_before
from harness.labels.order import OrderedPair, Signature, ids, in_order, judgment_of
from harness.labels.policy import GRADE_WORDS, digest_of
from harness.labels.pool import Pool

HELP = "0 1 2 3: grade · s: skip · u: undo · n TEXT: note · p: policy · q: stop"
GRADE_KEYS = {str(grade): grade for grade in GRADES} | {"s": None}


class Terminal(NamedTuple):
    """How the session speaks to a person; strangers' texts are made harmless by `show`."""

    show: Callable[[str], None]
    read: Callable[[str], str]
    """Asks with a prompt; raises EOFError where there is no more input."""


class Session(NamedTuple):
    """How far judging has come."""

    done: int
    total: int


def judge_in_terminal(pool: Pool, path: Path, judge: str, terminal: Terminal) -> Session:
    """Judge a pool in a terminal, going on where the file of judgments ends.

    An answer that is given again after `u` is appended as a correction; no line is ever changed.

    Raises:
        InputError: the file holds judgments of another pool, or cannot be written.
    """
    order = in_order(pool)
    answered = set(judged_before(path, pool, judge))
    trail: list[OrderedPair] = []
    by = Signature(judge, "human", digest_of(pool.policy))
    policy = "\n".join([pool.policy, *(f"{grade}: {words}" for grade, words in GRADE_WORDS.items())])
    terminal.show(f"{policy}\n{HELP}")
    with appending(path) as file:
        while waiting := [one for one in order if ids(pool, one) not in answered]:
            one, again = waiting[0], False
            while True:
                _show(pool, one, len(order) - len(waiting), len(order), terminal)
                answer = _answer(policy, terminal)
                if answer is None:
                    return Session(len(answered), len(order))
                if answer.undo and trail:
                    one, again = trail.pop(), True
                    answered.discard(ids(pool, one))
                elif not answer.undo:
                    break
            now = datetime.now(UTC).isoformat(timespec="seconds")
            more = {"note": answer.note, "seconds": answer.seconds, "at": now, "corrects": again}
            file.write(judgment_of(pool, one, answer.grade, by, **more).line())
            answered.add(ids(pool, one))
            trail.append(one)
    return Session(len(answered), len(order))


class _Reply(NamedTuple):
    grade: int | None = None
    note: str = ""
    seconds: float = 0.0
    undo: bool = False


def _show(pool: Pool, one: OrderedPair, done: int, total: int, terminal: Terminal) -> None:
    query, document = one.shown(pool)
    title = f"{document.title}\n\n" if document.title else ""
    terminal.show(f"\n── {done + 1} of {total} ──\nQuestion: {query.query}\n\n{title}{document.text}\n")


def _answer(policy: str, terminal: Terminal) -> _Reply | None:
    """Read until a grade, a skip or an undo comes; None where the judge stops."""
    started, note = time.monotonic(), ""
    while True:
        try:
            key, _, rest = terminal.read("grade> ").strip().partition(" ")
        except EOFError:
            return None
        if key in GRADE_KEYS:
            return _Reply(GRADE_KEYS[key], note or rest.strip(), round(time.monotonic() - started, 1))
        match key:
            case "q":
                return None
            case "u":
                return _Reply(undo=True)
            case "n":
                note = rest.strip()
            case "p":
                terminal.show(policy)
            case _:
                terminal.show(HELP)
