"""The page of many results: one HTML file beside their folders, which needs no network."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import jinja2
from markupsafe import Markup

from harness.overview.listing import Entry, Listing, listing
from harness.pages import OVERVIEW, is_overview, policy
from harness.records import create
from harness.report.html_page import environment, source, styled
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
    style = styled(env) + _source(env, "index.css")
    code = (source("scripts/start.js"), source("scripts/sort.js"), _source(env, "index.js"))
    script = Markup("".join(['"use strict";\n(() => {\n', *code, "})();\n"]))  # noqa: S704 - ours
    return env.get_template("index.html").render(
        entries=read.entries,
        compared=_compared(read.entries, place),
        unread=read.unread,
        data_sets=len({entry.manifest.dataset.digest for entry in read.entries}),
        generator=Markup(OVERVIEW),  # noqa: S704 - ours
        style=style,
        script=script,
        policy=policy([script], str(style)),
    )


def _compared(entries: Sequence[Entry], place: str) -> dict[str, str]:
    """Folder -> the command that compares it with the run before it on the same data by the same measure."""
    commands: dict[str, str] = {}
    earlier: dict[tuple[str, str], str] = {}
    for entry in reversed([entry for entry in entries if entry.standings]):
        key = entry.manifest.dataset.digest, entry.primary
        if before := earlier.get(key):
            commands[entry.folder] = shlex.join(["harness", "compare", f"{place}/{before}", f"{place}/{entry.folder}"])
        earlier[key] = entry.folder
    return commands


@cache
def _templates() -> jinja2.Environment:
    """Those of this page, and those of the report beside them."""
    loaders = [jinja2.PackageLoader("harness.overview"), jinja2.PackageLoader("harness.report")]
    return environment().overlay(loader=jinja2.ChoiceLoader(loaders))


def _source(env: jinja2.Environment, name: str) -> Markup:
    """The text of a file of ours, as it is."""
    assert env.loader is not None
    return Markup(env.loader.get_source(env, name)[0])  # noqa: S704 - ours
