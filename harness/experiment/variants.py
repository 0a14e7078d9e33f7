"""One table that stands for several."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from harness.experiment.vector_configs import DerivedVectorsConfig
from retrievers.errors import InputError
from retrievers.options.tables import validated

DENSE_KIND = "dense"
"""The kind whose vectors can be cut and quantised."""


def expand_variants(entries: Sequence[object]) -> Iterator[tuple[str, object]]:
    """Yield the tables of `[[retrievers]]`, written out, each with its place in the file.

    >>> base = {"name": "m", "encoder": {"kind": "hashing"}, "derive": {"dimensions": [64], "quantization": ["int8"]}}
    >>> [table["name"] for _, table in expand_variants([base])]
    ['m', 'm-int8', 'm-64', 'm-64-int8']
    >>> list(expand_variants([{"name": "m", "encoder": {"model": "x"}, "variants": {"plain": {"query_prompt": ""}}}]))[1]
    ('retrievers[0].variants.plain', {'name': 'm-plain', 'encoder': {'model': 'x', 'query_prompt': ''}})
    """
    for number, entry in enumerate(entries):
        place = f"retrievers[{number}]"
        if isinstance(entry, Mapping) and isinstance(entry.get("encoder"), Mapping):
            yield from _several(entry, place)
        else:
            yield place, entry


def _several(entry: Mapping[str, Any], place: str) -> Iterator[tuple[str, object]]:
    variants, derive = _variants(entry), _derive(entry)
    # What is wrong with one of the two keys stays in the table, whose check says what it is.
    base = {
        key: value
        for key, value in entry.items()
        if not (key == "variants" and variants) and not (key == "derive" and derive)
    }
    yield place, base
    shared = {
        key: value
        for key, value in base.items()
        if key not in ("color", "variants", "derive")
    }
    for name, options in variants.items():
        encoder = {**entry["encoder"], **options}
        yield (
            f"{place}.variants.{name}",
            {**shared, "name": f"{base.get('name')}-{name}", "encoder": encoder},
        )
    if derive is not None:
        for size, form in product(
            (None, *derive.dimensions), (None, *derive.quantization)
        ):
            if size is not None or form is not None:
                yield (
                    place,
                    {**shared, **_derived(base, size, form), "proof": derive.proof},
                )


def _variants(entry: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    variants = entry.get("variants")
    if not isinstance(variants, Mapping):
        return {}
    fit = all(
        isinstance(options, Mapping) and "kind" not in options
        for options in variants.values()
    )
    return variants if fit else {}


def _derive(entry: Mapping[str, Any]) -> DerivedVectorsConfig | None:
    if "derive" not in entry or entry.get("kind", DENSE_KIND) != DENSE_KIND:
        return None
    try:
        return validated(DerivedVectorsConfig, entry["derive"], "derive")
    except InputError:
        return None


def _derived(
    base: Mapping[str, Any], dimensions: int | None, quantization: str | None
) -> dict[str, Any]:
    """What the table of a derived retriever has of its own."""
    suffix = "".join(
        f"-{choice}" for choice in (dimensions, quantization) if choice is not None
    )
    choices = {"dimensions": dimensions, "quantization": quantization}
    named = {key: choice for key, choice in choices.items() if choice is not None}
    return {
        "name": f"{base.get('name')}{suffix}",
        "derived_from": base.get("name"),
        **named,
    }
