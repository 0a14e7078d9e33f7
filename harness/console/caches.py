"""`harness cache`: what was embedded once and is never embedded again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.console import completion
from harness.console.groups import WholeSentences
from harness.console.options import Json, NoCode
from harness.console.printing import print_json, say
from retrievers.errors import InputError, NotShown, Problem, did_you_mean

app = typer.Typer(cls=WholeSentences, help="What was embedded once and is never embedded again.", rich_markup_mode=None)


@app.command()
def info(as_json: Json = False) -> None:
    """Tell what the cache holds, by model."""
    from harness.stats.words import counted
    from retrievers.cache import Cache, default_path

    with Cache(default_path()) as cache:
        held = cache.info()
    if as_json:
        models = [{"fingerprint": one.fingerprint, "rows": one.rows, "bytes": one.bytes} for one in held]
        print_json(path=str(cache.path), models=models)
    else:
        say(f"{cache.path}: {counted(sum(one.rows for one in held), 'row')}")
        say(*(f"{one.rows:>10,} rows {one.bytes / 1e6:>9,.1f} MB  {one.fingerprint}" for one in held))


@app.command()
def verify(
    experiment: Annotated[Path | None, typer.Argument(help="Whose models embed a sample again.")] = None,
    no_code: NoCode = False,
    as_json: Json = False,
) -> None:
    """Check every row's checksum, and how far models have drifted: exit with 1 where something is wrong."""
    from harness.running.drift import drifts
    from harness.stats.words import counted
    from retrievers.cache import Cache, default_path

    with Cache(default_path()) as cache:
        held = cache.info(check=True)
    rows, damaged = sum(one.rows for one in held), sum(one.damaged for one in held)
    drifted = list(drifts(experiment, code=not no_code)) if experiment else []
    if as_json:
        print_json(path=str(cache.path), rows=rows, damaged=damaged, drift=[one._asdict() for one in drifted])
    else:
        say(f"{cache.path}: {counted(rows, 'row')}, {damaged:,} damaged", *(one.sentence() for one in drifted))
    if damaged:
        raise NotShown(f"damaged rows: {damaged:,}; they count as absent, and runs embed them anew")
    if moved := [one.retriever for one in drifted if one.moved]:
        raise NotShown(f"{', '.join(moved)}: no longer the model that was cached; run with --fresh")
    unseen = [one.retriever for one in drifted if not one.compared] if drifted else ["no encoder"]
    if experiment and unseen:
        raise NotShown(f"{', '.join(unseen)}: nothing was compared, since none of its vectors is cached")


@app.command()
def clear(
    fingerprint: Annotated[
        str | None,
        typer.Argument(help="One model, as `harness cache info` names it.", autocompletion=completion.fingerprints),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every model.")] = False,
) -> None:
    """Remove one model's rows, or all: they will be embedded, and paid for, again."""
    from harness.stats.words import counted
    from retrievers.cache import Cache, default_path

    if (fingerprint is None) != everything:
        raise InputError(Problem("FINGERPRINT", "is missing", "`harness cache info` lists them; or --all"))
    with Cache(default_path()) as cache:
        known = [one.fingerprint for one in cache.info()]
        if fingerprint is not None and fingerprint not in known:
            raise InputError(Problem(fingerprint, "is not in the cache", did_you_mean(fingerprint, known)))
        say(f"{cache.path}: {counted(cache.clear(fingerprint), 'row')} removed")
