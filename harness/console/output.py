"""The two streams of a terminal."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console, RenderableType


def print_warnings(*lines: str) -> None:
    """Print messages, on standard error."""
    for line in lines:
        typer.echo(line, err=True)


def print_json(**values: object) -> None:
    """Print one object, with numbers in full precision."""
    typer.echo(json.dumps(_plain(values), ensure_ascii=False))


def _plain(value: Any) -> Any:
    """A value as in JSON.

    Records become objects; NaN, which JSON lacks, becomes null.
    """
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return None if isinstance(value, float) and value != value else value


def print_result(lines: Iterable[str], *, as_json: bool, **values: object) -> None:
    """Print a result: lines for people, or the same as one object.

    Args:
        lines: for people.
        as_json: whether the object is printed.
        values: of the object.
    """
    if as_json:
        print_json(**values)
    else:
        print_lines(*lines)


def print_csv(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print rows with the heads and the escapes of a results folder's CSV files.

    Args:
        rows: one or more, all with the keys of the first.
    """
    from harness.records import escape_cell

    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        escaped_row = {
            key: escape_cell(cell) if isinstance(cell, str) else cell
            for key, cell in row.items()
        }
        writer.writerow(escaped_row)
    typer.echo(out.getvalue(), nl=False)


def print_lines(*lines: str) -> None:
    """Print lines, on standard output."""
    for line in lines:
        typer.echo(line)


def print_to_fit(
    build: Callable[..., Iterable[RenderableType]], *args: object, **options: object
) -> None:
    """Print the parts that `build` makes for the width of the terminal.

    Args:
        build: is called with `args`, `options` and the `width` in cells.
        args: of `build`.
        options: of `build`.
    """
    console = open_console()
    for part in build(*args, width=console.width, **options):
        _print_part(console, part)


def _print_part(console: Console, part: RenderableType) -> None:
    """Print a part; a text that must not be wrapped is a command, and stays a line."""
    from rich.text import Text

    is_command = isinstance(part, Text) and part.no_wrap is True
    console.print(part, soft_wrap=is_command)


def open_console(*, stderr: bool = False) -> Console:
    """A console on one of the two streams."""
    from rich.console import Console

    return Console(stderr=stderr)


TEXT_WIDTH = 100
"""Characters of a line of `rendered_text`, if no width is given."""


def rendered_text(
    build: Callable[..., Iterable[RenderableType]],
    *args: object,
    width: int = TEXT_WIDTH,
) -> str:
    """The parts that `build` makes for a terminal of this width, as plain text."""
    from rich.console import Console

    console = Console(width=width, color_system=None, force_terminal=False)
    with console.capture() as captured:
        for part in build(*args, width=width):
            _print_part(console, part)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())
