"""How a server of Qdrant builds a collection."""

from __future__ import annotations

from typing import Any

from retrievers.ragged import VectorForm
from retrievers.stores import points
from retrievers.stores.options import MIN_FULL_SCAN_KB, MIN_INDEXING_KB, StoreOptions


def vectors_arguments(
    form: VectorForm, dimensions: int, *, on_disk: bool | None
) -> dict[str, Any]:
    """Return the arguments of `create_collection` that say what its vectors are."""
    from qdrant_client import models

    if form == "sparse":
        return {
            "vectors_config": {},
            "sparse_vectors_config": {
                points.SPARSE_VECTOR_NAME: models.SparseVectorParams()
            },
        }
    best = models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM)
    how: dict[str, Any] = {
        "on_disk": on_disk,
        "multivector_config": best if form == "multivector" else None,
    }
    return {
        "vectors_config": models.VectorParams(
            size=dimensions, distance=models.Distance.DOT, **how
        )
    }


def index_arguments(options: StoreOptions) -> dict[str, Any]:
    """Return the arguments that say how a server indexes, and where its shards are; nothing for this process.

    A server builds graphs and codes only in segments above a threshold, and searches a graph only above another: with
    `m` or `quantization` both are the lowest, so that what is asked for is done whatever the size.
    """
    from qdrant_client import models

    if not options.on_server:
        return {}
    full_scan, indexing = options.full_scan_threshold, options.indexing_threshold
    if options.approximate:
        full_scan, indexing = full_scan or MIN_FULL_SCAN_KB, indexing or MIN_INDEXING_KB
    links = 0 if options.defer_graph else options.m
    scalar = models.ScalarQuantizationConfig(
        type=models.ScalarType.INT8, quantile=0.99, always_ram=True
    )
    product = models.ProductQuantizationConfig(
        compression=models.CompressionRatio.X16, always_ram=True
    )
    quantized = {
        "scalar": models.ScalarQuantization(scalar=scalar),
        "product": models.ProductQuantization(product=product),
        "binary": models.BinaryQuantization(
            binary=models.BinaryQuantizationConfig(always_ram=True)
        ),
    }
    return {
        "hnsw_config": models.HnswConfigDiff(
            m=links, ef_construct=options.ef_construct, full_scan_threshold=full_scan
        ),
        "optimizers_config": models.OptimizersConfigDiff(indexing_threshold=indexing),
        "quantization_config": quantized.get(options.quantization or ""),
        "shard_number": options.shards,
        "replication_factor": options.replication,
    }
