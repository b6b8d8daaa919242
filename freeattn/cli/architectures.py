"""`freeattn architectures`: the presets."""

from __future__ import annotations

import importlib

import click

import freeattn
from freeattn import report
from freeattn.cli.completion import complete_spec
from freeattn.cli.group import Command
from freeattn.cli.options import json_option
from freeattn.cli.records import dump_json, preset_record
from freeattn.errors import InputError

__all__ = ["architectures_command"]

_EPILOG = """\b
Examples:
  freeattn architectures
  freeattn architectures llama
  freeattn architectures bert --json
"""


@click.command("architectures", cls=Command, epilog=_EPILOG, short_help="The presets and their sources.")
@click.argument("search", default="", shell_complete=complete_spec)
@json_option
def architectures_command(search: str, as_json: bool) -> None:
    """The presets, with widths, heads, sharing, ratios at their own token count and sources.

    SEARCH keeps the presets whose name, family or source contains it.
    """
    presets = freeattn.architectures(search)
    if not presets:
        near = importlib.import_module("freeattn.model.architectures").near_presets(search)  # --help loads no model
        every = f"{near}freeattn architectures lists all {len(freeattn.architectures())}"
        raise InputError("search", search, f"a text in the name, family or source of a preset ({every})")
    if as_json:
        records = [preset_record(preset) for preset in presets]
        click.echo(dump_json({"version": freeattn.__version__, "architectures": records}))
    else:
        click.echo(report.render(*report.architectures_table(presets)), nl=False)


