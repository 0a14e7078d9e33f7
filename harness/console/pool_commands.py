"""The commands that lead from questions to judgments: pool, judge."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from harness.console.printing import print_result
from harness.console.shared_options import BaseUrl, Json, KeyName, MaxCost, PlanOnly, Policy, Prices, refuse
from retrievers.errors import InputError, Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.answers.asking import AskedModel
    from harness.labels.drawing import Material
    from harness.labels.model_grades import Manner
    from harness.labels.pool import Pool

ManyResults = Annotated[list[Path], typer.Argument(metavar="RESULTS", help="Results folders over the same documents.")]
PoolFile = Annotated[Path, typer.Argument(metavar="POOL", help="What `harness pool` wrote.")]
JudgedAlready = Annotated[list[Path] | None, typer.Option(help="Judgments made already: their pairs are left out.")]
Llm = Annotated[str | None, typer.Option(metavar="MODEL", help="Ask this model behind an OpenAI-compatible endpoint.")]
LONGEST = 8_000


def pool(
    results: ManyResults,
    depth: Annotated[int, typer.Option(min=1, help="Documents of each ranking that are taken.")] = 10,
    sample: Annotated[int | None, typer.Option(min=1, help="Questions drawn by chance; else all of them.")] = None,
    seed: Annotated[int, typer.Option(help="Another seed draws another sample, in another order.")] = 0,
    audience: Annotated[
        Literal["human", "llm"],
        typer.Option("--for", help="Who will judge: whose earlier judgments are not asked for again."),
    ] = "human",
    policy: Policy = None,
    judged: JudgedAlready = None,
    next_count: Annotated[
        int | None,
        typer.Option(
            "--next",
            min=1,
            help="So many documents that could still change "
            "the difference of two retrievers most: for bounds, for no test.",
        ),
    ] = None,
    pair: Annotated[list[str] | None, typer.Option(help="With --next: a retriever; give two.")] = None,
    output: Annotated[Path, typer.Option(help="The file to write.")] = Path("pool.jsonl"),
    as_json: Json = False,
) -> None:
    """Draw what is to be judged: a sample of the questions, the top documents of every retriever, in hashed order."""
    from harness.english import counted
    from harness.labels.drawing import Drawing, draw, gather, known_judgments
    from harness.labels.pool import read_policy, write_pool

    drawing = Drawing(depth, sample, seed, audience, read_policy(policy))
    material = gather(results, depth)
    if next_count is None:
        refuse({"--pair": pair}, "goes with --next")
    else:
        drawn_by_chance = {"--seed": seed, "--for": audience != "human", "--judged": judged}
        refuse(drawn_by_chance, "cannot go with --next, which draws nothing and reads the folder's own labels")
        if sample is not None or len(results) > 1:
            remedy = "draw a sample for tests, or choose the next judgments of one folder for bounds"
            raise InputError(Problem("--next", "cannot go with --sample or several folders", remedy))
        _next(material, (results[0], output), pair or (), (next_count, drawing.policy), as_json=as_json)
        return
    drawn_pool = draw(material, drawing, known_judgments(material, judged or ()))
    write_pool(output, drawn_pool)
    drawn, left = drawn_pool.drawn, len(material.queries) - drawn_pool.drawn.population
    lines = [f"left out: {counted(left, 'question')} that another one asks, but for case and white space"] * bool(left)
    lines += [
        f"{output}: {drawn.sampled:,} of {drawn.population:,} questions, {drawn_pool.pairs:,} documents to judge",
        f"next: harness judge {quote(str(output))}" + (" --llm MODEL" if audience == "llm" else ""),
    ]
    print_result(lines, as_json=as_json, path=str(output), digest=drawn_pool.digest, pairs=drawn_pool.pairs,
                 **drawn.model_dump())  # fmt: skip


def _next(
    material: Material, places: tuple[Path, Path], names: Sequence[str], wanted: tuple[int, str], *, as_json: bool
) -> None:
    """Write the pool of what to judge next, and tell the bounds."""
    from harness import records
    from harness.labels.drawing import next_to_judge
    from harness.labels.pool import write_pool

    folder, output = places
    upcoming = next_to_judge(records.read(folder), material, names, *wanted)
    if upcoming.pool is not None:
        write_pool(output, upcoming.pool)
    lines = [upcoming.sentence()]
    if upcoming.pool is not None:
        following = f"harness judge {quote(str(output))}"
        lines.append(f"{output}: {upcoming.pool.pairs:,} documents that could change the most; next: {following}")
    print_result(lines, as_json=as_json, a=upcoming.a, b=upcoming.b, measure=upcoming.measure,
                 low=upcoming.bounds.low, high=upcoming.bounds.high, decided=upcoming.bounds.decided,
                 unjudged=upcoming.unjudged, path=str(output) if upcoming.pool else None)  # fmt: skip


def judge(
    pool_file: PoolFile,
    llm: Llm = None,
    base_url: BaseUrl = "",
    key_name: KeyName = "",
    repeat: Annotated[int, typer.Option(min=1, help="Rounds of --llm: 2 measures the model's own noise.")] = 1,
    longest: Annotated[
        int,
        typer.Option(
            min=100, metavar="TOKENS", help="Of a document that --llm is shown; the rest is cut, and counted."
        ),
    ] = LONGEST,
    max_cost: MaxCost = None,
    price: Prices = "",
    plan: PlanOnly = False,
    output: Annotated[Path | None, typer.Option(help="The file to write: judge.html, or judgments.")] = None,
    as_json: Json = False,
) -> None:
    """Write the judging page of a pool (serving nothing), or let a model judge."""
    from harness.answers.asking import AskedModel
    from harness.labels.judging_page import twice_sentence, write_page
    from harness.labels.model_grades import Manner
    from harness.labels.pool import read_pool

    to_judge = read_pool(pool_file)
    if llm is not None:
        asked, manner = AskedModel(llm, base_url, key_name, price, max_cost), Manner(repeat, longest)
        _judge_by_model(to_judge, output or Path("judgments-llm.jsonl"), asked, manner, plan=plan, as_json=as_json)
        return
    of_models = {"--base-url": base_url, "--key": key_name, "--repeat": repeat > 1, "--longest": longest != LONGEST,
                 "--max-cost": max_cost is not None, "--price": price, "--plan": plan}  # fmt: skip
    refuse(of_models, "goes with --llm", "people cost nothing that can be planned")
    path = output or Path("judge.html")
    write_page(path, to_judge)
    lines = [
        f"{path}: {to_judge.pairs:,} documents to judge, {twice_sentence(to_judge)}",
        "open it in a browser, or send it to a judge",
        "it exports judgments.jsonl; then: harness labels merge judgments.jsonl --into DATASET",
    ]
    print_result(lines, as_json=as_json, path=str(path), digest=to_judge.digest, pairs=to_judge.pairs)


def _judge_by_model(
    to_judge: Pool, path: Path, asked: AskedModel, manner: Manner, *, plan: bool, as_json: bool
) -> None:
    from harness.answers.asking import forecast_sentence, opened_chat
    from harness.labels.model_grades import judge_by_model, plan_judging

    with opened_chat(asked) as (chat, meter):
        if plan:
            forecast = plan_judging(to_judge, path, chat, manner)
            print_result([forecast_sentence(forecast)], as_json=as_json, plan=forecast)
            return
        judged = judge_by_model(to_judge, path, chat, meter, manner)
    print_result([f"{path}: {judged.sentence()}"], as_json=as_json, path=str(path), **judged._asdict())
