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
    """Let a model write queries from sampled documents, and write the page on which a person keeps or drops them."""
    from harness.dataset import parse_reference
    from harness.dataset.load import load_documents
    from harness.labels.chat_access import JudgeModel, chat_forecast_sentence, open_chat
    from harness.labels.draft_queries import draft_prompts, read_drafted_query
    from harness.labels.draft_queries import draft_queries as write
    from harness.labels.judging_page import write_judging_page
    from harness.labels.keep_drafts import drafts_pool, write_drafts
    from harness.labels.pool import check_new_file
    from harness.scoring.foreign_csv import read_query_ids
    from retrievers.files.text_files import exclusive_lock

    if (page := output.with_suffix(".html")) == output:
        raise InputError(
            Problem(
                "--output",
                f"{output} is the name of the page",
                "name the drafts otherwise: .jsonl",
            )
        )
    data = load_documents(parse_reference(dataset))
    asked = draft_prompts(
        data, count, read_query_ids(examples) if examples else (), seed
    )
    with open_chat(JudgeModel(llm, base_url, key_name, price, max_cost)) as (
        chat,
        meter,
    ):
        if plan:
            prompts = [prompt for _, _, prompt in asked]
            known = chat.forecast(
                prompts, lambda _, reply: read_drafted_query(reply.text) is not None
            )
            print_lines(chat_forecast_sentence(known))
            return
        check_new_file(output)
        with exclusive_lock(
            output,
            "is written by another drafting",
            "wait for it, or name another file with --output",
        ):
            written = write(data, asked, chat, meter)
            write_drafts(output, written.drafts)
        texts = {document.id: document for document, _, _ in asked}
        write_judging_page(
            page,
            drafts_pool(written.drafts, texts),
            choices={0: "drop it", 1: "keep it"},
        )
    keep = f"harness queries keep {quote(str(output))} judgments.jsonl --output queries.jsonl"
    print_lines(
        f"{output}: {count_of(len(written.drafts), 'draft')}; answers that could not be read: {written.unreadable:,}, "
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
    from harness.labels.keep_drafts import select_kept_drafts, write_drafts

    kept = select_kept_drafts(drafts, judgments)
    write_drafts(output, kept)
    print_lines(f"{output}: {count_of(len(kept), 'query')}")
