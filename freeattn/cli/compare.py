"""`freeattn compare`: key numbers of several layers side by side."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import click

import freeattn
from freeattn import report
from freeattn.cli.completion import complete_layers
from freeattn.cli.options import LAYER_FIELDS, json_option, spec_options
from freeattn.cli.records import dump_json
from freeattn.cli.spec import named_layer
from freeattn.cli.warnings import warn_of_the_limit
from freeattn.errors import InputError
from freeattn.model.written_numbers import exact_number
from freeattn.report.numbers import number_text

__all__ = ["compare_command"]

_SHOWN_DIGITS = 8
_LONGEST_EXACT = 12  # characters of a fraction that is still worth reading

_EPILOG = """\b
Examples:
  freeattn compare bert-base bert-large --n-tokens 512
  freeattn compare bert-base bert-base:n_heads=6,d_key=128,d_value=128 --n-tokens 512 --json
  freeattn compare llama-2-7b path/to/config.json --n-tokens 2048
"""


@click.command("compare", epilog=_EPILOG, short_help="Key numbers of several layers side by side.")
@click.argument("layers", nargs=-1, metavar="A B [C…]", shell_complete=complete_layers(LAYER_FIELDS))
@spec_options
@click.option("--penalty", metavar="X", default="1e-4", show_default=True, help="Penalty of ridge regression.")
@click.option("--noise", metavar="X", default="0.1", show_default=True, help="Variance of the noise.")
@click.option("--level", metavar="X", default="0.1", show_default=True, help="Level of the training loss.")
@json_option
def compare_command(
    layers: Sequence[str], penalty: str, noise: str, level: str, as_json: bool, **options: Any
) -> None:
    """Tokens, ratios, beta, parameters, mean, edges, atom and predictions of several layers.

    A layer is a preset or the config.json of a model, with fields of its own as NAME:FIELD=VALUE,FIELD=VALUE,…;
    options hold for all.
    Predictions are those of the law of mean one.
    """
    if len(layers) < 2:
        raise InputError("layers", " ".join(layers) or "(not given)", "two layers or more to compare")
    settings = {
        name: float(exact_number(name, text))
        for name, text in (("penalty", penalty), ("noise", noise), ("level", level))
    }
    read = [named_layer(text, options) for text in layers]
    found = [freeattn.predict.summary(freeattn.law(one.spec), **settings) for one in read]
    warn_of_the_limit([one.spec for one in read], layers)
    if as_json:
        records = [
            {"layer": text, **one.record(), **numbers}
            for text, one, numbers in zip(layers, read, found, strict=True)
        ]
        click.echo(dump_json({"version": freeattn.__version__, **settings, "layers": records}))
        return
    rows = [(name, *(_text(numbers[name]) for numbers in found)) for name in found[0]]
    shown = ", ".join(f"{name} {value:g}" for name, value in settings.items())
    table = report.rows_table(f"Laws of mean one: {shown}", ("", *layers), rows)
    notes = [
        f"{text}: {line}" for text, one in zip(layers, read, strict=True)
        for line in (*one.lines, *report.not_modelled_lines(one.spec))
    ]
    click.echo(report.render(table, *notes), nl=False)


def _text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, tuple):
        return ", ".join(_text(one) for one in value)
    if isinstance(value, Fraction) and len(str(value)) <= _LONGEST_EXACT:
        return str(value)
    return str(value) if isinstance(value, int) else number_text(value, _SHOWN_DIGITS)
