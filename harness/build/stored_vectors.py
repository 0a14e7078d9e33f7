"""Vectors that were embedded elsewhere."""

from collections.abc import Iterable, Iterator

from harness.build.built_retriever import BuiltRetriever
from harness.experiment import StoredVectorsConfig
from retrievers.cache import Cache
from retrievers.files.parquet_vectors import import_vectors
from retrievers.types import Encoder, Role

ROLES: tuple[Role, ...] = ("document", "query")


def import_stored_vectors(
    vectors: StoredVectorsConfig | None,
    retrievers: Iterable[BuiltRetriever],
    cache: Cache,
) -> None:
    """Copy the vectors that `[vectors]` names into the cache.

    Raises:
        InputError: the files have vectors of none of these encoders.
    """
    if vectors is None:
        return
    fingerprints = {
        encoder.fingerprint_for(role)
        for encoder in _encoders(retrievers)
        for role in ROLES
    }
    if fingerprints:
        import_vectors(cache, vectors.location, sorted(fingerprints))


def _encoders(retrievers: Iterable[BuiltRetriever]) -> Iterator[Encoder]:
    for built in retrievers:
        for dense in built.dense_parts:
            yield dense.encoder
            if dense.reduction.native_encoder is not None:
                yield dense.reduction.native_encoder
