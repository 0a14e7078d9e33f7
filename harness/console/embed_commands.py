"""`harness embed` and `harness cache import`: vectors made on many machines, as Parquet files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from harness.console.printing import console_of, print_result
from harness.console.shared_options import ExperimentFile, Json, MaxCost, NoCode, Quiet, refuse

if TYPE_CHECKING:
    from harness.running.embed_shards import EncoderShare
    from retrievers.vector_shards import Imported

To = Annotated[str, typer.Option("--to", metavar="URL", help="A folder, or s3://…, gs://…, what fsspec opens.")]
ShardOption = Annotated[
    str | None, typer.Option("--shard", metavar="I/N", help="The I-th of N equal shares; left out, all of it.")
]
Engine = Annotated[Literal["none", "ray"], typer.Option(help="ray: all shares at once, on a Ray cluster.")]
Address = Annotated[str | None, typer.Option(help="Of the Ray cluster; left out, one on this machine.")]


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
    """Embed an experiment's texts, or a share of them, and write the vectors where every machine can read them."""
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


def import_parts(
    url: Annotated[str, typer.Argument(metavar="URL", help="Where `harness embed` wrote.")],
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
        f"{share.encoder}, {share.role}: {texts:,} texts, {present:,} there already, {share.cached:,} from the cache; "
        f"files written: {parts:,}; tokens: {share.tokens:,}; ${share.usd:.4f}"
    )
