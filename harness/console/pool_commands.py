"""The commands on pools."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from harness.console import options as shared
from harness.console.output import print_result
from harness.english import count_of, count_pairs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.labels.chat_access import ChatOptions
    from harness.labels.model_judge import ModelJudgingOptions
    from harness.labels.pool import Pool

ResultsFolders = Annotated[
    list[Path],
    typer.Argument(metavar="RESULTS", help="Results folders over the same documents."),
]
PoolFile = Annotated[
    Path, typer.Argument(metavar="POOL", help="The file that `harness pool` wrote.")
]
EarlierLabels = Annotated[
    list[Path] | None,
    typer.Option(help="Further files of labels: --for says which are left out."),
]
JudgeModelOption = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL", help="Use this model behind an OpenAI-compatible endpoint."
    ),
]
DOCUMENT_TOKENS = 8_000
"""Tokens of one document that --llm sends, at most."""


SampleSize = Annotated[
    int | None,
    typer.Option(min=1, help="Number of queries, drawn at random; default: all."),
]
NextLookOption = Annotated[
    bool,
    typer.Option(
        "--next-look", help="Draw the queries that the next interim analysis lacks."
    ),
]


def pool(
    *,
    results: ResultsFolders,
    depth: Annotated[
        int,
        typer.Option(min=1, help="Number of documents from the top of each ranking."),
    ] = 10,
    sample: SampleSize = None,
    next_look: NextLookOption = False,
    seed: Annotated[int, typer.Option(help="Seed of the sample and of its order.")] = 0,
    audience: Annotated[
        Literal["human", "llm"],
        typer.Option(
            "--for", help="Who will judge; pairs that such judges judged are left out."
        ),
    ] = "human",
    policy: shared.PolicyFile = None,
    judged: EarlierLabels = None,
    output: Annotated[Path, typer.Option(help="File to write.")] = Path("pool.jsonl"),
    as_json: shared.JsonOutput = False,
) -> None:
    """Choose what to judge: a sample of the queries, the top documents of every
    retriever, in hashed order.
    """  # noqa: D205
    from harness.labels.draw_pool import (
        PoolOptions,
        draw_pool,
        read_known_judgments,
        read_material,
    )
    from harness.labels.pool import read_policy, write_pool

    shared.refuse_options(
        {"--sample": next_look and sample is not None},
        "cannot go with --next-look, which says how many",
    )
    options = PoolOptions(depth, sample, seed, audience, read_policy(policy), next_look)
    material = read_material(results, depth)
    judgments = read_known_judgments(material, judged or ())
    drawn_pool = draw_pool(material, options, judgments)
    write_pool(output, drawn_pool)
    repeated_queries = len(material.queries) - drawn_pool.drawn.population
    print_result(
        _pool_lines(drawn_pool, output, repeated_queries, audience),
        as_json=as_json,
        path=str(output),
        digest=drawn_pool.digest,
        pairs=drawn_pool.pair_count,
        **drawn_pool.drawn.model_dump(),
    )


def _pool_lines(
    drawn_pool: Pool, path: Path, repeated_queries: int, audience: str
) -> Iterator[str]:
    if repeated_queries:
        queries = count_of(repeated_queries, "query")
        yield f"left out: {queries} equal to another but for case and white space"
    drawn = drawn_pool.drawn
    queries = count_of(drawn.population, "query")
    pairs = count_pairs(drawn_pool.pair_count)
    yield f"{path}: {drawn.sampled:,} of {queries}, {pairs} to judge"
    without_documents = drawn.sampled - len(drawn_pool.queries)
    if without_documents:
        count = count_of(without_documents, "query")
        yield f"not in it: {count} without a document to judge"
    command = f"harness judge {quote(str(path))}"
    if audience == "llm":
        command += " --llm MODEL"
    yield f"next: {command}"


DOCUMENT_TOKENS_HELP = (
    "Most tokens of a document that --llm is shown; the rest is cut and counted."
)
DocumentTokens = Annotated[
    int, typer.Option(min=100, metavar="TOKENS", help=DOCUMENT_TOKENS_HELP)
]


def judge(
    *,
    pool_file: PoolFile,
    llm: JudgeModelOption = None,
    base_url: shared.BaseUrl = "",
    key_name: shared.KeyName = "",
    repeat: Annotated[
        int,
        typer.Option(min=1, help="Rounds of --llm: 2 measures the model's own noise."),
    ] = 1,
    longest: DocumentTokens = DOCUMENT_TOKENS,
    max_cost: shared.MaxCost = None,
    price: shared.TokenPrices = "",
    plan: shared.PlanOnly = False,
    output: Annotated[
        Path | None,
        typer.Option(help="File to write: judge.html, or the model's labels."),
    ] = None,
    as_json: shared.JsonOutput = False,
) -> None:
    """Write the judging page of a pool (a file, no server), or let a model judge."""
    from harness.console.labelling_text import repeats_sentence
    from harness.labels.chat_access import ChatOptions
    from harness.labels.judging_page import write_judging_page
    from harness.labels.model_judge import ModelJudgingOptions
    from harness.labels.pool import read_pool

    pool_to_judge = read_pool(pool_file)
    if llm is not None:
        _judge_by_model(
            pool_to_judge,
            output or Path("judgments-llm.jsonl"),
            ChatOptions(llm, base_url, key_name, price, max_cost),
            ModelJudgingOptions(repeat, longest),
            plan=plan,
            as_json=as_json,
        )
        return
    model_options = {
        "--base-url": base_url,
        "--key": key_name,
        "--repeat": repeat > 1,
        "--longest": longest != DOCUMENT_TOKENS,
        "--max-cost": max_cost is not None,
        "--price": price,
        "--plan": plan,
    }
    shared.refuse_options(
        model_options, "goes with --llm", "people cost nothing that can be planned"
    )
    path = output or Path("judge.html")
    write_judging_page(path, pool_to_judge)
    pairs = count_pairs(pool_to_judge.pair_count)
    lines = [
        f"{path}: {pairs} to judge, {repeats_sentence(pool_to_judge)}",
        "open it in a browser, or send it to a judge",
        "it exports judgments.jsonl; "
        "then: harness labels merge judgments.jsonl --into DATASET",
    ]
    print_result(
        lines,
        as_json=as_json,
        path=str(path),
        digest=pool_to_judge.digest,
        pairs=pool_to_judge.pair_count,
    )


def _judge_by_model(
    pool_to_judge: Pool,
    path: Path,
    model: ChatOptions,
    options: ModelJudgingOptions,
    *,
    plan: bool,
    as_json: bool,
) -> None:
    """Judge a pool by a model; with `plan`, only print what that would take."""
    from harness.console.labelling_text import (
        chat_forecast_sentence,
        model_judging_sentence,
    )
    from harness.labels.chat_access import open_chat
    from harness.labels.model_judge import forecast_pool_judging, judge_by_model

    with open_chat(model) as (chat, meter):
        if plan:
            forecast = forecast_pool_judging(pool_to_judge, path, chat, options)
            sentence = chat_forecast_sentence(forecast)
            print_result([sentence], as_json=as_json, plan=forecast)
            return
        judged = judge_by_model(pool_to_judge, path, chat, meter, options=options)
    print_result(
        [f"{path}: {model_judging_sentence(judged)}"],
        as_json=as_json,
        path=str(path),
        **judged._asdict(),
    )
