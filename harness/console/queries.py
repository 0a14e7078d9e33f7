"""The commands for questions that a model writes: queries draft, queries keep."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from harness.console.groups import WholeSentences
from harness.console.options import BaseUrl, KeyName, MaxCost, PlanOnly, Prices
from harness.console.printing import say

app = typer.Typer(
    cls=WholeSentences, help="Questions written by a model, kept or dropped by a person.", rich_markup_mode=None
)


@app.command()
def draft(
    dataset: Annotated[str, typer.Argument(metavar="DATASET", help="The documents to write questions from.")],
    llm: Annotated[str, typer.Option(metavar="MODEL", help="The model, behind an OpenAI-compatible endpoint.")],
    count: Annotated[int, typer.Option(min=1, help="Questions, one a document.")] = 100,
    examples: Annotated[Path | None, typer.Option(help="Real questions, one a line: for their tone.")] = None,
    seed: Annotated[int, typer.Option(help="Another seed draws other documents.")] = 0,
    base_url: BaseUrl = "",
    key_name: KeyName = "",
    max_cost: MaxCost = None,
    price: Prices = "",
    plan: PlanOnly = False,
    output: Annotated[Path, typer.Option(help="The file to write, with a page beside it.")] = Path("drafts.jsonl"),
) -> None:
    """Let a model write questions from sampled documents, and write the page on which a person keeps or drops them."""
    from harness.dataset import reference_of
    from harness.dataset.load import load_documents
    from harness.labels.drafts import draft as write
    from harness.labels.drafts import is_readable, keeping_pool, prompts_for, write_drafts
    from harness.labels.judging_page import write_page
    from harness.labels.model_grades import Asking, asking, check_new, forecast_sentence
    from harness.scoring.saved import read_ids

    data = load_documents(reference_of(dataset))
    asked = prompts_for(data, count, read_ids(examples) if examples else (), seed)
    with asking(Asking(llm, base_url, key_name, price, max_cost)) as (chat, meter):
        if plan:
            say(forecast_sentence(chat.forecast([prompt for _, _, prompt in asked], is_readable)))
            return
        check_new(output)
        written = write(data, asked, chat, meter)
    write_drafts(output, written.drafts)
    page = output.with_suffix(".html")
    texts = {document.id: document for document, _, _ in asked}
    write_page(page, keeping_pool(written.drafts, texts), choices={0: "drop it", 1: "keep it"})
    keep = f"harness queries keep {quote(str(output))} judgments.jsonl --output queries.jsonl"
    say(
        f"{output}: {len(written.drafts):,} drafts; {written.unreadable:,} answers could not be read, "
        f"{written.duplicates:,} near-duplicates were refused",
        f"{page}: keep or drop each; then: {keep}",
    )


@app.command()
def keep(
    drafts: Annotated[Path, typer.Argument(metavar="DRAFTS", help="What `harness queries draft` wrote.")],
    judgments: Annotated[list[Path], typer.Argument(metavar="JUDGMENTS", help="What its page exported.")],
    output: Annotated[Path, typer.Option(help="The file of queries to write.")] = Path("queries.jsonl"),
) -> None:
    """Write the drafts that a person kept as questions without labels, each with who wrote it."""
    from harness.labels.drafts import kept_drafts, write_drafts

    kept = kept_drafts(drafts, judgments)
    write_drafts(output, kept)
    say(f"{output}: {len(kept):,} questions")
