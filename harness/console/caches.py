"""`harness embed` and `harness cache`: what was embedded once, here or on many machines, and never is again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from harness.console.printing import console_of, print_result, say
from harness.console.shared_options import (
    ExperimentFile,
    HelpGroup,
    Json,
    MaxCost,
    NoCode,
    Quiet,
    fingerprints,
    refuse,
)
from harness.english import counted
from retrievers.errors import InputError, NotShown, Problem, did_you_mean
from retrievers.placeholders import without_user

if TYPE_CHECKING:
    from harness.running.embed_shards import EncoderShare
    from retrievers.stores.connection import Collections
    from retrievers.vector_shards import Imported


app = typer.Typer(cls=HelpGroup, help="Inspect, verify, clear or fill the cache of vectors.", rich_markup_mode=None)


StoreUrl = Annotated[
    str | None,
    typer.Option("--store", metavar="URL", help="Use the collections of this Qdrant server instead of the cache."),
]
StoreKey = Annotated[
    str | None, typer.Option("--key", metavar="NAME", help="Environment variable that holds the server's key.")
]


@app.command()
def info(store: StoreUrl = None, key: StoreKey = None, as_json: Json = False) -> None:
    """Print what the cache holds, by model; or which collections earlier runs left on a server."""
    from retrievers.cache import Cache, default_path

    if store is not None:
        with _collections(store, key) as collections:
            left = collections.list()
        lines = [f"{without_user(store)}: {counted(len(left), 'collection')} of runs"]
        lines += [f"{one.points:>10,} points {'' if one.complete else '(unfinished) '} {one.name}" for one in left]
        print_result(lines, as_json=as_json, store=without_user(store), collections=left)
        return
    refuse({"--key": key}, "is of a server", "write --store URL beside it")
    with Cache(default_path()) as cache:
        held = cache.info()
    models = [{"fingerprint": one.fingerprint, "rows": one.rows, "bytes": one.bytes} for one in held]
    lines = [f"{cache.path}: {counted(sum(one.rows for one in held), 'row')}"]
    lines += [f"{one.rows:>10,} rows {one.bytes / 1e6:>9,.1f} MB  {one.fingerprint}" for one in held]
    print_result(lines, as_json=as_json, path=str(cache.path), models=models)


@app.command()
def verify(
    experiment: Annotated[
        Path | None, typer.Argument(help="An experiment file, whose models embed a sample again.")
    ] = None,
    no_code: NoCode = False,
    as_json: Json = False,
) -> None:
    """Check every row's checksum, and how far models have drifted; exit with 1 if anything is wrong."""
    from harness.running.embed_shards import drifts
    from retrievers.cache import Cache, default_path

    with Cache(default_path()) as cache:
        held = cache.info(check=True)
    rows, damaged = sum(one.rows for one in held), sum(one.damaged for one in held)
    drifted = list(drifts(experiment, code=not no_code)) if experiment else []
    lines = [f"{cache.path}: {counted(rows, 'row')}, {damaged:,} damaged", *(one.sentence() for one in drifted)]
    print_result(lines, as_json=as_json, path=str(cache.path), rows=rows, damaged=damaged, drift=drifted)
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
        typer.Argument(
            help="The model, or with --store the collection, as `harness cache info` names it.",
            autocompletion=fingerprints,
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Remove every model, or with --store every collection of runs.")
    ] = False,
    store: StoreUrl = None,
    key: StoreKey = None,
) -> None:
    """Remove the vectors of one model or of all, to be embedded and paid for again; or collections on a server."""
    from retrievers.cache import Cache, default_path

    if (fingerprint is None) != everything:
        raise InputError(Problem("FINGERPRINT", "is missing", "`harness cache info` lists them; or --all"))
    if store is not None:
        with _collections(store, key) as collections:
            names = [one.name for one in collections.list()]
            chosen = names if fingerprint is None else [_one_of(fingerprint, names, "on the server")]
            for name in chosen:
                collections.remove(name)
        say(f"{without_user(store)}: {counted(len(chosen), 'collection')} removed")
        return
    refuse({"--key": key}, "is of a server", "write --store URL beside it")
    with Cache(default_path()) as cache:
        if fingerprint is not None:
            _one_of(fingerprint, [one.fingerprint for one in cache.info()], "in the cache")
        say(f"{cache.path}: {counted(cache.clear(fingerprint), 'row')} removed")


def _one_of(name: str, known: list[str], where: str) -> str:
    if name not in known:
        raise InputError(Problem(name, f"is not {where}", did_you_mean(name, known)))
    return name


@contextmanager
def _collections(url: str, key: str | None) -> Iterator[Collections]:
    """What runs have left on a server, whose key stands in an environment variable."""
    from retrievers.stores import StoreOptions
    from retrievers.stores.connection import Collections

    if key is not None and not os.environ.get(key):
        raise InputError(Problem("--key", f"{key} is not set in the environment"))
    options = StoreOptions(url, api_key=os.environ[key] if key else None)
    if not options.on_server:
        raise InputError(Problem("--store", f"{url!r} is not a server", "http://…, https://…, grpc://… or grpcs://…"))
    with closing(Collections(options)) as collections:
        yield collections


To = Annotated[str, typer.Option("--to", metavar="URL", help="A folder, or a URL that fsspec opens: s3://…, gs://…")]
ShardOption = Annotated[
    str | None,
    typer.Option("--shard", metavar="I/N", help="Embed only the I-th of N equal shares; default: all texts."),
]
Engine = Annotated[Literal["none", "ray"], typer.Option(help="ray embeds all shares at once, on a Ray cluster.")]
Address = Annotated[str | None, typer.Option(help="Address of the Ray cluster; default: one on this machine.")]


def embed(
    experiment: ExperimentFile,
    to: To,
    shard: ShardOption = None,
    engine: Engine = "none",
    address: Address = None,
    max_cost: MaxCost = None,
    no_code: NoCode = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Embed an experiment's texts, or a share of them, and write the vectors to a place that every machine can read."""
    from harness.console.progress import Progress
    from harness.running.embed_shards import Shard, parse_shard
    from harness.running.embed_shards import embed as embed_share
    from harness.running.ray_engine import embed_on_cluster

    if engine == "ray":
        refuse({"--shard": shard}, "is for machines with nothing between them", "--engine ray shares by itself")
    else:
        refuse({"--address": address}, "is of a Ray cluster", "write --engine ray beside it")
    part = Shard() if shard is None else parse_shard(shard)
    with Progress(console_of(stderr=True), quiet=quiet) as progress:
        if engine == "ray":
            shares = embed_on_cluster(
                experiment, to, address=address, max_cost=max_cost, code=not no_code, watch=progress.watch
            )
        else:
            shares = embed_share(experiment, to, shard=part, max_cost=max_cost, code=not no_code, watch=progress.watch)
    if as_json or not quiet:
        print_result(map(_sentence, shares), as_json=as_json, embedded=[_row(share) for share in shares])


@app.command("import")
def import_parts(
    url: Annotated[str, typer.Argument(metavar="URL", help="The folder or URL that `harness embed` wrote to.")],
    as_json: Json = False,
) -> None:
    """Copy vectors that were embedded elsewhere into the cache."""
    from harness.running.embed_shards import import_vectors

    imported = import_vectors(url)
    print_result(map(_imported, imported), as_json=as_json, imported=imported)


def _imported(one: Imported) -> str:
    again = f" ({one.repeated:,} more of texts that stand in several files)" if one.repeated else ""
    return f"{one.rows:>10,} rows  {one.role:<8}  {one.fingerprint}{again}"


def _row(share: EncoderShare) -> dict[str, object]:
    return {
        "encoder": share.encoder,
        "role": share.role,
        **share.written._asdict(),
        "cached": share.cached,
        "tokens": share.tokens,
        "usd": share.usd,
    }


def _sentence(share: EncoderShare) -> str:
    texts, present, parts = share.written
    return (
        f"{share.encoder}, {share.role}: {counted(texts, 'text')}, {present:,} there already, "
        f"{share.cached:,} from the cache; files written: {parts:,}; tokens: {share.tokens:,}; ${share.usd:.4f}"
    )
