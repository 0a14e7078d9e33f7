"""Tables that declare several retrievers in one.

`variants` has further encoders of the same model, `derive` smaller vectors of the same
encoder. Each becomes a table of its own, which `parse` checks like those of the file.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

from harness.experiment.raw_table import RawTable, RetrieverEntry
from harness.experiment.vector_configs import DerivedVectorsConfig
from retrievers.errors import InputError
from retrievers.options.tables import validated

DENSE_KIND = "dense"
"""The kind whose vectors can be cut and quantised."""
UNSHARED_KEYS = ("variants", "derive")
"""Keys of a table that its variants do not have."""


class _EncoderVariant(NamedTuple):
    """A further retriever by the same model."""

    key: str
    """Behind the name of the base."""
    encoder: RawTable
    """The options in place of those of the base's encoder."""


class _Compression(NamedTuple):
    """How the vectors of a base are made smaller."""

    dimensions: int | None
    """None: vectors are not cut."""
    quantization: str | None
    """None: numbers stay as they are."""

    @property
    def is_none(self) -> bool:
        """Whether the vectors are those of the base."""
        return self.dimensions is None and self.quantization is None

    def apply(self, base: RawTable) -> RawTable:
        """Return the table of the retriever that is derived from a base."""
        name = base.get("name")
        derived = base.with_options(derived_from=name)
        if self.dimensions is not None:
            derived = derived.with_options(dimensions=self.dimensions)
        if self.quantization is not None:
            derived = derived.with_options(quantization=self.quantization)
        labels = [str(label) for label in self if label is not None]
        return derived.with_options(name="-".join([f"{name}", *labels]))


def expand_variants(entries: Sequence[object]) -> Iterator[RetrieverEntry]:
    """Yield the tables of `[[retrievers]]` with their variants.

    >>> derive = {"dimensions": [64], "quantization": ["int8"]}
    >>> base = {"name": "m", "encoder": {"kind": "hashing"}, "derive": derive}
    >>> [entry.name for entry in expand_variants([base])]
    ['m', 'm-int8', 'm-64', 'm-64-int8']
    >>> variants = {"plain": {"query_prompt": ""}}
    >>> base = {"name": "m", "encoder": {"model": "x"}, "variants": variants}
    >>> plain = list(expand_variants([base]))[1]
    >>> plain.where
    'retrievers[0].variants.plain'
    >>> plain.table.options
    {'name': 'm-plain', 'encoder': {'model': 'x', 'query_prompt': ''}}
    """
    for number, raw_entry in enumerate(entries):
        entry = RetrieverEntry(f"retrievers[{number}]", RawTable.read(raw_entry))
        encoder = entry.table and entry.table.table("encoder")
        if entry.table and encoder:
            yield from _expand_table(entry.where, entry.table, encoder)
        else:
            yield entry


def _expand_table(
    where: str, table: RawTable, encoder: RawTable
) -> Iterator[RetrieverEntry]:
    """Yield the table itself, then one for each of its variants and compressions.

    A variant has another encoder; a compression has the same vectors, cut or quantized.
    """
    variants = _read_variants(table)
    derive = _read_derive(table)
    # A key with an error stays in the table, whose check reports it.
    used_keys = []
    if variants:
        used_keys.append("variants")
    if derive:
        used_keys.append("derive")
    base = table.without(*used_keys)
    yield RetrieverEntry(where, base)
    shared = base.without(*UNSHARED_KEYS)
    for variant in variants:
        variant_table = shared.with_options(
            name=f"{base.get('name')}-{variant.key}",
            encoder=encoder.overlaid(variant.encoder).options,
        )
        yield RetrieverEntry(f"{where}.variants.{variant.key}", variant_table)
    if derive is None:
        return
    sizes = (None, *derive.dimensions)
    formats = (None, *derive.quantization)
    for compression in map(_Compression._make, product(sizes, formats)):
        if not compression.is_none:
            derived_table = compression.apply(shared)
            yield RetrieverEntry(where, derived_table.with_options(proof=derive.proof))


def _read_variants(table: RawTable) -> list[_EncoderVariant]:
    """Return the variants of a table; [] if it has none, or one has an error."""
    variants: list[_EncoderVariant] = []
    raw_variants = table.table("variants") or RawTable({})
    for key in raw_variants.options:
        encoder = raw_variants.table(key)
        if encoder is None or "kind" in encoder:
            return []
        variants.append(_EncoderVariant(key, encoder))
    return variants


def _read_derive(table: RawTable) -> DerivedVectorsConfig | None:
    """Return the derived vectors of a table; None if it has none, or an error."""
    is_dense = "kind" not in table or table.get("kind") == DENSE_KIND
    if "derive" not in table or not is_dense:
        return None
    try:
        return validated(DerivedVectorsConfig, table.get("derive"), "derive")
    except InputError:
        return None
