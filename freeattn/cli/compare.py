"""`freeattn compare`: key numbers of several layers side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import click

import freeattn
from freeattn import report
from freeattn.cli.completion import complete_layers
from freeattn.cli.files import output_files
from freeattn.cli.options import LAYER_FIELDS, axis_option, force_option, json_option, plot_option, spec_options
from freeattn.cli.records import dump_json
from freeattn.cli.spec import Layer, build_layer
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
    compared = _compared(layers, [build_layer(text, options) for text in layers], settings)
    if "plot" in files:
        with files["plot"].writing() as path:
            report.save_figure(report.plot_laws(compared.laws, normalized=True, log=log), path)
    warn_of_dominated_rows([one.spec for one in compared.layers], list(compared.laws))
    if as_json:
        click.echo(dump_json(compared.record()))
    else:
        click.echo(report.render(compared.table(), *compared.notes()), nl=False)


class _Compared(NamedTuple):
    """Layers as typed and read, their laws by distinct names, and key numbers that rest on the settings."""

    typed: Sequence[str]
    layers: Sequence[Layer]
    laws: Mapping[str, Any]
    numbers: Sequence[Mapping[str, Any]]
    settings: Mapping[str, float]

    def record(self) -> dict[str, Any]:
        records = [
            {"layer": text, **one.record(), **numbers}
            for text, one, numbers in zip(self.typed, self.layers, self.numbers, strict=True)
        ]
        return {"version": freeattn.__version__, **self.settings, "layers": records}

    def table(self) -> Any:
        """A column for each layer; whether it is at finite size, where one of them is."""
        rows = [(name, *(value_text(numbers[name]) for numbers in self.numbers)) for name in self.numbers[0]]
        shown = ", ".join(f"{name} {value:g}" for name, value in self.settings.items())
        if any(one.spec.finite_size for one in self.layers):
            rows.insert(1, ("finite size", *(_finite_size(one.spec) for one in self.layers)))
        return report.rows_table(f"Laws of mean one: {shown}", ("", *self.laws), rows)

    def notes(self) -> list[str]:
        return [
            f"{name}: {line}" for name, one in zip(self.laws, self.layers, strict=True)
            for line in (*one.lines, *report.not_modelled_lines(one.spec))
        ]


def _compared(typed: Sequence[str], layers: Sequence[Layer], settings: Mapping[str, float]) -> _Compared:
    names = distinct_names(typed, with_fields=True)
    with steps_of(2 * len(layers)) as step:
        laws = [step(partial(freeattn.law, one.spec)) for one in layers]
        numbers = [step(partial(freeattn.predict.summary, law, **settings)) for law in laws]
    return _Compared(typed, layers, dict(zip(names, laws, strict=True)), numbers, settings)


def _finite_size(spec: Any) -> str:
    return f"rows of {spec.n_tokens}" if spec.finite_size else "no, the limit"
