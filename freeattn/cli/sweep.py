"""`freeattn sweep`: quantities of the laws of many layers, as a table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import click

import freeattn
from freeattn import report
from freeattn.cli.completion import complete_files, complete_grid
from freeattn.cli.files import output_files
from freeattn.cli.grids import layers, read_grid, read_records
from freeattn.cli.group import Command, say
from freeattn.cli.options import (
    LAYER_FIELDS,
    draws_option,
    force_option,
    json_option,
    plot_option,
    preset_argument,
    run_options,
    seed_option,
    spec_options,
)
from freeattn.cli.progress import progress_of
from freeattn.cli.records import dump_json, write_csv
from freeattn.cli.spec_text import preset_name
from freeattn.cli.warnings import warn_of_dominated_rows
from freeattn.errors import InputError, did_you_mean
from freeattn.report.writing import OutputFile

__all__ = ["sweep_command"]

_EPILOG = """\b
Examples:
  freeattn sweep bert-base --n-tokens 512 --over beta=0.5:2:0.25
  freeattn sweep bert-base --n-tokens 512 --over beta=0.5,1 \\
    --over d_key=32,64,128 --csv widths.csv
  freeattn sweep bert-base --over n_tokens=128:768:64 \\
    --quantity ridge_error:noise=0.1
  freeattn sweep bert-base --n-tokens 512 --over beta=0.5:2:0.25 \\
    --over d_key=32,64,128 --plot mean.pdf
  freeattn sweep --records layers.csv --draws 10 --workers all \\
    --store sweep.db --parquet layers.parquet

\b
Quantities: mean, edges, bands, atom, moments[:order=K],
degrees_of_freedom, ridge_error[:penalty=X,noise=Y], best_penalty,
flow_loss:t=T, arrival_time:level=L, condition_number, stable_rank,
participation_ratio, entropy_rank, rank_fraction, spike_gap,
leading_singular_value, attention_stable_rank, parameter_count.

\b
Exit codes: 0 done, 1 every combination has an error, 2 bad input.
"""
_DEFAULT = ("mean", "edges", "atom")
_NOT_DRAWN = ("bands", "passed", "error")  # lists, truth values, texts


@click.command("sweep", cls=Command, epilog=_EPILOG, short_help="Quantities of many laws, as a table.")
@preset_argument
@spec_options
@click.option("--over", multiple=True, metavar="FIELD=VALUES", shell_complete=complete_grid(LAYER_FIELDS),
              help="A,B,… or FIRST:LAST:STEP; all combinations.")
@click.option("--records", metavar="FILE", shell_complete=complete_files,
              help="In place of --over: a CSV file of combinations, fields in line one.")
@click.option("--quantity", multiple=True, metavar="NAME[:ARG=X,…]", help="What is told (default: mean, edges, atom).")
@draws_option(0, 0, "Simulated draws for each layer, compared with its law as by verify.")
@seed_option("Of the draws; the same for each layer.")
@run_options
@json_option
@click.option("--csv", metavar="FILE", help="Write the table.", shell_complete=complete_files)
@click.option("--parquet", metavar="FILE", help="Write the table (needs the extra 'parquet').",
              shell_complete=complete_files)
@plot_option("Draw one column: a line over one field, a map over two; png, pdf or svg (needs the extra 'plot').")
@click.option("--plot-column", metavar="NAME", help="The column drawn (default: the first of the first quantity).")
@force_option
@click.pass_context
def sweep_command(
    context: click.Context, /, preset: str | None, over: tuple[str, ...], records: str | None,
    quantity: tuple[str, ...], draws: int, seed: int, workers: int | None, store: str | None, as_json: bool,
    csv: str | None, parquet: str | None, plot: str | None, plot_column: str | None, force: bool, **options: Any,
) -> None:
    """Quantities of the laws of many layers: one row for each combination of values.

    The layer is SPEC (a preset or a config.json) with options in place of its values, or options alone, and the
    values of --over or --records put in. A combination that is not allowed, or has no law, is a row with the text
    of its error.
    With a store, what is finished is kept: an interrupted sweep goes on where it stopped, and an extended
    one computes what is new.
    """
    files = _checked_files(force, {"csv": csv, "parquet": parquet, "plot": plot})
    points = _points(preset, options, over, records)
    fields = tuple(points[0].values)
    if plot is not None and len(fields) > 2:
        raise InputError("plot", plot, f"a sweep over one field or two, not {', '.join(fields)}")
    drawn = _drawn(plot, plot_column, quantity or _DEFAULT, draws)
    kept = None if store is None else freeattn.Store(store)
    with progress_of("computing", len(points)) as progress:
        table = freeattn.sweep(
            points, quantities=quantity or _DEFAULT, draws=draws, seed=seed, workers=workers, store=kept,
            progress=progress,
        )
    _say_what_is_wrong(table, points)
    _write_tables(files, table)
    if as_json:
        click.echo(dump_json({"version": freeattn.__version__, "preset": preset_name(preset), **table.to_dict()}))
    else:
        click.echo(report.render(_table(table, preset)), nl=False)
    failed = len(table.errors) == len(table.rows)
    if "plot" in files and not failed:
        picture = report.plot_sweep(table, drawn, *fields)  # last: what cannot be drawn costs no table
        with files["plot"].writing() as path:
            report.save_figure(picture, path)
    context.exit(1 if failed else 0)


def _checked_files(force: bool, given: Mapping[str, str | None]) -> dict[str, OutputFile]:
    """The files, after a test that what writes them is installed."""
    files = output_files(force, given)
    if "parquet" in files:
        report.check_parquet()
    if "plot" in files:
        report.check_plot_file(files["plot"].given)
    return files


def _points(
    preset: str | None, options: Mapping[str, Any], over: tuple[str, ...], records: str | None
) -> Sequence[Any]:
    if bool(over) == (records is not None):
        raise InputError("over", ", ".join(over) or "(not given)", "either --over beta=0.5:2:0.25 or --records FILE")
    return layers(preset, options, read_grid(over) if records is None else read_records(records))


def _say_what_is_wrong(table: Any, points: Sequence[Any]) -> None:
    if table.of_laws:
        warn_of_dominated_rows([point.spec for point in points if point.spec is not None])
    if table.errors:
        has = "has" if len(table.errors) == 1 else "have"
        say("note", f"{len(table.errors)} of {len(table.rows)} combinations {has} an error; the column error tells it")


def _write_tables(files: Mapping[str, OutputFile], table: Any) -> None:
    if "csv" in files:
        with files["csv"].writing() as path:
            write_csv(path, table.columns, [[_cell(row[name]) for name in table.columns] for row in table.rows])
    if "parquet" in files:
        with files["parquet"].writing() as path:
            report.write_parquet(path, table.columns, table.rows)


def _drawn(plot: str | None, column: str | None, quantities: Sequence[str], draws: int) -> str:
    """The column of the picture; "" without one.

    Raises:
        InputError: for one that the table will not have, or that holds no numbers; for quantities as `sweep`.
    """
    told = freeattn.Sweep.told_columns(quantities, draws)
    if plot is None:
        if column is not None:
            raise InputError("plot_column", column, "nothing without --plot FILE")
        return ""
    numbers = [name for name in told if name not in _NOT_DRAWN]
    if not numbers:
        raise InputError("plot", plot, f"a quantity of numbers; {', '.join(quantities)} has none")
    if column is not None and column not in numbers:
        raise InputError("plot_column", column, f"one of {', '.join(numbers)}{did_you_mean(column, numbers)}")
    return column or numbers[0]


def _table(table: Any, preset: str | None) -> Any:
    """One row for each layer; the column of errors when there are some."""
    drawn = f", {table.draws} draws each, seed {table.seed}" if table.draws else ""
    columns = [name for name in table.columns if name != "error" or table.errors]
    rows = [[_text(row[name]) for name in columns] for row in table.rows]
    return report.rows_table(f"{preset or 'Attention'}: {len(rows)} layers{drawn}", columns, rows, left=0)


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_text(item) for item in value)
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def _cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list) else value
