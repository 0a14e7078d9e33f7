"""What a part lacks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from retrievers.errors import BackendError, InputError, Problem, collect_errors
from retrievers.options.placeholders import redact_keys
from retrievers.options.user_code import wrap_user_errors
from retrievers.types import Model, Retriever


def name_retriever(name: str, error: InputError) -> list[Problem]:
    """Return the problems of an error, each with the name of the retriever that has it."""
    return [
        p._replace(where=f"retriever {name!r}: {p.where}", what=redact_keys(p.what))
        for p in error.problems
    ]


def missing_requirements(name: str, part: Model | Retriever) -> list[Problem]:
    """Return what a part of a retriever lacks, such as a key, or that the code of another package fails there."""
    problems: list[Problem] = []
    with collect_part_errors(problems, name, part):
        part.check()
    return problems


@contextmanager
def collect_part_errors(
    problems: list[Problem], name: str, part: Model | Retriever
) -> Iterator[None]:
    """Add the problems that are raised inside, by us or by a part's own code, under the name of the retriever."""
    with collect_errors(problems, partial(name_retriever, name)):
        try:
            with wrap_user_errors((part,)):
                yield
        except BackendError as failure:
            raise InputError(Problem("check", str(failure))) from None


def missing_price(name: str, where: str, model: Model) -> list[Problem]:
    """The problem of a model whose price is unknown, if no more than so many dollars may be spent."""
    if model.price is not None:
        return []
    called = model.provenance.get("model", "the model")
    unknown = f"the price of {called} is not known, so that --max-cost cannot be kept"
    return name_retriever(
        name,
        InputError(
            Problem(
                f"{where}.price", unknown, "write price = dollars for a million tokens"
            )
        ),
    )
