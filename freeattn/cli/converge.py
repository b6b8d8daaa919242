"""`freeattn converge`: how simulated attention approaches its law as n grows."""

from __future__ import annotations

from typing import Any

import click

import freeattn
from freeattn import report
from freeattn.cli.files import output_files
from freeattn.cli.group import Command
from freeattn.cli.options import (
    draws_option,
    file_options,
    json_option,
    preset_argument,
    run_options,
    seed_option,
    spec_options,
)
from freeattn.cli.progress import progress_of
from freeattn.cli.records import dump_json, table_rows, write_csv
from freeattn.cli.spec import build_layer
from freeattn.cli.spec_text import preset_name
from freeattn.model.written_numbers import exact_numbers

__all__ = ["converge_command"]

_EPILOG = """\b
Examples:
  freeattn converge bert-base --n-tokens 512 --sizes 128,256,512,1024
  freeattn converge --n-tokens 1024 --d-model 1024 --n-heads 4 --d-key 256 \\
    --output attention --betas 1,1.5,2
  freeattn converge bert-base --n-tokens 512 --draws 20 --workers all \\
    --store draws.db --plot rates.png

\b
Exit codes: 0 done, 1 the simulation failed its own test, 2 bad input.
"""
_DEFAULT_SIZES = "128,256,512,1024"


@click.command(
    "converge", cls=Command, epilog=_EPILOG, short_help="How simulated attention approaches its law as n grows."
)
@preset_argument
@spec_options
@click.option("--sizes", metavar="N,N,…", default=_DEFAULT_SIZES, show_default=True,
              help="Numbers of tokens; all widths are scaled with them.")
@click.option("--betas", metavar="X,X,…", help="Also measure, at every size, what the mean loses at these beta.")
@draws_option(10, 2, "Independent draws at each size.")
@seed_option("The same seed gives the same result.")
@run_options
@json_option
@file_options(
    "Write the distances, one line for each and each size.",
    "Draw the distances against n; png, pdf or svg (needs the extra 'plot').",
)
@click.pass_context
def converge_command(
    context: click.Context, /, preset: str | None, sizes: str, betas: str | None, draws: int, seed: int,
    workers: int | None, store: str | None, as_json: bool, csv: str | None, plot: str | None, force: bool,
    **options: Any,
) -> None:
    """Draw softmax attention at several sizes with fixed ratios and fit how its distances from the law fall.

    The architecture is SPEC: a preset (see freeattn architectures) or the config.json of a model, which may
    have fields of its own, NAME:FIELD=VALUE,…, with options in place of its other values; or options alone;
    its n_tokens says what its widths are widths of. Prints the distances between softmax, its Gaussian
    equivalent and the law with their rates n^-a, and a test of the simulation against a mean that is known
    exactly. With a store an interrupted run goes on where it stopped.
    """
    files = output_files(force, {"csv": csv, "plot": plot})
    if "plot" in files:
        report.check_plot_file(files["plot"].given)
    lengths: Any = exact_numbers("sizes", sizes)  # converge refuses what is no integer
    hot = () if betas is None else exact_numbers("betas", betas)
    spec = build_layer(preset, options).spec
    kept = None if store is None else freeattn.Store(store)  # a bad one is refused before anything is computed
    with progress_of("drawing", draws * len(lengths) * (1 + len(hot))) as progress:
        found = freeattn.converge(
            spec, lengths, draws, seed, progress, betas=hot, workers=workers, store=kept
        )
    if "csv" in files:
        with files["csv"].writing() as path:
            write_csv(path, *table_rows(found.rows()))
    if "plot" in files:
        with files["plot"].writing() as path:
            report.save_figure(report.plot_convergence(found), path)
    if as_json:
        click.echo(dump_json({"version": freeattn.__version__, "preset": preset_name(preset), **found.to_dict()}))
    else:
        click.echo(report.render(*report.convergence_tables(found, preset)), nl=False)
    context.exit(0 if found.passed else 1)
