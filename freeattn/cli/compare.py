"""`freeattn compare`: key numbers of several layers side by side."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import click

import freeattn
from freeattn import report
from freeattn.cli.options import json_option, spec_options
from freeattn.cli.records import dump_json
from freeattn.cli.spec import named_layer
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
"""


@click.command("compare", epilog=_EPILOG, short_help="Key numbers of several layers side by side.")
@click.argument("layers", nargs=-1, metavar="A B [C…]")
@spec_options
@click.option("--penalty", metavar="X", default="1e-4", show_default=True, help="Penalty of ridge regression.")
@click.option("--noise", metavar="X", default="0.1", show_default=True, help="Variance of the noise.")
@click.option("--level", metavar="X", default="0.1", show_default=True, help="Level of the training loss.")
@json_option
def compare_command(
    layers: Sequence[str], penalty: str, noise: str, level: str, as_json: bool, **options: Any
) -> None:
    """Ratios, parameters, mean, edges, atom and predictions of several layers.

    A layer is a preset, or a preset with fields of its own, NAME:FIELD=VALUE,FIELD=VALUE,…; options hold for all.
    Predictions are those of the law of mean one.
    """
    if len(layers) < 2:
        raise InputError("layers", " ".join(layers) or "(not given)", "two layers or more to compare")
    settings = {
        name: float(exact_number(name, text))
        for name, text in (("penalty", penalty), ("noise", noise), ("level", level))
    }
    specs = [named_layer(text, options).spec for text in layers]
    found = [freeattn.predict.summary(freeattn.law(spec), **settings) for spec in specs]
    if as_json:
        records = [
            {"layer": text, "spec": spec.to_dict(), **numbers}
            for text, spec, numbers in zip(layers, specs, found, strict=True)
        ]
        click.echo(dump_json({"version": freeattn.__version__, **settings, "layers": records}))
        return
    rows = [(name, *(_text(numbers[name]) for numbers in found)) for name in found[0]]
    shown = ", ".join(f"{name} {value:g}" for name, value in settings.items())
    click.echo(report.render(report.rows_table(f"Laws of mean one: {shown}", ("", *layers), rows)), nl=False)


def _text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, Fraction) and len(str(value)) <= _LONGEST_EXACT:
        return str(value)
    return str(value) if isinstance(value, int) else number_text(value, _SHOWN_DIGITS)
