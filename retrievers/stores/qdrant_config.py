"""How a collection of Qdrant is built."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from retrievers.ragged import VectorForm
from retrievers.stores import points
from retrievers.stores.options import (
    MIN_FULL_SCAN_KB,
    MIN_INDEXING_KB,
    Quantization,
    StoreOptions,
)

if TYPE_CHECKING:
    from qdrant_client import models


def vectors_arguments(
    form: VectorForm, dimensions: int, *, on_disk: bool | None
) -> dict[str, Any]:
    """Return the arguments of `create_collection` for the form of its vectors.

    Args:
        form: of the vectors.
        dimensions: of each; sparse vectors need none.
        on_disk: where the vectors are; None, or of sparse ones, the engine decides.
    """
    from qdrant_client import models

    if form == "sparse":
        sparse_params = models.SparseVectorParams()
        return {
            "vectors_config": {},
            "sparse_vectors_config": {points.SPARSE_VECTOR_NAME: sparse_params},
        }
    multivector_config = None
    if form == "multivector":
        multivector_config = models.MultiVectorConfig(
            comparator=models.MultiVectorComparator.MAX_SIM
        )
    return {
        "vectors_config": models.VectorParams(
            size=dimensions,
            distance=models.Distance.DOT,  # of unit vectors: `QdrantStore` says why
            on_disk=on_disk,
            multivector_config=multivector_config,
        )
    }


def index_arguments(options: StoreOptions) -> dict[str, Any]:
    """Return the arguments for a server's index and shards; empty in this process.

    A server builds graphs and codes only in segments above a threshold, and searches a
    graph only above another. With `m` or `quantization` both are the lowest unless they
    are given, so that small collections are indexed, too. Without `m` there is no
    graph.
    """
    from qdrant_client import models

    if not options.on_server:
        return {}
    full_scan = options.full_scan_threshold
    indexing = options.indexing_threshold
    if options.approximate:
        full_scan = full_scan or MIN_FULL_SCAN_KB
        indexing = indexing or MIN_INDEXING_KB
    return {
        "hnsw_config": models.HnswConfigDiff(
            # `QdrantStore.finish` sets m when all points are there.
            m=0 if options.defer_graph else options.m,
            ef_construct=options.ef_construct,
            full_scan_threshold=full_scan,
        ),
        "optimizers_config": models.OptimizersConfigDiff(indexing_threshold=indexing),
        "quantization_config": _quantization_config(options.quantization),
        "shard_number": options.shards,
        "replication_factor": options.replication,
    }


def _quantization_config(
    quantization: Quantization | None,
) -> models.QuantizationConfig | None:
    """Return a server's configuration of compressed vectors; None if there are none.

    `edge` has the same numbers, and `options.QUANTIZATION_BITS` follows from them.
    """
    from qdrant_client import models

    scalar = models.ScalarQuantizationConfig(
        type=models.ScalarType.INT8, quantile=0.99, always_ram=True
    )
    product = models.ProductQuantizationConfig(
        compression=models.CompressionRatio.X16, always_ram=True
    )
    binary = models.BinaryQuantizationConfig(always_ram=True)
    configs: dict[str | None, models.QuantizationConfig] = {
        "scalar": models.ScalarQuantization(scalar=scalar),
        "product": models.ProductQuantization(product=product),
        "binary": models.BinaryQuantization(binary=binary),
    }
    return configs.get(quantization)
