"""`freeattn predict`: what a law means for a reader of the features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import click

import freeattn
from freeattn import report
from freeattn.cli.group import CommandGroup
from freeattn.cli.options import json_option, preset_argument, spec_options
from freeattn.cli.records import dump_json
from freeattn.cli.spec import Layer, build_layer, flag
from freeattn.cli.spec_text import preset_name
from freeattn.cli.steps import steps_of
from freeattn.cli.warnings import warn_of_dominated_rows
from freeattn.errors import InputError
from freeattn.model.written_numbers import exact_number, exact_numbers
from freeattn.report.numbers import value_text

__all__ = ["predict_command"]

_LEVEL = 0.1
_SHAPES = {
    "condition_number": "s_max/s_min",
    "stable_rank": "over n",
    "participation_ratio": "over n",
    "entropy_rank": "over n",
    "rank_fraction": "over n",
    "spike_gap": "s_1²/s_2², not centered",
}

_Option = Callable[[Callable[..., Any]], Callable[..., Any]]


def _list_option(field: str, default: str | None, help: str) -> _Option:
    """An option that takes numbers between commas, read exactly."""
    def read(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[Any, ...] | None:
        del context, parameter
        return None if value is None else exact_numbers(field, value)

    return click.option(
        flag(field), field, metavar="A,B,…", default=default, show_default=default is not None, help=help, callback=read
    )


@click.group("predict", cls=CommandGroup, invoke_without_command=True, epilog="""\b
Examples:
  freeattn predict ridge bert-base --n-tokens 512
  freeattn predict flow bert-base --n-tokens 512 --t 1,10,100
  freeattn predict shape path/to/config.json --n-tokens 512 --json
""", short_help="Ridge regression, gradient flow and shape, from the law.")
@click.pass_context
def predict_command(context: click.Context, /) -> None:
    """Predictions from the law of a layer, all in the unit of the law of mean one."""
    if context.invoked_subcommand is None:
        raise InputError("command", "(not given)", ", ".join(predict_command.list_commands(context)))


@predict_command.command("ridge", short_help="Coefficient error of ridge regression.", epilog="""\b
Examples:
  freeattn predict ridge bert-base --n-tokens 512
  freeattn predict ridge bert-base --n-tokens 512 --penalty 1e-4,1e-2,1 \\
    --noise 0.1 --json
""")
@preset_argument
@spec_options
@_list_option("penalty", "1e-4", "Penalties, in the unit of the law of mean one.")
@_list_option("noise", "0.1", "Variances of the noise, the signal's being 1.")
@click.option("--gamma-out", metavar="X", help="Directions of the targets over tokens, where the output has no map.")
@json_option
def ridge_command(
    preset: str | None, penalty: Sequence[Any], noise: Sequence[Any], gamma_out: str | None, as_json: bool,
    **options: Any,
) -> None:
    """Effective degrees of freedom and coefficient error of ridge regression, and the best penalty for each noise."""
    given = None if gamma_out is None else exact_number("gamma_out", gamma_out)
    layer = build_layer(preset, options)
    if given is None and layer.spec.gamma_out is None:
        allowed = "the number of directions of the targets over tokens, by --gamma-out: this output has no map"
        raise InputError("gamma_out", "(not given)", allowed)
    with steps_of(1 + (len(penalty) + 1) * len(noise)) as step:
        law = step(lambda: freeattn.law(layer.spec))
        best = [freeattn.predict.best_penalty(law, variance, gamma_out=given) for variance in noise]
        pairs = [(one, variance, False) for variance in noise for one in penalty]
        pairs += [(one, variance, True) for one, variance in zip(best, noise, strict=True)]
        rows = [step(partial(_ridge_row, law, *pair, given)) for pair in pairs]
    warn_of_dominated_rows([layer.spec])
    if as_json:
        gamma = float(layer.spec.gamma_out if given is None else given)
        click.echo(dump_json({**_head(layer, preset), "gamma_out": gamma, "ridge": rows}))
        return
    lines = [
        (*(value_text(row[name]) for name in ("penalty", "noise", "degrees_of_freedom", "ridge_error")),
         "best" if row["best"] else "") for row in rows
    ]
    columns = ("penalty", "noise", "degrees of freedom", "ridge error", "")
    _show(preset, layer, columns, lines, left=0)


def _ridge_row(law: Any, penalty: Any, noise: Any, is_best: bool, gamma_out: Any) -> dict[str, Any]:
    predict = freeattn.predict
    return {
        "penalty": float(penalty), "noise": float(noise),
        "degrees_of_freedom": predict.degrees_of_freedom(law, float(penalty)),
        "ridge_error": predict.ridge_error(law, float(penalty), float(noise), gamma_out=gamma_out), "best": is_best,
    }


@predict_command.command("flow", short_help="Training loss of gradient flow.", epilog="""\b
Examples:
  freeattn predict flow bert-base --n-tokens 512
  freeattn predict flow bert-base --n-tokens 512 --t 1,10,100 \\
    --level 0.5,0.1 --json
""")
@preset_argument
@spec_options
@_list_option("t", "1,10,100,1000", "Times.")
@_list_option("level", None, "Levels of the loss to be reached, above its plateau (default: 0.1 where it is).")
@json_option
def flow_command(
    preset: str | None, t: Sequence[Any], level: Sequence[Any] | None, as_json: bool, **options: Any
) -> None:
    """Relative training loss of gradient flow at given times, its plateau, and times at which it has given levels."""
    layer = build_layer(preset, options)
    predict = freeattn.predict
    with steps_of(1 + len(t) + (1 if level is None else len(level))) as step:
        law = step(lambda: freeattn.law(layer.spec))
        plateau = 1 - predict.rank_fraction(law)
        losses = [(float(time), step(partial(predict.flow_loss, law, float(time)))) for time in t]
        if level is None:
            level = (_LEVEL,) if plateau < _LEVEL else ()
        arrivals = [(float(one), step(partial(predict.arrival_time, law, float(one)))) for one in level]
    warn_of_dominated_rows([layer.spec])
    if as_json:
        record = {
            "plateau": float(plateau),
            "loss": [{"t": time, "loss": loss} for time, loss in losses],
            "arrival": [{"level": one, "t": time} for one, time in arrivals],
        }
        click.echo(dump_json({**_head(layer, preset), **record}))
        return
    lines = [("loss at t", value_text(time), value_text(loss)) for time, loss in losses]
    lines += [("time of loss", value_text(one), value_text(time)) for one, time in arrivals]
    _show(preset, layer, ("", "at", "value"), [*lines, ("plateau", "", value_text(plateau))])


@predict_command.command("shape", short_help="Condition number and effective ranks.", epilog="""\b
Examples:
  freeattn predict shape bert-base --n-tokens 512
  freeattn predict shape gpt2-medium --n-tokens 512 --json
""")
@preset_argument
@spec_options
@json_option
def shape_command(preset: str | None, as_json: bool, **options: Any) -> None:
    """Condition number, effective ranks, and the gap between the leading singular value and the bulk."""
    layer = build_layer(preset, options)
    with steps_of(2) as step:
        law = step(lambda: freeattn.law(layer.spec))
        found = step(lambda: freeattn.predict.shape_numbers(law))
    warn_of_dominated_rows([layer.spec])
    if as_json:
        click.echo(dump_json({**_head(layer, preset), **found}))
        return
    lines = [(name, what, value_text(found[name])) for name, what in _SHAPES.items()]
    _show(preset, layer, ("", "", "value"), lines, left=2)


def _head(layer: Layer, preset: str | None) -> dict[str, Any]:
    return {"version": freeattn.__version__, "preset": preset_name(preset), **layer.record()}


def _show(
    preset: str | None, layer: Layer, columns: Sequence[str], lines: Sequence[Sequence[str]], left: int = 1
) -> None:
    spec = layer.spec
    size = f" at finite size: rows of {spec.n_tokens} tokens" if spec.finite_size else ""
    betas = ", ".join(value_text(beta) for beta in spec.betas)
    of = f"output {spec.output}, n_tokens {spec.n_tokens}, beta {betas}; law of mean one{size}"
    title = f"{preset or 'Attention'}: {of}"
    notes = (*layer.lines, *report.not_modelled_lines(spec))
    click.echo(report.render(report.rows_table(title, columns, lines, left=left), *notes), nl=False)
