"""The commands on queries."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from harness.console import options as shared
from harness.console.output import print_lines
from harness.english import count_of
from retrievers.errors import InputError, Problem

queries_app = shared.command_group(
    "Let a model draft queries, and a person keep or drop them."
)


QueryExamples = Annotated[
    Path | None,
    typer.Option(help="A file of real queries, one per line, as examples of tone."),
]


@queries_app.command()
def draft(
    *,
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
    examples: QueryExamples = None,
    seed: Annotated[int, typer.Option(help="Seed of the sample of documents.")] = 0,
    base_url: shared.BaseUrl = "",
    key_name: shared.KeyName = "",
    max_cost: shared.MaxCost = None,
    price: shared.TokenPrices = "",
    plan: shared.PlanOnly = False,
    output: Annotated[
        Path, typer.Option(help="File to write; the page is written beside it.")
    ] = Path("drafts.jsonl"),
) -> None:
    """Let a model write queries from sampled documents, and write the page on which a
    person keeps or drops them.
    """  # noqa: D205
    from harness.console.labelling_text import chat_forecast_sentence
    from harness.console.listed_lines import read_listed_lines
    from harness.dataset import parse_reference
    from harness.dataset.load import load_documents
    from harness.labels.answers_page import refuse_other_file
    from harness.labels.chat_access import ChatOptions, open_chat
    from harness.labels.draft_queries import (
        draft_prompts,
        draft_queries,
        read_drafted_query,
    )
    from harness.labels.judging_page import JudgingPageOptions, write_judging_page
    from harness.labels.keep_drafts import drafts_pool, write_drafts
    from harness.labels.pool import check_new_file
    from retrievers.files.text_files import exclusive_lock

    page = output.with_suffix(".html")
    if page == output:
        problem = f"{output} is the name of the page"
        remedy = "name the drafts otherwise: .jsonl"
        raise InputError(Problem("--output", problem, remedy))
    documents = load_documents(parse_reference(dataset))
    example_queries = read_listed_lines(examples, "example query") if examples else ()
    prompts = draft_prompts(documents, count, example_queries, seed)
    model = ChatOptions(llm, base_url, key_name, price, max_cost)
    with open_chat(model) as (chat, meter):
        if plan:
            forecast = chat.forecast(
                [prompt for _, _, prompt in prompts],
                lambda _, reply: read_drafted_query(reply.text) is not None,
            )
            print_lines(chat_forecast_sentence(forecast))
            return
        check_new_file(output)
        refuse_other_file(page)
        keep_command = f"harness queries keep {quote(str(output))}"
        with exclusive_lock(
            output,
            "is written by another drafting",
            "wait for it, or name another file with --output",
        ):
            drafted = draft_queries(documents, prompts, chat, meter)
            write_drafts(output, drafted.drafts)
        texts = {document.id: document for document, _, _ in prompts}
        options = JudgingPageOptions(
            grades={0: "drop it", 1: "keep it"},
            next_command=f"{keep_command} judgments.jsonl --output queries.jsonl",
            has_none_key=False,
        )
        write_judging_page(page, drafts_pool(drafted.drafts, texts), options)
    drafts = count_of(len(drafted.drafts), "draft")
    print_lines(
        f"{output}: {drafts}; answers that could not be read: "
        f"{drafted.unreadable:,}, near-duplicates that were refused: "
        f"{drafted.duplicates:,}",
        f"{page}: keep or drop each; then: "
        f"{keep_command} judgments.jsonl --output queries.jsonl",
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
    """Write the drafts that a person kept as queries without labels, each with who
    wrote it.
    """  # noqa: D205
    from harness.labels.keep_drafts import select_kept_drafts, write_drafts

    queries = select_kept_drafts(drafts, judgments)
    write_drafts(output, queries)
    print_lines(f"{output}: {count_of(len(queries), 'query')}")
