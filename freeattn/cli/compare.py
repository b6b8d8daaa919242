"""`freeattn compare`: key numbers of several layers side by side."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import click

import freeattn
from freeattn import report
from freeattn.cli.completion import complete_layers
from freeattn.cli.files import output_files
from freeattn.cli.options import LAYER_FIELDS, axis_option, force_option, json_option, plot_option, spec_options
from freeattn.cli.records import dump_json
from freeattn.cli.spec import build_layer
from freeattn.cli.spec_text import distinct_names
from freeattn.cli.steps import steps_of
from freeattn.cli.warnings import warn_of_dominated_rows
from freeattn.errors import InputError
from freeattn.model.written_numbers import exact_number
from freeattn.report.numbers import value_text

__all__ = ["compare_command"]

_EPILOG = """\b
Examples:
  freeattn compare bert-base bert-large --n-tokens 512
  freeattn compare bert-base bert-base:n_heads=6,d_key=128,d_value=128 \\
    --n-tokens 512 --json
  freeattn compare llama-2-7b path/to/config.json --n-tokens 2048
  freeattn compare bert-base bert-large --n-tokens 512 --plot densities.pdf
"""


@click.command("compare", epilog=_EPILOG, short_help="Key numbers of several layers side by side.")
@click.argument("layers", nargs=-1, metavar="A B [C…]", shell_complete=complete_layers(LAYER_FIELDS))
@spec_options
@click.option("--penalty", metavar="X", default="1e-4", show_default=True, help="Penalty of ridge regression.")
@click.option("--noise", metavar="X", default="0.1", show_default=True, help="Variance of the noise.")
@click.option("--level", metavar="X", default="0.1", show_default=True, help="Level of the training loss.")
@json_option
@plot_option("Draw the densities of the laws of mean one; png, pdf or svg (needs the extra 'plot').")
@force_option
@axis_option
def compare_command(
    layers: Sequence[str], penalty: str, noise: str, level: str, as_json: bool, plot: str | None, force: bool,
    log: bool | None, **options: Any,
) -> None:
    """Tokens, ratios, beta, parameters, mean, edges, atom and predictions of several layers.

    A layer is a preset or the config.json of a model, with fields of its own as NAME:FIELD=VALUE,FIELD=VALUE,…;
    options hold for all others.
    Predictions are those of the law of mean one.
    """
    if len(layers) < 2:
        raise InputError("layers", " ".join(layers) or "(not given)", "two layers or more to compare")
    files = output_files(force, {"plot": plot})
    if "plot" in files:
        report.check_plot_file(files["plot"].given)
    settings = {
        name: float(exact_number(name, text))
        for name, text in (("penalty", penalty), ("noise", noise), ("level", level))
    }
    read, names = [build_layer(text, options) for text in layers], distinct_names(layers, with_fields=True)
    with steps_of(2 * len(read)) as step:
        laws = [step(partial(freeattn.law, one.spec)) for one in read]
        found = [step(partial(freeattn.predict.summary, law, **settings)) for law in laws]
    if "plot" in files:
        with files["plot"].writing() as path:
            report.save_figure(report.plot_laws(dict(zip(names, laws, strict=True)), normalized=True, log=log), path)
    warn_of_dominated_rows([one.spec for one in read], names)
    if as_json:
        records = [
            {"layer": text, **one.record(), **numbers}
            for text, one, numbers in zip(layers, read, found, strict=True)
        ]
        click.echo(dump_json({"version": freeattn.__version__, **settings, "layers": records}))
        return
    rows = [(name, *(value_text(numbers[name]) for numbers in found)) for name in found[0]]
    shown = ", ".join(f"{name} {value:g}" for name, value in settings.items())
    if any(one.spec.finite_size for one in read):
        rows.insert(1, ("finite size", *(_finite_size(one.spec) for one in read)))
    table = report.rows_table(f"Laws of mean one: {shown}", ("", *names), rows)
    notes = [
        f"{name}: {line}" for name, one in zip(names, read, strict=True)
        for line in (*one.lines, *report.not_modelled_lines(one.spec))
    ]
    click.echo(report.render(table, *notes), nl=False)


def _finite_size(spec: Any) -> str:
    return f"rows of {spec.n_tokens}" if spec.finite_size else "no, the limit"
