"""Everything that can go wrong, as one family.

HarnessError                 one message for people: what is wrong, where, what to do
├── InputError               the user's input or environment (exit code 2); carries every problem found
│   └── DataChanged          the data set is no longer what was checked when the run began: nothing of it is kept
├── BackendError             a model, API or store failed for good (exit code 3)
│   ├── OverBudget           the next request would spend more than --max-cost allows
│   └── Unreadable           no reply of a model could be read, so that asking on would pay for nothing
└── NotShown                 a gate or a reproduction did not hold (exit code 1)

Any other exception is a defect of this program and keeps its traceback.
"""

import difflib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from operator import attrgetter
from typing import Any, NamedTuple


class Problem(NamedTuple):
    """One thing wrong with the input.

    `where` is a file with its line, or a key; `remedy` says what to do, and may be empty.
    """

    where: str
    what: str
    remedy: str = ""
    occurrences: int = 1
    """How many problems this stands for: more than one where the others of its kind are not listed."""

    def __str__(self) -> str:
        where = f"{self.where}: " if self.where else ""
        return where + self.what + (f" ({self.remedy})" if self.remedy else "")


class HarnessError(Exception):
    """A failure with a message that a person can act on."""

    exit_code = 3


class InputError(HarnessError):
    """The user's input or environment is at fault: every problem that was found, in order.

    >>> print(InputError(Problem("depth", "is 0", "give 1 or more")))
    depth: is 0 (give 1 or more)
    """

    exit_code = 2

    def __init__(self, problems: str | Problem | Sequence[Problem]) -> None:
        if isinstance(problems, str):
            problems = Problem("", problems)
        self.problems = (
            (problems,) if isinstance(problems, Problem) else tuple(problems)
        )
        super().__init__("\n".join(map(str, self.problems)))


class DataChanged(InputError):
    """The data set changed while it was used: its results have no digest, so the whole run stops."""


class BackendError(HarnessError):
    """A model, an API or a store failed and trying again would not help.

    >>> str(BackendError("text-embedding-3-small: no answer")), BackendError.exit_code
    ('text-embedding-3-small: no answer', 3)
    """


class OverBudget(BackendError):
    """The next request would spend more than the run may."""


class UnreadableReplies(BackendError):
    """So many replies of a model could not be read, and none could, that no more are asked for."""


class NotConfirmed(HarnessError):
    """A gate or a reproduction was not shown to hold."""

    exit_code = 1


class collect_errors(AbstractContextManager[None, bool]):  # noqa: N801  (reads as `contextlib.suppress`)
    """Adds the problems of an InputError that is raised inside to a list, as `told` gives them, and goes on."""

    def __init__(
        self,
        problems: Any,
        convert: Callable[[InputError], Iterable[Problem]] = attrgetter("problems"),
    ) -> None:
        self._problems, self._told = problems, convert

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        """Swallow InputError alone."""
        if isinstance(error, InputError):
            self._problems.extend(self._told(error))
        return isinstance(error, InputError)


@contextmanager
def require_package(where: str, package: str, extra: str = "") -> Iterator[None]:
    """Import an optional package inside; raises InputError that says how to install it where it is not there.

    Args:
        where: what needs it.
        package: its name in an index.
        extra: of this package, which brings it; "" for none.
    """
    try:
        yield
    except ImportError:
        remedy = f"pip install {package}" + (
            f', or the extra "{extra}"' if extra else ""
        )
        raise InputError(
            Problem(where, f"needs the package {package}", remedy)
        ) from None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a remedy for an unknown word: the nearest known one, else all of them.

    >>> did_you_mean("ndgc", ["nDCG", "AP"])
    "did you mean 'nDCG'?"
    >>> did_you_mean("zebra", ["nDCG", "AP"])
    'known: AP, nDCG'
    >>> did_you_mean("zebra", [])
    'known: none'
    """
    names = sorted(known)
    return nearest_word(word, names) or f"known: {', '.join(names) or 'none'}"


def nearest_word(word: str, known: Iterable[str]) -> str:
    """Ask after the known word that is nearest to an unknown one; "" where none is near.

    >>> nearest_word("ndgc", ["nDCG", "AP"]), nearest_word("zebra", ["nDCG", "AP"])
    ("did you mean 'nDCG'?", '')
    """
    folded = {name.lower(): name for name in sorted(known)}
    near = difflib.get_close_matches(word.lower(), folded, n=1)
    return f"did you mean {folded[near[0]]!r}?" if near else ""
