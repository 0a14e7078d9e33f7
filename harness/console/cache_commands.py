"""The commands on cached vectors."""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from harness.console import options as shared
from harness.console.completion import complete_fingerprints
from harness.console.output import print_lines, print_result
from harness.english import count_of
from retrievers.errors import InputError, Problem, did_you_mean
from retrievers.options.placeholders import redact_url_users

if TYPE_CHECKING:
    from retrievers.stores.connection import Connection

cache_app = shared.command_group("Inspect, clear or fill the cache of vectors.")


STORE_OPTION = typer.Option(
    "--store",
    metavar="URL",
    help="Use the collections of this Qdrant server instead of the cache.",
)
StoreUrl = Annotated[str | None, STORE_OPTION]
STORE_KEY_OPTION = typer.Option(
    "--key", metavar="NAME", help="Environment variable that holds the server's key."
)
StoreKey = Annotated[str | None, STORE_KEY_OPTION]


@cache_app.command()
def info(
    store: StoreUrl = None, key: StoreKey = None, as_json: shared.JsonOutput = False
) -> None:
    """Print what the cache holds, by model; or which collections earlier runs left on a server."""
    from retrievers.cache import Cache, default_cache_path

    if store is not None:
        from retrievers.stores.connection import list_collections

        with _server(store, key) as server:
            left = list_collections(server)
        lines = [
            f"{redact_url_users(store)}: {count_of(len(left), 'collection')} of runs"
        ]
        lines += [
            f"{one.points:>10,} points {'' if one.complete else '(unfinished) '} {one.name}"
            for one in left
        ]
        print_result(
            lines, as_json=as_json, store=redact_url_users(store), collections=left
        )
        return
    shared.refuse_options({"--key": key}, "is of a server", "add --store URL")
    with Cache(default_cache_path()) as cache:
        held = cache.info()
    models = [
        {"fingerprint": one.fingerprint, "rows": one.rows, "bytes": one.bytes}
        for one in held
    ]
    lines = [f"{cache.path}: {count_of(sum(one.rows for one in held), 'row')}"]
    lines += [
        f"{one.rows:>10,} rows {one.bytes / 1e6:>9,.1f} MB  {one.fingerprint}"
        for one in held
    ]
    print_result(lines, as_json=as_json, path=str(cache.path), models=models)


FINGERPRINT_HELP = (
    "The model, or with --store the collection, as `harness cache info` names it."
)
FingerprintArgument = Annotated[
    str | None,
    typer.Argument(help=FINGERPRINT_HELP, autocompletion=complete_fingerprints),
]


@cache_app.command()
def clear(
    fingerprint: FingerprintArgument = None,
    everything: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Remove every model, or with --store every collection of runs.",
        ),
    ] = False,
    store: StoreUrl = None,
    key: StoreKey = None,
) -> None:
    """Remove the vectors of one model or of all, to be embedded and paid for again; or collections on a server."""
    from retrievers.cache import Cache, default_cache_path

    if (fingerprint is None) != everything:
        raise InputError(
            Problem(
                "FINGERPRINT", "is missing", "`harness cache info` lists them; or --all"
            )
        )
    if store is not None:
        from retrievers.stores.connection import list_collections

        with _server(store, key) as server:
            names = [one.name for one in list_collections(server)]
            chosen = (
                names
                if fingerprint is None
                else [_one_of(fingerprint, names, "on the server")]
            )
            for name in chosen:
                server.remove(name)
        print_lines(
            f"{redact_url_users(store)}: {count_of(len(chosen), 'collection')} removed"
        )
        return
    shared.refuse_options({"--key": key}, "is of a server", "add --store URL")
    with Cache(default_cache_path()) as cache:
        if fingerprint is not None:
            _one_of(
                fingerprint, [one.fingerprint for one in cache.info()], "in the cache"
            )
        print_lines(
            f"{cache.path}: {count_of(cache.clear(fingerprint), 'row')} removed"
        )


def _one_of(name: str, known: list[str], where: str) -> str:
    if name not in known:
        raise InputError(Problem(name, f"is not {where}", did_you_mean(name, known)))
    return name


def _server(url: str, key: str | None) -> closing[Connection]:
    """A connection to a server whose key is in an environment variable."""
    from retrievers.stores.connection import Connection
    from retrievers.stores.options import StoreOptions

    if key is not None and not os.environ.get(key):
        raise InputError(Problem("--key", f"{key} is not set in the environment"))
    options = StoreOptions(location=url, api_key=os.environ[key] if key else None)
    if not options.on_server:
        raise InputError(
            Problem(
                "--store",
                f"{url!r} is not a server",
                "http://…, https://…, grpc://… or grpcs://…",
            )
        )
    return closing(Connection(options))


VectorsUrl = Annotated[
    str,
    typer.Option(
        "--to",
        metavar="URL",
        help="A folder, or a URL that fsspec opens: s3://…, gs://…",
    ),
]
RayAddress = Annotated[
    str | None,
    typer.Option(help="Address of the Ray cluster; default: one on this machine."),
]


def embed(
    experiment: shared.ExperimentFile,
    to: VectorsUrl,
    address: RayAddress = None,
    max_cost: shared.MaxCost = None,
    no_code: shared.NoCode = False,
    quiet: shared.QuietOption = False,
    as_json: shared.JsonOutput = False,
) -> None:
    """Embed an experiment's texts on a Ray cluster, and write the vectors to a place that every machine can read."""
    from harness.running.ray_embedding import RaySettings
    from harness.running.ray_embedding import embed_on_ray as embed_texts

    settings = RaySettings(address, max_cost, not no_code, progress=not quiet)
    done = embed_texts(experiment, to, settings)
    lines = [
        f"{one.encoder}, {one.role}: {count_of(one.texts, 'text')}, {one.present:,} there already"
        for one in done
    ]
    print_result(
        [] if quiet else lines,
        as_json=as_json,
        embedded=[one._asdict() for one in done],
    )


@cache_app.command("import")
def import_vectors_command(
    url: Annotated[
        str,
        typer.Argument(
            metavar="URL", help="The folder or URL that `harness embed` wrote to."
        ),
    ],
    as_json: shared.JsonOutput = False,
) -> None:
    """Copy vectors that were embedded elsewhere into the cache."""
    from retrievers.cache import Cache, default_cache_path
    from retrievers.files.parquet_vectors import import_vectors

    with Cache(default_cache_path()) as cache:
        imported = import_vectors(cache, url)
    lines = [
        f"{one.rows:>10,} rows  {one.role:<8}  {one.fingerprint}, {one.known:,} known"
        for one in imported
    ]
    print_result(lines, as_json=as_json, imported=[one._asdict() for one in imported])
