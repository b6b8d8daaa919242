"""`freeattn reproduce`: published tables and figures, computed and simulated again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

import freeattn
from freeattn import report
from freeattn.cli.completion import complete_from
from freeattn.cli.files import output_files
from freeattn.cli.group import Command, say
from freeattn.cli.options import count_option, draws_option, file_options, json_option, run_options_from, seed_option
from freeattn.cli.progress import progress_of
from freeattn.cli.records import dump_json, table_rows, write_csv
from freeattn.errors import InputError
from freeattn.report.writing import OutputFile

__all__ = ["reproduce_command"]

FIGURES = ("table-d2", "fig-2a", "fig-2c", "fig-2d", "fig-3a", "fig-3b", "fig-d1")
_ALL = "all"
DEFAULT_STORE = "freeattn-reproduce.sqlite"
_EPILOG = f"""\b
Examples:
  freeattn reproduce fig-2d
  freeattn reproduce table-d2 --scale 8 --draws 4 --json
  freeattn reproduce fig-2a --scale 1 --draws 10 --plot fig-2a.pdf
  freeattn reproduce all --csv everything.csv --plot paper.png

\b
Figures: {', '.join(FIGURES)}, {_ALL}.

\b
Exit codes: 0 done, 1 a number is not the printed one, 2 bad input.
"""
_LARGEST_SCALE = 1_000_000


@click.command("reproduce", cls=Command, epilog=_EPILOG, short_help="Published tables and figures, simulated again.")
@click.argument("figure", required=False, shell_complete=complete_from((*FIGURES, _ALL)))
@draws_option(0, 0, "Draws of each layer; 0: as many as the figure needs.")
@seed_option("The same seed gives the same result.")
@count_option(
    "scale", 0, 0, _LARGEST_SCALE, "Divide all sizes by this, at the same ratios; 1: as published; 0: as the figure "
    "needs to take minutes.",
)
@run_options_from("all", DEFAULT_STORE)
@json_option
@file_options(
    "Write all quantities, one line each.",
    "Draw the figure; png, pdf or svg (needs the extra 'plot'); for all: one file each, -fig-2a added.",
)
@click.pass_context
def reproduce_command(
    context: click.Context, /, figure: str | None, draws: int, seed: int, scale: int, workers: int | None, store: str,
    as_json: bool, csv: str | None, plot: str | None, force: bool,
) -> None:
    """Compute a table or figure of arXiv 2610.10033 again: FIGURE is one of those below, or all.

    The theory, simulated softmax attention with intervals, and what is printed there, side by side. Layers
    that take long are drawn smaller, with the same ratios and the same law, unless --scale says otherwise;
    the table says which. Finished draws are kept: an interrupted run goes on where it stopped.
    """
    if figure not in (*FIGURES, _ALL):
        raise InputError("figure", figure or "(not given)", f"one of {', '.join((*FIGURES, _ALL))}")
    names = FIGURES if figure == _ALL else (figure,)
    files = output_files(force, {"csv": csv, **_plot_files(plot, names)})
    if plot is not None:
        report.check_plot_file(plot)
    kept = freeattn.Store(store)
    say("note", f"finished draws are kept in {kept.path}")
    if scale:
        _say_other_scales(names, scale)
    with progress_of("drawing", 0) as progress:
        found = freeattn.reproduce(
            names, draws=draws or None, seed=seed, scale=scale or None, workers=workers, store=kept, progress=progress
        )
    _write(files, found)
    if as_json:
        record = {"version": freeattn.__version__, "figures": [one.to_dict() for one in found]}
        click.echo(dump_json(record))
    else:
        parts = [part for one in found for part in report.reproduction_tables(one)]
        click.echo(report.render(*parts), nl=False)
    context.exit(0 if all(one.passed for one in found) else 1)


def _say_other_scales(names: Sequence[str], scale: int) -> None:
    """One line when the sizes of some layers cannot be divided by the scale that was asked for."""
    found = freeattn.other_scales(names, scale)
    if not found:
        return
    parts = []
    for name, by_scale in found.items():
        for taken, labels in by_scale.items():
            which = f" ({', '.join(labels)})" if len(by_scale) > 1 else ""
            parts.append(f"{taken} for {name}{which}")
    say("note", f"scale = {scale} does not divide all sizes; sizes are divided by {'; '.join(parts)}")


def _plot_files(plot: str | None, names: Sequence[str]) -> dict[str, str | None]:
    """One file for each figure: the name as given when there is one, else with the figure's before the suffix."""
    if plot is None or len(names) == 1:
        return {f"plot {name}": plot for name in names}
    path = Path(plot)
    return {f"plot {name}": str(path.with_name(f"{path.stem}-{name}{path.suffix}")) for name in names}


def _write(files: Mapping[str, OutputFile], found: Sequence[Any]) -> None:
    if "csv" in files:
        with files["csv"].writing() as path:
            write_csv(path, *table_rows([row for one in found for row in one.rows()]))
    for one in found:
        if f"plot {one.name}" in files:
            with files[f"plot {one.name}"].writing() as path:
                report.save_figure(report.plot_panels(one.panels(), one.title), path)
