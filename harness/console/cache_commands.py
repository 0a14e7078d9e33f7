"""The commands on the cache.

It has vectors, scores of rerankers, and replies of judges and agents. With `--store`
they are on the collections of a server.
"""

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
from retrievers.options.placeholders import expand, redact_url_users

if TYPE_CHECKING:
    from retrievers.stores.connection import Connection

cache_app = shared.command_group(
    "Inspect, clear or fill the cache: vectors, scores, replies."
)


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
    """Print what the cache holds, by model; or which collections earlier runs left on a
    server.
    """  # noqa: D205
    from retrievers.cache import Cache, default_cache_path

    if store is not None:
        from retrievers.stores.connection import list_collections

        with _open_server(store, key) as server:
            collections = list_collections(server)
        url = redact_url_users(store)
        lines = [f"{url}: {count_of(len(collections), 'collection')} of runs"]
        for collection in collections:
            state = "" if collection.complete else "(unfinished) "
            lines.append(f"{collection.points:>10,} points {state} {collection.name}")
        print_result(lines, as_json=as_json, store=url, collections=collections)
        return
    shared.refuse_options({"--key": key}, "is of a server", "add --store URL")
    with Cache(default_cache_path()) as cache:
        models = cache.info()
    row_count = count_of(sum(model.rows for model in models), "row")
    lines = [f"{cache.path}: {row_count}"]
    lines += [
        f"{model.rows:>10,} rows {model.bytes / 1e6:>9,.1f} MB  {model.fingerprint}"
        for model in models
    ]
    model_rows = [
        {"fingerprint": model.fingerprint, "rows": model.rows, "bytes": model.bytes}
        for model in models
    ]
    print_result(lines, as_json=as_json, path=str(cache.path), models=model_rows)


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
    """Remove what one model or all have stored (vectors, scores, replies), to be made
    and paid for again; or collections on a server.
    """  # noqa: D205
    from retrievers.cache import Cache, default_cache_path

    if fingerprint is None and not everything:
        remedy = "`harness cache info` lists them; or --all"
        raise InputError(Problem("FINGERPRINT", "is missing", remedy))
    if fingerprint is not None and everything:
        remedy = "name one, or give --all alone"
        raise InputError(Problem("FINGERPRINT", "cannot go with --all", remedy))
    if store is not None:
        from retrievers.stores.connection import list_collections

        with _open_server(store, key) as server:
            stored = [collection.name for collection in list_collections(server)]
            removed = stored
            if fingerprint is not None:
                _check_name(fingerprint, stored, "on the server")
                removed = [fingerprint]
            for collection_name in removed:
                server.remove(collection_name)
        collections = count_of(len(removed), "collection")
        print_lines(f"{redact_url_users(store)}: {collections} removed")
        return
    shared.refuse_options({"--key": key}, "is of a server", "add --store URL")
    with Cache(default_cache_path()) as cache:
        if fingerprint is not None:
            fingerprints = [model.fingerprint for model in cache.info()]
            _check_name(fingerprint, fingerprints, "in the cache")
        row_count = count_of(cache.clear(fingerprint), "row")
        print_lines(f"{cache.path}: {row_count} removed")


def _check_name(name: str, present: list[str], where: str) -> None:
    """Refuse a model or a collection that is not present."""
    if name not in present:
        remedy = did_you_mean(name, present)
        raise InputError(Problem(name, f"is not {where}", remedy))


def _open_server(url: str, key: str | None) -> closing[Connection]:
    """Connect to a Qdrant server.

    Args:
        url: of the server.
        key: the environment variable that holds its key; None: it needs none.

    Raises:
        InputError: the variable is not set, or the URL is not that of a server.
    """
    from retrievers.stores.connection import Connection
    from retrievers.stores.options import SERVER_SCHEMES, StoreOptions

    if not str(expand(url)).startswith(SERVER_SCHEMES):
        problem = "is not the URL of a server"  # which may hold a password
        remedy = "http://…, https://…, grpc://… or grpcs://…"
        raise InputError(Problem("--store", problem, remedy))
    if key is not None and not os.environ.get(key):
        raise InputError(Problem("--key", f"{key} is not set in the environment"))
    options = StoreOptions(location=url, api_key=os.environ[key] if key else None)
    return closing(Connection(options))


VectorsUrl = Annotated[
    str,
    typer.Option(
        "--to",
        metavar="URL",
        help="A folder, or a URL that fsspec opens: s3://…, gs://…",
    ),
]
EncoderCost = Annotated[
    float | None,
    typer.Option(
        min=0,
        metavar="USD",
        help=(
            "Most dollars that each encoder may spend on documents, "
            "and again on queries."
        ),
    ),
]
RayAddress = Annotated[
    str | None,
    typer.Option(help="Address of the Ray cluster; default: one on this machine."),
]


def embed(
    *,
    experiment: shared.ExperimentFile,
    to: VectorsUrl,
    address: RayAddress = None,
    max_cost: EncoderCost = None,
    no_code: shared.NoCode = False,
    quiet: shared.QuietOption = False,
    as_json: shared.JsonOutput = False,
) -> None:
    """Embed an experiment's texts on a Ray cluster, and write the vectors to a place
    that every machine can read and write.
    """  # noqa: D205
    from harness.running.ray_embedding import RaySettings
    from harness.running.ray_embedding import embed_on_ray as embed_texts

    settings = RaySettings(address, max_cost, not no_code, progress=not quiet)
    tasks = embed_texts(experiment, to, settings)
    lines = [
        f"{task.encoder}, {task.role}: {count_of(task.texts, 'text')}, "
        f"{task.present:,} there already"
        for task in tasks
    ]
    print_result(
        [] if quiet else lines,
        as_json=as_json,
        embedded=[task._asdict() for task in tasks],
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
        f"{model.rows:>10,} new  {model.role:<8}  {model.fingerprint}, "
        f"{model.known:,} there already"
        for model in imported
    ]
    rows = [model._asdict() for model in imported]
    print_result(lines, as_json=as_json, imported=rows)
