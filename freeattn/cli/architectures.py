"""`freeattn architectures`: the presets."""

from __future__ import annotations

import click

import freeattn
from freeattn import report
from freeattn.cli.completion import complete_spec
from freeattn.cli.group import say
from freeattn.cli.options import json_option
from freeattn.cli.records import dump_json, preset_record

__all__ = ["architectures_command"]

_EPILOG = """\b
Examples:
  freeattn architectures
  freeattn architectures llama
  freeattn architectures bert --json
"""


@click.command("architectures", epilog=_EPILOG, short_help="The presets and their sources.")
@click.argument("search", default="", shell_complete=complete_spec)
@json_option
def architectures_command(search: str, as_json: bool) -> None:
    """The presets, with widths, heads, sharing, ratios at their own token count and sources.

    SEARCH keeps the presets that contain it.
    """
    presets = freeattn.architectures(search)
    if as_json:
        records = [preset_record(preset) for preset in presets]
        click.echo(dump_json({"version": freeattn.__version__, "architectures": records}))
    elif presets:
        click.echo(report.render(*report.architectures_table(presets)), nl=False)
    else:
        say("note", f"no architecture matches {search}")


