"""`freeattn verify`: simulated softmax attention, or a spectrum of the user's own, against the law."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

import freeattn
from freeattn import report
from freeattn.cli.files import output_files
from freeattn.cli.group import Command, say
from freeattn.cli.options import (
    axis_option,
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
from freeattn.cli.spectrum import GivenSpectrum, given_spectrum, spectrum_options
from freeattn.report.writing import OutputFile

if TYPE_CHECKING:
    from freeattn.model.attention import Attention

__all__ = ["verify_command"]

_EPILOG = """\b
Examples:
  freeattn verify bert-base --n-tokens 512 --draws 10 --seed 0
  freeattn verify --n-tokens 256 --d-model 256 --n-heads 4 --d-key 64 \\
    --output attention --json
  freeattn verify bert-base --n-tokens 512 --draws 100 --workers all \\
    --store draws.db
  freeattn verify bert-base --n-tokens 512 --plot law-over-softmax.png \\
    --csv statistics.csv
  freeattn verify bert-base --n-tokens 512 --spectrum eigenvalues.npy

\b
Exit codes: 0 every check passed, 1 a check failed, 2 bad input.
"""


@click.command("verify", cls=Command, epilog=_EPILOG, short_help="Simulated softmax attention against the law.")
@preset_argument
@spec_options
@draws_option(10, 1, "Independent draws.")
@seed_option("The same seed gives the same result.")
@run_options
@spectrum_options
@json_option
@file_options(
    "Write the statistics, one line each.",
    "Draw the law over the histogram of all draws; png, pdf or svg (needs the extra 'plot').",
)
@axis_option
@click.pass_context
def verify_command(
    context: click.Context, /, preset: str | None, draws: int, seed: int, workers: int | None, store: str | None,
    spectrum: str | None, singular_values: bool, normalized: bool, as_json: bool, csv: str | None, plot: str | None,
    force: bool, log: bool | None, **options: Any,
) -> None:
    """Draw real softmax attention and compare its spectrum with the law, statistic by statistic.

    The architecture is SPEC: a preset (see freeattn architectures) or the config.json of a model, which may
    have fields of its own, NAME:FIELD=VALUE,…, with options in place of its other values; or options alone.
    Next to softmax stands its Gaussian equivalent with the same weights: the noise floor at this size. The
    result depends on the seed, not on the number of workers; with a store an interrupted run goes on where it
    stopped, and more draws add to those that are there. With --spectrum nothing is drawn: the values of the
    file are compared with the law.
    """
    given = given_spectrum(context, spectrum, singular_values, normalized)
    files = output_files(force, {"csv": csv, "plot": plot})
    if "plot" in files:
        report.check_plot_file(files["plot"].given)
    layer = build_layer(preset, options)
    kept = None if store is None else freeattn.Store(store)  # a bad one is refused before anything is computed
    if given is None:
        found = _simulated(layer.spec, draws=draws, seed=seed, workers=workers, store=kept)
    else:
        found = _compared(layer.spec, given)
    verification = found.verification
    for warning in verification.warnings:
        say("warning", warning)
    _write(files, layer.spec, found, log)
    if as_json:
        source = {"version": freeattn.__version__, "preset": preset_name(preset), "config": layer.config}
        click.echo(dump_json({**source, **verification.to_dict()}))
    elif given is not None:
        click.echo(report.render(*report.spectrum_tables(verification, given.name), *layer.lines), nl=False)
    else:
        click.echo(report.render(*report.verification_tables(verification, preset), *layer.lines), nl=False)
    context.exit(0 if verification.passed else 1)


class _Found(NamedTuple):
    """A verification, and what its picture shows: a law over spectra, so many of them drawn."""

    verification: Any
    law: Any
    spectra: Sequence[Any]
    drawn: int


def _simulated(spec: Attention, draws: int, **settings: Any) -> _Found:
    with progress_of("drawing", draws) as progress:
        law = freeattn.law(spec)
        verification = freeattn.verify(spec, draws=draws, law=law, progress=progress, **settings)
    spectra = [sample.softmax for sample in verification.samples]
    return _Found(verification, law, spectra, len(spectra))


def _compared(spec: Attention, given: GivenSpectrum) -> _Found:
    with progress_of("computing"):
        verification = given.compared(spec, freeattn.law(spec))
    return _Found(verification, verification.law, [verification.spectrum], 0)


def _write(files: Mapping[str, OutputFile], spec: Attention, found: _Found, log: bool | None) -> None:
    if "csv" in files:
        with files["csv"].writing() as path:
            write_csv(path, *table_rows(found.verification.rows()))
    if "plot" in files:
        with files["plot"].writing() as path:
            title = report.law_title(spec, found.drawn)
            report.save_figure(found.law.plot(sample=found.spectra, log=log, title=title), path)
