"""Everything that can go wrong, as one family.

HarnessError                 one message for people: what is wrong, where, what to do
├── InputError               the user's input or environment (exit code 2); has one or
│   │                        more problems
│   └── DataChanged          the data set is not the one that was checked when the run
│                            began: no result is kept
├── BackendError             a model, API or store failed for good (exit code 3)
│   ├── OverBudget           the next request would cost more than --max-cost allows,
│   │                        or the requests did
│   └── UnreadableReplies    no reply of a model could be read: more requests would be
│                            paid for nothing
└── NotConfirmed             a gate or a reproduction did not hold (exit code 1)

Any other exception is a defect of this program and keeps its traceback.
"""

import difflib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from operator import attrgetter
from typing import Any, NamedTuple

from retrievers.remedy import Remedy


class Problem(NamedTuple):
    """One thing wrong with the input.

    `where` is a file with its line, or a key; `remedy` says what to do, and may be
    empty.
    """

    where: str
    what: str
    remedy: Remedy | str = ""
    occurrences: int = 1
    """More than 1 if this represents further problems, which are not listed."""

    def __str__(self) -> str:
        location = f"{self.where}: " if self.where else ""
        remedy = str(self.remedy)
        if remedy:
            remedy = f" ({remedy})"
        return location + self.what + remedy


class HarnessError(Exception):
    """A failure with a message that a person can act on."""

    exit_code = 3


class InputError(HarnessError):
    """The user's input or environment is at fault: has its problems, in order.

    >>> print(InputError(Problem("depth", "is 0", "give 1 or more")))
    depth: is 0 (give 1 or more)
    """

    exit_code = 2

    def __init__(self, problems: str | Problem | Sequence[Problem]) -> None:
        if isinstance(problems, str):
            problems = Problem("", problems)
        if isinstance(problems, Problem):
            problems = (problems,)
        self.problems: tuple[Problem, ...] = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


class DataChanged(InputError):
    """The data set changed during the run, which stops: it would have no digest."""


class BackendError(HarnessError):
    """A model, an API or a store failed, and another try would not help.

    >>> str(BackendError("text-embedding-3-small: no answer")), BackendError.exit_code
    ('text-embedding-3-small: no answer', 3)
    """


class OverBudget(BackendError):
    """The next request would cost more than the run may spend, or the bill is more."""


class UnreadableReplies(BackendError):
    """None of a model's first replies could be read: no more are requested."""


class NotConfirmed(HarnessError):
    """A gate or a reproduction was not shown to hold."""

    exit_code = 1


# Its name is in lower case because it is used as `contextlib.suppress` is.
class collect_errors(AbstractContextManager[None, bool]):  # noqa: N801
    """Adds the problems of an InputError that is raised inside to a list, and goes on.

    Args:
        problems: the list, or anything else with `extend`.
        convert: returns the problems to add for an error.
    """

    def __init__(
        self,
        problems: Any,
        convert: Callable[[InputError], Iterable[Problem]] = attrgetter("problems"),
    ) -> None:
        self._problems = problems
        self._convert = convert

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        """Suppress InputError, and no other exception."""
        if not isinstance(error, InputError):
            return False
        self._problems.extend(self._convert(error))
        return True


@contextmanager
def require_package(where: str, package: str, extra: str = "") -> Iterator[None]:
    """Import an optional package inside.

    Args:
        where: what needs the package.
        package: its name in an index.
        extra: the extra of this project that installs it; empty if there is none.

    Raises:
        InputError: the package is not installed; the message says how to install it.
    """
    try:
        yield
    except ImportError:
        problem = f"needs the package {package}"
        remedy = install_extras(extra) if extra else f"pip install {package}"
        raise InputError(Problem(where, problem, remedy)) from None


def install_extras(*extras: str) -> str:
    """Return the command that installs some extras of this project.

    >>> install_extras("formats", "chunks")
    "pip install 'retriever-harness[chunks,formats]'"
    """
    return f"pip install 'retriever-harness[{','.join(sorted(set(extras)))}]'"


MAX_LISTED_CHOICES = 50
"""Choices, at most, that a message lists."""


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Return a remedy for an unknown word: the nearest choice, else all, or the first.

    >>> did_you_mean("ndgc", ["nDCG", "AP"])
    "did you mean 'nDCG'?"
    >>> did_you_mean("zebra", ["nDCG", "AP"])
    'known: AP, nDCG'
    >>> did_you_mean("zebra", [])
    'known: none'
    >>> did_you_mean("zebra", map(str, range(53))).endswith(" and 3 more")
    True
    """
    sorted_choices = sorted(choices)
    suggestion = nearest_word(word, sorted_choices)
    if suggestion:
        return suggestion
    listed = ", ".join(sorted_choices[:MAX_LISTED_CHOICES]) or "none"
    unlisted = len(sorted_choices) - MAX_LISTED_CHOICES
    more = f" and {unlisted:,} more" if unlisted > 0 else ""
    return f"known: {listed}{more}"


def nearest_word(word: str, choices: Iterable[str]) -> str:
    """Return a question that suggests the nearest choice; empty if none is near.

    >>> nearest_word("ndgc", ["nDCG", "AP"]), nearest_word("zebra", ["nDCG", "AP"])
    ("did you mean 'nDCG'?", '')
    """
    choice_by_lower = {choice.lower(): choice for choice in sorted(choices)}
    matches = difflib.get_close_matches(word.lower(), choice_by_lower, n=1)
    if not matches:
        return ""
    return f"did you mean {choice_by_lower[matches[0]]!r}?"
