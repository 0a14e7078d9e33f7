"""Missing requirements of a retriever's part.

These are what only the environment can tell: a key, a price, the queries of a saved
run. Each problem names the retriever.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import partial

from retrievers.errors import BackendError, InputError, Problem, collect_errors
from retrievers.options.placeholders import redact_keys
from retrievers.options.user_code import wrap_user_errors
from retrievers.remedy import Option, compose_remedy
from retrievers.saved_run import SavedRun
from retrievers.services.chat_model import ChatModel
from retrievers.types import Model, Retriever, model_facts


def missing_requirements(name: str, part: Model | Retriever) -> list[Problem]:
    """Return what a part of a retriever lacks, such as a key.

    An exception raised by a plug-in is reported as a problem, too.
    """
    problems: list[Problem] = []
    with collect_part_errors(problems, name, part):
        part.check()
    return problems


def unanswered_queries(
    name: str, part: Model | Retriever, query_ids: Collection[str]
) -> list[Problem]:
    """Return the problem of a saved run that answers none of the queries."""
    problems: list[Problem] = []
    if isinstance(part, SavedRun):
        with collect_errors(problems, partial(name_retriever, name)):
            part.check_queries(query_ids)
    return problems


@contextmanager
def collect_part_errors(
    problems: list[Problem], name: str, part: Model | Retriever
) -> Iterator[None]:
    """Add the problems raised inside to a list, under the retriever's name."""
    with collect_errors(problems, partial(name_retriever, name)):
        try:
            with wrap_user_errors((part,)):
                yield
        except BackendError as failure:
            raise InputError(Problem("check", str(failure))) from None


def name_retriever(name: str, error: InputError) -> list[Problem]:
    """Return the problems of an error, each under the retriever's name."""
    return [
        problem._replace(
            where=f"retriever {name!r}: {problem.where}",
            what=redact_keys(problem.what),
        )
        for problem in error.problems
    ]


def missing_price(name: str, table_key: str, model: Model) -> list[Problem]:
    """Return the problem of a model without a price, which --max-cost needs.

    Args:
        name: of the retriever.
        table_key: the key of the model's table: "encoder" or "rerank".
        model: the encoder or the reranker.
    """
    if model.price is not None:
        return []
    model_name = model_facts(model).model or "the model"
    message = (
        f"the price of {model_name} is not known, so that the limit of dollars cannot "
        "be kept"
    )
    remedy = compose_remedy(
        "write price = dollars for a million tokens, or set no limit",
        Option("--max-cost"),
    )
    return name_retriever(
        name, InputError(Problem(f"{table_key}.price", message, remedy))
    )


def missing_chat_price(name: str, model: ChatModel) -> list[Problem]:
    """Return the problem of a chat model without prices, which --max-cost needs."""
    if model.has_prices:
        return []
    message = (
        f"the price of {model.model} is not known, so that the limit of dollars cannot "
        "be kept"
    )
    remedy = compose_remedy(
        "write input_price and output_price: dollars per million tokens, "
        "or set no limit",
        Option("--max-cost"),
    )
    return name_retriever(name, InputError(Problem("model", message, remedy)))
