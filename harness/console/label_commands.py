"""Commands for queries and labels: pool, judge; labels agree, merge, export; queries draft, keep; and for answers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from harness.console import shared_options as shared
from harness.console.printing import print_json, print_result, print_scores, say, warn
from harness.english import count, counted
from retrievers.errors import InputError, Problem

if TYPE_CHECKING:
    from harness.labels.agree import Agreements, Dispute, PairOfJudges
    from harness.labels.model_grades import AskedModel, AskingOptions
    from harness.labels.pool import Pool
    from harness.stats.agreement import Agreement

LISTED = 10
"""Pairs of one list that are shown; the rest is counted."""
labels_app = shared.group("Compare, merge and export labels by people and models.")

JudgmentFiles = Annotated[
    list[Path], typer.Argument(metavar="JUDGMENTS", help="Files of labels.")
]
Sources = Annotated[
    list[Path],
    typer.Argument(metavar="DATASET|JUDGMENTS", help="A data set, or files of labels."),
]
queries_app = shared.group("Let a model draft queries, and a person keep or drop them.")


def agreement_lines(agreements: Agreements) -> Iterator[str]:
    """Every coefficient with its interval, the confusion tables, and the pairs worth talking about."""
    for pair in agreements.pairs:
        yield f"{pair.a} and {pair.b}: {counted(pair.units, 'pair')} of {count(pair.queries)} judged by both"
        yield f"  Cohen's kappa           {_shown(pair.kappa)}"
        if pair.weighted is not None:
            yield f"  … with squared weights  {_shown(pair.weighted)}"
        yield f"  positive agreement      {_shown(pair.positive)}"
        if pair.rbo is not None:
            yield f"  rank-biased overlap     {pair.rbo:.4f}"
        yield from _confusion(pair)
    if agreements.together is not None and len(agreements.together.judges) > 1:
        together = agreements.together
        yield f"all of {', '.join(together.judges)}:"
        for level in ("nominal", "ordinal", "interval"):
            yield f"  alpha, {level:<16} {_shown(getattr(together, level))}"
    for one in agreements.themselves:
        same = f"{100 * one.same:.0f} % the same, kappa with squared weights"
        yield f"{one.judge} graded twice, {counted(one.pairs, 'pair')}: {same} {_shown(one.weighted)}"
    yield from _listed("worth talking about", agreements.disputed)
    yield from _listed("people and model far apart", agreements.apart)


def _listed(what: str, disputes: Sequence[Dispute]) -> Iterator[str]:
    """The first pairs of a list, and how many more there are."""
    for dispute in disputes[:LISTED]:
        gave = ", ".join(f"{judge} {grade}" for judge, grade in dispute.grades)
        yield f"{what}: {dispute.query_id} {dispute.document_id}: {gave}"
    if (more := len(disputes) - LISTED) > 0:
        yield f"{what}: {more:,} more pairs (--json lists them all)"


def _shown(agreement: Agreement) -> str:
    from harness.stats.agreement import ENOUGH_QUERIES

    if math.isnan(agreement.value):
        return "undefined: all fell into one grade"
    interval = f"95 % interval over queries {agreement.low:.4f} to {agreement.high:.4f}"
    few = f"no interval below {ENOUGH_QUERIES} queries"
    return f"{agreement.value:.4f} ({few if math.isnan(agreement.low) else interval})"


def _confusion(pair: PairOfJudges) -> Iterator[str]:
    names = range(len(pair.table)) if len(pair.table) > 2 else ("not", "relevant")
    width = max(len(f"{cell:,}") for row in pair.table for cell in row) + 2
    width = max(width, 10)
    yield f"  {pair.a} down, {pair.b} across:".ljust(14) + "".join(
        f"{name!s:>{width}}" for name in names
    )
    for name, row in zip(names, pair.table, strict=True):
        yield f"  {name!s:>10}  " + "".join(f"{cell:>{width},}" for cell in row)


@labels_app.command()
def agree(paths: Sources, as_json: shared.Json = False) -> None:
    """Measure how far judges agree, with others and with themselves, and list the pairs to talk about."""
    from harness.labels.agree import agree as measure

    agreements = measure(paths)
    print_result(agreement_lines(agreements), as_json=as_json, **agreements._asdict())


CORRECTS_HELP = (
    "A judge whose later grades replace earlier ones; without it the first grade stays."
)
Corrects = Annotated[
    list[str] | None, typer.Option(metavar="JUDGE", help=CORRECTS_HELP)
]


@labels_app.command()
def merge(
    paths: JudgmentFiles,
    into: Annotated[
        str,
        typer.Option(metavar="DATASET", help="The data set whose queries were judged."),
    ],
    queries: Annotated[
        list[str] | None,
        typer.Option(help="The file of queries in it that was judged."),
    ] = None,
    adjudicate: Annotated[
        Path | None,
        typer.Option(help="Write a pool of what people disagree on, to be settled."),
    ] = (None),
    policy: shared.Policy = None,
    corrects: Corrects = None,
    as_json: shared.Json = False,
) -> None:
    """Add labels to a data set, where check, run and report read them; all or none."""
    from harness.dataset import DatasetReference
    from harness.labels.people import adjudication_pool, merge_into
    from harness.labels.pool import check_new, read_policy, write_pool

    if adjudicate is None:
        shared.refuse({"--policy": policy}, "goes with --adjudicate")
    reference = DatasetReference(Path(into), queries=tuple(queries or ()))
    if adjudicate is not None:
        check_new(adjudicate)
    merged = merge_into(paths, reference, corrects or ())
    if adjudicate is not None and merged.disputed:
        write_pool(
            adjudicate,
            adjudication_pool(merged.disputed, reference, read_policy(policy)),
        )
    if as_json:
        print_json(**{**merged._asdict(), "path": str(merged.path)})
        return
    of_people = (
        f"queries judged by people {merged.people:,}, begun by people {merged.mixed:,}"
    )
    say(
        f"{merged.path}: {counted(merged.judgments, 'label')}, {merged.added:,} of them new"
    )
    say(f"{of_people}, by a model alone {merged.model:,}")
    if adjudicate is not None and not merged.disputed:
        say(
            f"people differ by two grades on no document: there is nothing to settle, and {adjudicate} is not written"
        )
    for judge in merged.opinions:
        warn(
            f"later grades by {judge} do not replace the first ones; if they should: --corrects {quote(judge)}"
        )
    for one in merged.disputed:
        gave = ", ".join(f"{judge} {grade}" for judge, grade in one.grades)
        warn(f"to adjudicate: {one.query_id} {one.document_id}: {gave}")


WithModel = Annotated[
    bool,
    typer.Option(
        "--with-model", help="Also write a model's labels where there are people's."
    ),
]


@labels_app.command()
def export(
    dataset: Annotated[
        str, typer.Argument(metavar="DATASET", help="A data set with labels.")
    ],
    output: Annotated[Path, typer.Option(help="File to write.")],
    form: Annotated[
        Literal["trec", "json"],
        typer.Option("--as", help="TREC qrels, or a data set's queries.json."),
    ] = ("trec"),
    queries: Annotated[
        list[str] | None, typer.Option(help="The file of queries, within the data set.")
    ] = None,
    with_model: WithModel = False,
) -> None:
    """Write the merged labels as TREC qrels, or in the data set's own form; only people's where there are any."""
    from harness.dataset import DatasetReference, load
    from harness.labels.people import export_labels

    data = load(DatasetReference(Path(dataset), queries=tuple(queries or ())))
    say(
        f"{output}: {export_labels(data, output, form, with_model=with_model).sentence()}"
    )


Examples = Annotated[
    Path | None,
    typer.Option(help="A file of real queries, one per line, as examples of tone."),
]


@queries_app.command()
def draft(
    dataset: Annotated[
        str,
        typer.Argument(metavar="DATASET", help="The documents to write queries from."),
    ],
    llm: Annotated[
        str,
        typer.Option(
            metavar="MODEL", help="The model, behind an OpenAI-compatible endpoint."
        ),
    ],
    count: Annotated[
        int, typer.Option(min=1, help="Number of queries, one for each document.")
    ] = 100,
    examples: Examples = None,
    seed: Annotated[int, typer.Option(help="Seed of the sample of documents.")] = 0,
    base_url: shared.BaseUrl = "",
    key_name: shared.KeyName = "",
    max_cost: shared.MaxCost = None,
    price: shared.Prices = "",
    plan: shared.PlanOnly = False,
    output: Annotated[
        Path, typer.Option(help="File to write; the page is written beside it.")
    ] = Path("drafts.jsonl"),
) -> None:
    """Let a model write queries from sampled documents, and write the page on which a person keeps or drops them."""
    from harness.dataset import reference_of
    from harness.dataset.load import load_documents
    from harness.evaluation.readers import read_ids
    from harness.labels.drafts import draft as write
    from harness.labels.drafts import (
        keeping_pool,
        prompts_for,
        read_query,
        write_drafts,
    )
    from harness.labels.model_grades import AskedModel, forecast_sentence, opened_chat
    from harness.labels.people import write_page
    from harness.labels.pool import check_new
    from retrievers.opening import locked

    if (page := output.with_suffix(".html")) == output:
        raise InputError(
            Problem(
                "--output",
                f"{output} is the name of the page",
                "name the drafts otherwise: .jsonl",
            )
        )
    data = load_documents(reference_of(dataset))
    asked = prompts_for(data, count, read_ids(examples) if examples else (), seed)
    with opened_chat(AskedModel(llm, base_url, key_name, price, max_cost)) as (
        chat,
        meter,
    ):
        if plan:
            prompts = [prompt for _, _, prompt in asked]
            known = chat.forecast(
                prompts, lambda _, reply: read_query(reply.text) is not None
            )
            say(forecast_sentence(known))
            return
        check_new(output)
        with locked(
            output,
            "is written by another drafting",
            "wait for it, or name another file with --output",
        ):
            written = write(data, asked, chat, meter)
            write_drafts(output, written.drafts)
        texts = {document.id: document for document, _, _ in asked}
        write_page(
            page,
            keeping_pool(written.drafts, texts),
            choices={0: "drop it", 1: "keep it"},
        )
    keep = f"harness queries keep {quote(str(output))} judgments.jsonl --output queries.jsonl"
    say(
        f"{output}: {counted(len(written.drafts), 'draft')}; answers that could not be read: {written.unreadable:,}, "
        f"near-duplicates that were refused: {written.duplicates:,}",
        f"{page}: keep or drop each; then: {keep}",
    )


@queries_app.command()
def keep(
    drafts: Annotated[
        Path,
        typer.Argument(
            metavar="DRAFTS", help="The file that `harness queries draft` wrote."
        ),
    ],
    judgments: Annotated[
        list[Path],
        typer.Argument(metavar="JUDGMENTS", help="Files that its page exported."),
    ],
    output: Annotated[Path, typer.Option(help="File of queries to write.")] = Path(
        "queries.jsonl"
    ),
) -> None:
    """Write the drafts that a person kept as queries without labels, each with who wrote it."""
    from harness.labels.drafts import kept_drafts, write_drafts

    kept = kept_drafts(drafts, judgments)
    write_drafts(output, kept)
    say(f"{output}: {counted(len(kept), 'query')}")


ManyResults = Annotated[
    list[Path],
    typer.Argument(metavar="RESULTS", help="Results folders over the same documents."),
]
PoolFile = Annotated[
    Path, typer.Argument(metavar="POOL", help="The file that `harness pool` wrote.")
]
JudgedAlready = Annotated[
    list[Path] | None,
    typer.Option(help="Files of earlier labels; their pairs are left out."),
]
Llm = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL", help="Ask this model behind an OpenAI-compatible endpoint."
    ),
]
LONGEST = 8_000


Sample = Annotated[
    int | None,
    typer.Option(min=1, help="Number of queries, drawn at random; default: all."),
]
NextLook = Annotated[
    bool,
    typer.Option(
        "--next-look", help="Draw the queries that the next planned look lacks."
    ),
]


def pool(
    results: ManyResults,
    depth: Annotated[
        int,
        typer.Option(min=1, help="Number of documents from the top of each ranking."),
    ] = 10,
    sample: Sample = None,
    next_look: NextLook = False,
    seed: Annotated[int, typer.Option(help="Seed of the sample and of its order.")] = 0,
    audience: Annotated[
        Literal["human", "llm"],
        typer.Option(
            "--for", help="Who will judge; pairs that they have judged are left out."
        ),
    ] = "human",
    policy: shared.Policy = None,
    judged: JudgedAlready = None,
    output: Annotated[Path, typer.Option(help="File to write.")] = Path("pool.jsonl"),
    as_json: shared.Json = False,
) -> None:
    """Choose what to judge: a sample of the queries, the top documents of every retriever, in hashed order."""
    from harness.labels.pool import (
        Drawing,
        draw,
        gather,
        known_judgments,
        read_policy,
        write_pool,
    )

    shared.refuse(
        {"--sample": next_look and sample is not None},
        "cannot go with --next-look, which says how many",
    )
    drawing = Drawing(depth, sample, seed, audience, read_policy(policy), next_look)
    material = gather(results, depth)
    drawn_pool = draw(material, drawing, known_judgments(material, judged or ()))
    write_pool(output, drawn_pool)
    drawn, left = drawn_pool.drawn, len(material.queries) - drawn_pool.drawn.population
    lines = [
        f"left out: {counted(left, 'query')} equal to another but for case and white space"
    ] * bool(left)
    to_judge = counted(drawn_pool.pairs, "document")
    lines += [
        f"{output}: {drawn.sampled:,} of {counted(drawn.population, 'query')}, {to_judge} to judge",
        f"next: harness judge {quote(str(output))}"
        + (" --llm MODEL" if audience == "llm" else ""),
    ]
    print_result(
        lines,
        as_json=as_json,
        path=str(output),
        digest=drawn_pool.digest,
        pairs=drawn_pool.pairs,
        **drawn.model_dump(),
    )


LONGEST_HELP = (
    "Most tokens of a document that --llm is shown; the rest is cut and counted."
)
Longest = Annotated[int, typer.Option(min=100, metavar="TOKENS", help=LONGEST_HELP)]


def judge(
    pool_file: PoolFile,
    llm: Llm = None,
    base_url: shared.BaseUrl = "",
    key_name: shared.KeyName = "",
    repeat: Annotated[
        int,
        typer.Option(min=1, help="Rounds of --llm: 2 measures the model's own noise."),
    ] = 1,
    longest: Longest = LONGEST,
    max_cost: shared.MaxCost = None,
    price: shared.Prices = "",
    plan: shared.PlanOnly = False,
    output: Annotated[
        Path | None,
        typer.Option(help="File to write: judge.html, or the model's labels."),
    ] = None,
    as_json: shared.Json = False,
) -> None:
    """Write the judging page of a pool (a file, no server), or let a model judge."""
    from harness.labels.model_grades import AskedModel, AskingOptions
    from harness.labels.people import twice_sentence, write_page
    from harness.labels.pool import read_pool

    to_judge = read_pool(pool_file)
    if llm is not None:
        asked, manner = (
            AskedModel(llm, base_url, key_name, price, max_cost),
            AskingOptions(repeat, longest),
        )
        _judge_by_model(
            to_judge,
            output or Path("judgments-llm.jsonl"),
            asked,
            manner,
            plan=plan,
            as_json=as_json,
        )
        return
    of_models = {
        "--base-url": base_url,
        "--key": key_name,
        "--repeat": repeat > 1,
        "--longest": longest != LONGEST,
        "--max-cost": max_cost is not None,
        "--price": price,
        "--plan": plan,
    }
    shared.refuse(
        of_models, "goes with --llm", "people cost nothing that can be planned"
    )
    path = output or Path("judge.html")
    write_page(path, to_judge)
    lines = [
        f"{path}: {counted(to_judge.pairs, 'document')} to judge, {twice_sentence(to_judge)}",
        "open it in a browser, or send it to a judge",
        "it exports judgments.jsonl; then: harness labels merge judgments.jsonl --into DATASET",
    ]
    print_result(
        lines,
        as_json=as_json,
        path=str(path),
        digest=to_judge.digest,
        pairs=to_judge.pairs,
    )


def _judge_by_model(
    to_judge: Pool,
    path: Path,
    asked: AskedModel,
    manner: AskingOptions,
    *,
    plan: bool,
    as_json: bool,
) -> None:
    from harness.labels.model_grades import (
        forecast_sentence,
        judge_by_model,
        opened_chat,
        plan_judging,
    )

    with opened_chat(asked) as (chat, meter):
        if plan:
            forecast = plan_judging(to_judge, path, chat, manner)
            print_result([forecast_sentence(forecast)], as_json=as_json, plan=forecast)
            return
        judged = judge_by_model(to_judge, path, chat, meter, manner)
    print_result(
        [f"{path}: {judged.sentence()}"],
        as_json=as_json,
        path=str(path),
        **judged._asdict(),
    )


answers_app = shared.group(
    "Judge and score the answers of a generator: claims, verdicts, measures."
)

EXPERIMENT = typer.Argument(
    metavar="EXPERIMENT", help="An experiment file, for its data set and [judge]."
)
ExperimentFile = Annotated[Path, EXPERIMENT]
ANSWERS = typer.Argument(
    metavar="ANSWERS",
    help="A folder with <system>.jsonl for each system, one answer a line.",
)
SystemFolder = Annotated[Path, ANSWERS]
TOKENIZER = typer.Option(
    "--tokenizer", help="Tokenizer of BLEU and ROUGE: 13a, char, ja-mecab, …"
)
TokenizerOption = Annotated[str | None, TOKENIZER]
MEASURE = typer.Option(
    "--measure", "-m", help="A measure; may be repeated, the first decides."
)
AnswerMeasures = Annotated[list[str] | None, MEASURE]
Baseline = Annotated[
    str | None,
    typer.Option(help="Compare every other system with this one; default: all pairs."),
]
REPORT = typer.Option(
    "--report",
    help="Write a page that shows where each claim was lost: retriever or generator.",
)
Page = Annotated[Path | None, REPORT]


@answers_app.command("check")
def check_answers(
    experiment: ExperimentFile,
    folder: SystemFolder,
    no_code: shared.NoCode = False,
    as_json: shared.Json = False,
) -> None:
    """List every problem in files of answers, and what will be counted."""
    from harness.answers.work import answer_counts, lines_of, read_inputs

    inputs = read_inputs(experiment, folder, code=not no_code)
    values = {
        "queries": len(inputs.queries),
        "without_reference": inputs.bare,
        "systems": answer_counts(inputs),
    }
    print_result(lines_of(inputs), as_json=as_json, **values)


@answers_app.command("judge")
def judge_folder(
    experiment: ExperimentFile,
    folder: SystemFolder,
    max_cost: shared.MaxCost = None,
    plan: shared.PlanOnly = False,
    no_code: shared.NoCode = False,
    as_json: shared.Json = False,
) -> None:
    """Ask the judge for every verdict that the measures need; nothing is judged twice."""
    from harness.answers.work import forecast_judging, judge

    if plan:
        forecast = forecast_judging(experiment, folder, code=not no_code)
        print_result([forecast.sentence()], as_json=as_json, plan=forecast)
        return
    judged = judge(experiment, folder, max_cost=max_cost, code=not no_code)
    print_result(judged.lines(), as_json=as_json, **judged._asdict())


@answers_app.command("score")
def score_folder(
    experiment: ExperimentFile,
    folder: SystemFolder,
    measure: AnswerMeasures = None,
    baseline: Baseline = None,
    tokenizer: TokenizerOption = None,
    report: Page = None,
    no_code: shared.NoCode = False,
    as_json: shared.Json = False,
) -> None:
    """Compute every measure from the verdicts, and compare the systems: scores.csv, summary.csv, comparisons.csv."""
    from harness.answers.work import AnswerOptions, score

    options = AnswerOptions(tuple(measure or ()), baseline, tokenizer)
    scored = score(experiment, folder, options, code=not no_code)
    print_scores(scored.scores, scored.evaluation, scored.notes, as_json=as_json)
    if report is not None:
        from harness.answers.cases import section_of
        from harness.report.html_page import write_scores

        section = section_of(
            scored.traced, scored.scores, scored.evaluation.settings.level
        )
        write_scores(
            report, folder.resolve().name, scored.evaluation, scored.notes, section
        )
