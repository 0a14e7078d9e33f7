"""One table that stands for several."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from harness.experiment.vector_configs import DerivedVectorsConfig
from retrievers.errors import InputError
from retrievers.options.tables import validated

DENSE_KIND = "dense"
"""The kind whose vectors can be cut and quantised."""
UNSHARED_KEYS = ("variants", "derive")
"""Keys of a table that its variants do not have."""


class RetrieverEntry(NamedTuple):
    """A retriever's table before it is checked."""

    where: str
    """Its place in the file, such as `retrievers[0]`."""
    table: Any
    """Any value, as it is in the file."""


def expand_variants(entries: Sequence[object]) -> Iterator[RetrieverEntry]:
    """Yield the tables of `[[retrievers]]` with their variants.

    >>> derive = {"dimensions": [64], "quantization": ["int8"]}
    >>> base = {"name": "m", "encoder": {"kind": "hashing"}, "derive": derive}
    >>> [entry.table["name"] for entry in expand_variants([base])]
    ['m', 'm-int8', 'm-64', 'm-64-int8']
    >>> variants = {"plain": {"query_prompt": ""}}
    >>> base = {"name": "m", "encoder": {"model": "x"}, "variants": variants}
    >>> plain = list(expand_variants([base]))[1]
    >>> plain.where
    'retrievers[0].variants.plain'
    >>> plain.table
    {'name': 'm-plain', 'encoder': {'model': 'x', 'query_prompt': ''}}
    """
    for number, entry in enumerate(entries):
        where = f"retrievers[{number}]"
        if isinstance(entry, Mapping) and isinstance(entry.get("encoder"), Mapping):
            yield from _expand_table(entry, where)
        else:
            yield RetrieverEntry(where, entry)


def _expand_table(table: Mapping[str, Any], where: str) -> Iterator[RetrieverEntry]:
    variants = _read_variants(table)
    derive = _read_derive(table)
    # A key with an error stays in the table, whose check reports it.
    used_keys = []
    if variants:
        used_keys.append("variants")
    if derive:
        used_keys.append("derive")
    base = {key: option for key, option in table.items() if key not in used_keys}
    yield RetrieverEntry(where, base)
    shared = {key: option for key, option in base.items() if key not in UNSHARED_KEYS}
    name = base.get("name")
    for variant, encoder_options in variants.items():
        encoder = {**table["encoder"], **encoder_options}
        variant_table = {**shared, "name": f"{name}-{variant}", "encoder": encoder}
        yield RetrieverEntry(f"{where}.variants.{variant}", variant_table)
    if derive is None:
        return
    sizes = (None, *derive.dimensions)
    formats = (None, *derive.quantization)
    for dimensions, quantization in product(sizes, formats):
        if dimensions is not None or quantization is not None:
            derived = _derived_options(name, dimensions, quantization)
            derived_table = {**shared, **derived, "proof": derive.proof}
            yield RetrieverEntry(where, derived_table)


def _read_variants(table: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """Return the variants of a table; empty if they have an error."""
    variants = table.get("variants")
    if not isinstance(variants, Mapping):
        return {}
    for options in variants.values():
        if not isinstance(options, Mapping) or "kind" in options:
            return {}
    return variants


def _read_derive(table: Mapping[str, Any]) -> DerivedVectorsConfig | None:
    """Return the derived vectors of a table; None if it has none, or an error."""
    if "derive" not in table or table.get("kind", DENSE_KIND) != DENSE_KIND:
        return None
    try:
        return validated(DerivedVectorsConfig, table["derive"], "derive")
    except InputError:
        return None


def _derived_options(
    base_name: Any, dimensions: int | None, quantization: str | None
) -> dict[str, Any]:
    """Return the options in which a derived retriever differs from its base."""
    options: dict[str, Any] = {"name": f"{base_name}", "derived_from": base_name}
    if dimensions is not None:
        options["name"] += f"-{dimensions}"
        options["dimensions"] = dimensions
    if quantization is not None:
        options["name"] += f"-{quantization}"
        options["quantization"] = quantization
    return options
