"""The page of many results: one HTML file beside their folders, which needs no network."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from harness.overview.listing import Entry, Listing, listing, settings_of
from harness.overview.panels import DataGroup, axis_of, drawing, groups, marks_of
from harness.pages import OVERVIEW, embedded, is_overview, policy
from harness.records import create
from harness.report.html_page import environment, source, styled
from harness.report.text import visible
from harness.report.theme import Mark
from retrievers.errors import InputError, Problem
from retrievers.opening import writing

NAME = "index.html"


def write_index(place: Path) -> Listing:
    """Write index.html into a folder of results folders.

    Raises:
        InputError: it cannot be written, or there is an index.html that is not one of ours.
    """
    path = place / NAME
    aside = place / f".{NAME}.{os.getpid()}"
    with writing(path):
        if path.exists() and not is_overview(path):
            raise InputError(Problem(str(path), "is not one of ours, and is not written over", "move it elsewhere"))
        read = listing(place)
        with create(aside) as file:
            file.write(page(read, place.resolve().name))
        aside.replace(path)  # at once: two runs may end together
    return read


def page(read: Listing, place: str) -> str:
    """Return the page as one HTML text.

    Args:
        read: what stands in it.
        place: the name of the folder that holds the results, as commands would name it.
    """
    env = _templates()
    drawn = marks_of(read.entries)
    shown_groups = groups([entry for entry in read.entries if entry.standings])
    style = styled(env) + _source(env, "index.css")
    code = (source("scripts/start.js"), source("scripts/sort.js"), _source(env, "index.js"))
    script = Markup("".join(['"use strict";\n(() => {\n', *code, "})();\n"]))  # noqa: S704 - ours
    return env.get_template("index.html").render(
        entries=read.entries,
        before={entry.folder: _before(read.entries, place) for place, entry in enumerate(read.entries)},
        place=place,
        unread=read.unread,
        groups=shown_groups,
        data_sets=len(groups(read.entries)),
        repeated=any(panel.repeated for group in shown_groups for panel in group.panels),
        pictures=_pictures(shown_groups, drawn),
        drawn=drawn,
        generator=Markup(OVERVIEW),  # noqa: S704 - ours
        style=style,
        script=script,
        policy=policy([script], str(style)),
        data=Markup(embedded(_shown({"place": place, "folders": [_facts(entry, drawn) for entry in read.entries]}))),  # noqa: S704
    )


def _before(entries: Sequence[Entry], place: int) -> str:
    """The run that came before one on the same data by the same measure; "" for none."""
    one = entries[place]
    key = (one.manifest.dataset.digest, one.primary)
    scored = (entry for entry in entries[place + 1 :] if entry.standings)
    earlier = (entry.folder for entry in scored if (entry.manifest.dataset.digest, entry.primary) == key)
    return next(earlier, "")


@cache
def _templates() -> jinja2.Environment:
    """Those of this page, and those of the report beside them."""
    loaders = [jinja2.PackageLoader("harness.overview"), jinja2.PackageLoader("harness.report")]
    return environment().overlay(loader=jinja2.ChoiceLoader(loaders))


def _pictures(shown_groups: Sequence[DataGroup], drawn: Mapping[str, Mark]) -> dict[tuple[int, int], Markup]:
    """(Place of the data set, place of the panel) -> its SVG; panels of one measure share an axis."""
    panels = [panel for group in shown_groups for panel in group.panels]
    axes = {name: axis_of([panel for panel in panels if panel.measure == name]) for name in {p.measure for p in panels}}
    return {
        (i, j): drawing(panel, drawn, axes[panel.measure])
        for i, group in enumerate(shown_groups)
        for j, panel in enumerate(group.panels)
    }


def _facts(entry: Entry, drawn: Mapping[str, Mark]) -> dict[str, Any]:
    """What the script reads of one folder; scores rounded to a millionth."""
    manifest, dataset = entry.manifest, entry.manifest.dataset
    keys = list(drawn)
    scored = entry.scored
    values = {} if scored is None else scored.values
    return {
        "folder": entry.folder,
        "reported": entry.reported,
        "primary": entry.primary,
        "digest": dataset.digest,
        "facts": {
            "experiment": manifest.name,
            "started": manifest.started,
            "data, digest": dataset.digest,
            "data, documents": f"{dataset.documents:,}",
            "data, queries scored": f"{entry.queries:,}",
            **settings_of(manifest),
            **{f"version of {name}": version for name, version in manifest.versions.items()},
            "commit": manifest.git.commit + (" (changed)" if manifest.git.dirty else ""),
            "failed": ", ".join(manifest.failed),
        },
        "retrievers": [
            {
                "name": one.retriever,
                "key": keys.index(one.identity),
                "mean": one.mean,
                "values": [None if value is None else round(value, 6) for value in values.get(one.retriever, ())],
            }
            for one in entry.standings
        ],
        # A list: a script would put the keys of an object that are numbers in another order.
        "queries": [] if scored is None else [[*query] for query in scored.queries.items()],
        "weights": None if scored is None else scored.weights,
    }


def _shown(value: Any) -> Any:
    """JSON with every text made visible, keys too."""
    if isinstance(value, dict):
        return {visible(key): _shown(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_shown(one) for one in value]
    return visible(value) if isinstance(value, str) else value


def _source(env: jinja2.Environment, name: str) -> Markup:
    """The text of a file of ours, as it is."""
    assert env.loader is not None
    return Markup(env.loader.get_source(env, name)[0])  # noqa: S704 - ours
