"""Charts put together as Vega-Lite: Altair would copy every part several times and deep, most of a chart's time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt


def layered(*layers: Any, **settings: Any) -> dict[str, Any]:
    """Charts over one another, as `alt.layer` writes them.

    Args:
        layers: the charts, the undermost first.
        settings: of the whole, such as its width.
    """
    parts = [part(whole(layer)) for layer in layers]
    sources = [one["data"] for one in parts]
    if all(source == sources[0] for source in sources):
        parts = [{key: value for key, value in one.items() if key != "data"} for one in parts]
        settings["data"] = sources[0]
    return {"layer": parts, **dict(sorted(settings.items())), "$schema": alt.SCHEMA_URL}


def part(spec: Mapping[str, Any]) -> dict[str, Any]:
    """A chart as a part of another."""
    return {key: value for key, value in spec.items() if key != "$schema"}


def whole(chart: Any) -> dict[str, Any]:
    """A chart of Altair's as it stands alone; its look is `figures`'s."""
    return {key: value for key, value in chart.to_dict(validate=False).items() if key != "config"}
