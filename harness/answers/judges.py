"""The judge that an experiment names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.answers.judging import Judge
from harness.experiment import JudgeOptions, expanded
from harness.records import By
from retrievers.cache import Cache
from retrievers.meter import Meter

if TYPE_CHECKING:
    from harness.answers.model_judge import Asks
    from retrievers.remote.chat import Chat


def chat_of(table: JudgeOptions, cache: Cache) -> Chat:
    """The chat model that an experiment names as its judge; nothing is sent."""
    from retrievers.remote.chat import Chat
    from retrievers.remote.chat_model import ChatModel
    from retrievers.remote.prompts import ChatOptions

    options = ChatOptions(
        expanded(table.model), base_url=expanded(table.base_url), key_name=table.key_name, max_tokens=1000,
        concurrency=table.concurrency, rpm=table.rpm, tpm=table.tpm,
        input_price=table.input_price, output_price=table.output_price,
    )  # fmt: skip
    return Chat(ChatModel(options), cache)


def build_judge(table: JudgeOptions, cache: Cache, meter: Meter, *, chat: Asks | None = None) -> Judge:
    """Make a judge; no model is loaded and nothing is sent before its first question.

    Args:
        table: what the experiment says.
        cache: keeps the replies of a chat model.
        meter: where counts and dollars go.
        chat: who is asked in the place of the chat model that the table names.

    Raises:
        InputError: an option does not fit.
    """
    if table.kind == "lexical":
        from harness.answers import lexical

        return lexical.LexicalJudge(threshold=table.threshold or lexical.THRESHOLD)
    if table.kind == "nli":
        from harness.answers import nli

        return nli.NliJudge(expanded(table.model), meter=meter, threshold=table.threshold or nli.THRESHOLD)
    from harness.answers import model_judge

    asked = chat if chat is not None else chat_of(table, cache)
    return model_judge.ModelJudge(asked, meter=meter, longest=table.longest or model_judge.LONGEST)


def signed(judge: Judge) -> By:
    """What stands in every row that a judge wrote."""
    return By(judge.name, judge.prompt)
