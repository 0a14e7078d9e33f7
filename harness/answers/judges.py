"""The judge that an experiment names."""

from __future__ import annotations

from harness.answers.judging import Judge
from harness.experiment import JudgeOptions, expanded
from harness.records import By
from retrievers.cache import Cache
from retrievers.meter import Meter


def build_judge(table: JudgeOptions, cache: Cache, meter: Meter) -> Judge:
    """Make a judge; no model is loaded and nothing is sent before its first question.

    Args:
        table: what the experiment says.
        cache: keeps the replies of a chat model.
        meter: where counts and dollars go.

    Raises:
        InputError: an option does not fit.
    """
    if table.kind == "lexical":
        from harness.answers import lexical

        return lexical.LexicalJudge(threshold=table.threshold or lexical.THRESHOLD)
    if table.kind == "nli":
        from harness.answers import nli

        return nli.NliJudge(table.model, meter=meter, threshold=table.threshold or nli.THRESHOLD)
    from harness.answers.model_judge import ModelJudge
    from retrievers.remote.chat import Chat, ChatModel, ChatOptions

    options = ChatOptions(
        table.model, base_url=expanded(table.base_url), key_name=table.key_name, max_tokens=1000,
        concurrency=table.concurrency, rpm=table.rpm, tpm=table.tpm,
        input_price=table.input_price, output_price=table.output_price,
    )  # fmt: skip
    return ModelJudge(Chat(ChatModel(options), cache), meter=meter)


def signed(judge: Judge) -> By:
    """What stands in every row that a judge wrote."""
    return By(judge.name, judge.prompt)
