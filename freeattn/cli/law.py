"""`freeattn law`: the limiting law of an architecture, in numbers."""

from __future__ import annotations

from typing import Any

import click

import freeattn
from freeattn import report
from freeattn.cli.files import output_files
from freeattn.cli.group import Command
from freeattn.cli.options import (
    axis_option,
    count_option,
    file_options,
    json_option,
    name_option,
    preset_argument,
    spec_options,
)
from freeattn.cli.progress import progress_of
from freeattn.cli.records import dump_json, law_record, write_csv
from freeattn.cli.spec import build_layer
from freeattn.cli.spec_text import preset_name
from freeattn.cli.warnings import warn_of_dominated_rows
from freeattn.report.numbers import DOUBLE_DIGITS

__all__ = ["law_command"]

_EPILOG = """\b
Examples:
  freeattn law bert-base --n-tokens 512
  freeattn law bert-base --n-tokens 512 --digits 40 --json
  freeattn law falcon-7b --n-tokens 2048 --csv law.csv --plot law.png
  freeattn law path/to/config.json --n-tokens 512 --json
  freeattn law --n-tokens 512 --d-model 768 --n-heads 12 --d-key 64 \\
    --output attention --beta 1/2
"""
_MOST_DIGITS = 2000  # as SpectralLaw
_MOST_POINTS = 10_000_000


@click.command("law", cls=Command, epilog=_EPILOG, short_help="The limiting law of an architecture, in numbers.")
@preset_argument
@spec_options
@count_option("digits", DOUBLE_DIGITS, 1, _MOST_DIGITS, "Significant digits; JSON: strings beyond 15.", "K")
@json_option
@file_options("Write columns x, density, cdf.", "Draw the density; png, pdf or svg (needs the extra 'plot').")
@count_option("points", 1000, 10, _MOST_POINTS, "Lines of the CSV file, denser near the edges.")
@name_option("route", ("transform", "pencil"), "How the law is computed (default: a closed law where there is one).")
@click.option("--normalized", is_flag=True, help="CSV and plot of the law divided by its mean.")
@axis_option
def law_command(
    preset: str | None, digits: int, as_json: bool, csv: str | None, plot: str | None, force: bool,
    points: int, route: str | None, normalized: bool, log: bool | None, **options: Any,
) -> None:
    """The limiting law of the squared singular values of the centered output.

    The architecture is SPEC: a preset (see freeattn architectures) or the config.json of a model, which may
    have fields of its own, NAME:FIELD=VALUE,…, with options in place of its other values; or options alone.
    Prints the ratios, the mean, atoms, bands with their edges and the first four moments, of the law as it is
    and divided by its mean; with --finite-size next to those of the limit.
    """
    files = output_files(force, {"csv": csv, "plot": plot})
    if "plot" in files:
        report.check_plot_file(files["plot"].given)
    layer = build_layer(preset, options)  # a bad one is refused before numpy and sympy load
    with progress_of("computing"):
        law = freeattn.law(layer.spec, route=route)
        limit = freeattn.law(layer.spec.with_finite_size(False), route=route) if layer.spec.finite_size else None
        if "csv" in files:
            with files["csv"].writing() as path:
                rows = report.density_rows(law.normalized() if normalized else law, points)
                write_csv(path, ("x", "density", "cdf"), rows)
        if "plot" in files:
            with files["plot"].writing() as path:
                picture = law.plot(log=log, normalized=normalized, title=report.law_title(layer.spec))
                report.save_figure(picture, path)
        if as_json:
            text = dump_json(law_record(law, preset_name(preset), digits, layer.config, limit)) + "\n"
        else:
            text = report.render(*report.law_tables(law, preset, digits, limit), *layer.lines)
    warn_of_dominated_rows([layer.spec])
    click.echo(text, nl=False)
