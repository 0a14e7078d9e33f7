"""A group of commands whose help names each command with its whole first sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typer.core import TyperGroup

if TYPE_CHECKING:
    from typer._click import Context
    from typer._click.formatting import HelpFormatter

LONGEST = 1_000
"""Characters of a sentence: more than any has, so that none is cut."""


class WholeSentences(TyperGroup):
    """Wraps what a command is for, where Typer cuts it at the edge of the terminal."""

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the commands, each with the first sentence of its help."""
        rows = [
            (name, command.get_short_help_str(LONGEST))
            for name in self.list_commands(ctx)
            if (command := self.get_command(ctx, name)) is not None and not command.hidden
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
