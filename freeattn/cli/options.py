"""Options that several commands share.

Values are read by callbacks that raise `InputError`, so that a wrong one is reported like any other field.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from freeattn.cli.completion import complete_files, complete_from, complete_layers
from freeattn.cli.group import STORE
from freeattn.cli.spec import CHOICES, flag
from freeattn.errors import InputError
from freeattn.model.ties import refuse_queries

__all__ = [
    "LAYER_FIELDS", "SWITCHES", "axis_option", "count_option", "draws_option", "file_options", "force_option",
    "json_option", "name_option", "plot_option", "preset_argument", "run_options", "run_options_from", "seed_option",
    "spec_options",
]

_EXPLAIN: dict[str, Callable[[str], object]] = {"tie": refuse_queries}
_Function = TypeVar("_Function", bound=Callable[..., Any])
_Decorator = Callable[[_Function], _Function]

_MOST_WORKERS = 4096
_MOST_DRAWS = 1_000_000
_LARGEST_SEED = 2**64 - 1
_SIZES = {
    "n_tokens": "Tokens in the sequence.",
    "d_model": "Width of the tokens.",
    "n_heads": "Query heads.",
    "n_kv_heads": "Distinct key/value heads; divides n_heads (default: n_heads).",
    "d_key": "Width of queries and keys, per head.",
    "d_value": "Width of values, per head.",
    "d_out": "Width of the output (default: d_model).",
}
_NAMES = {
    "inputs": "The law of the tokens (default: orthogonal).",
    "tie": "Whether values, the output map or both are built from the key weights (default: none).",
    "output": "The matrix whose squared singular values are asked about (default: mha).",
    "scores": "The score function (default: softmax).",
}
_SCALES = {"value_scale": "Factor on W^V (default: 1).", "output_scale": "Factor on W^O (default: 1)."}
_LISTS = {
    "feature_eigenvalues": ("A,B,…", "Gaussian tokens; eigenvalues of their feature covariance, scaled to mean 1."),
    "feature_weights": ("A,B,…", "Shares or counts of these eigenvalues (default: equal)."),
    "key_value_correlation": ("RHO", "Values correlated with keys: V = RHO K + sqrt(1 - RHO^2) V'."),
    "heads": ("LIST", "Unequal heads: COUNT:D_KEY[:D_VALUE[:BETA]] between commas."),
    "latent_rank": ("N|none", "Keys and values come from a latent of this rank."),
    "query_latent_rank": ("N|none", "Queries come from a latent of this rank."),
    "position_width": ("N", "Coordinates of each key that come from the tokens, shared by all heads (default: 0)."),
    "residual": ("X", "Factor of the attention output in a residual connection (default: no connection)."),
}
_CONFIGS = {
    "part": ("NAME", "Which part of a configuration file of several models, such as text or vision."),
    "model_type": ("NAME", "The family to read a configuration file as (default: the one that it states)."),
}
_FLAGS = {
    "finite_size": "The law at finite size: theta_1 and theta_2 of softmax rows of n_tokens tokens, not of the limit.",
    "latent_per_head": "One latent for each key/value head instead of one for all.",
    "latent_normalized": "Rows of the latent are normalized (the law is the same).",
    "query_latent_per_head": "One query latent for each head instead of one for all.",
    "query_latent_normalized": "Rows of the query latent are normalized (the law is the same).",
}


LAYER_FIELDS = (*_SIZES, "beta", *_NAMES, *_SCALES, *_LISTS, *_FLAGS)  # what spec_options takes
SWITCHES = tuple(_FLAGS)


def name_option(
    field: str, names: Sequence[str], help: str, explain: Callable[[str], object] | None = None
) -> _Decorator[Any]:
    """An option that takes one of a few names; they complete in the shell.

    `explain` may raise a NotCoveredError for another name, where there is more to say than what is allowed.
    """

    def check(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
        del context, parameter
        if value is not None and value not in names:
            if explain is not None:
                explain(value)
            raise InputError(field, value, f"one of {', '.join(names)}")
        return value

    return click.option(
        flag(field), field, metavar=f"[{'|'.join(names)}]", help=help, callback=check,
        shell_complete=complete_from(names),
    )


def count_option(
    field: str, default: int, least: int, greatest: int, help: str, metavar: str = "N"
) -> _Decorator[Any]:
    """An option that takes an integer from `least` to `greatest`."""

    def read(context: click.Context, parameter: click.Parameter, value: str) -> int:
        del context, parameter
        try:
            number = int(value)
        except ValueError:
            number = least - 1
        if not least <= number <= greatest:
            raise InputError(field, value, f"an integer from {least} to {greatest}")
        return number

    return click.option(
        flag(field), field, metavar=metavar, help=help, default=str(default), show_default=True, callback=read
    )


def draws_option(default: int, least: int, help: str) -> _Decorator[Any]:
    """--draws: a number of simulated draws."""
    return count_option("draws", default, least, _MOST_DRAWS, help)


def seed_option(help: str) -> _Decorator[Any]:
    """--seed."""
    return count_option("seed", 0, 0, _LARGEST_SEED, help)


def preset_argument(function: _Function) -> _Function:
    """The optional SPEC argument, a preset or a configuration file with fields; all of it completes in the shell."""
    complete = complete_layers(LAYER_FIELDS)
    return click.argument("preset", metavar="[SPEC]", required=False, shell_complete=complete)(function)


def spec_options(function: _Function) -> _Function:
    """One option for each field of `Attention`; values stay texts until `build_layer` reads them."""
    options: list[_Decorator[Any]] = [
        click.option(flag(name), metavar="N", help=text) for name, text in _SIZES.items()
    ]
    beta = 'Inverse temperature; "init": from the published initialization (default: 1; with a file: init).'
    options.append(click.option("--beta", metavar="X|init", help=beta, shell_complete=complete_from(("init",))))
    options += [name_option(name, CHOICES[name], text, _EXPLAIN.get(name)) for name, text in _NAMES.items()]
    options += [click.option(flag(name), metavar="X", help=text) for name, text in _SCALES.items()]
    texts = {**_LISTS, **_CONFIGS}
    options += [click.option(flag(name), metavar=metavar, help=text) for name, (metavar, text) in texts.items()]
    options += [click.option(flag(name), is_flag=True, help=text) for name, text in _FLAGS.items()]
    for option in reversed(options):
        function = option(function)
    return function


def json_option(function: _Function) -> _Function:
    """The flag --json."""
    return click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")(function)


def run_options(function: _Function) -> _Function:
    """--workers and --store: where a command computes, and where finished results are kept."""
    return run_options_from("1", None)(function)


def run_options_from(workers: str, store: str | None) -> _Decorator[Any]:
    """The same with other defaults."""

    def decorate(function: _Function) -> _Function:
        kept = "Keep each finished result in this file; results that it has are not computed again."
        shown = store is not None
        function = click.option(
            "--store", metavar="FILE", help=kept, default=store, show_default=shown, callback=_read_store,
            shell_complete=complete_files,
        )(function)
        where = "Processes to compute with; all: one for each available core."
        return click.option(
            "--workers", metavar="N|all", help=where, default=workers, show_default=True, callback=_read_workers,
            shell_complete=complete_from(("all",)),
        )(function)

    return decorate


def _read_workers(context: click.Context, parameter: click.Parameter, text: str) -> int | None:
    del context, parameter
    if text == "all":
        return None
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= _MOST_WORKERS):
        raise InputError("workers", text, f"an integer from 1 to {_MOST_WORKERS}, or all")
    return int(text)


def _read_store(context: click.Context, parameter: click.Parameter, path: str | None) -> str | None:
    """The file; the command group is told, for what it says of an interrupted command."""
    del parameter
    if path is not None and not path.strip():
        raise InputError("store", "(empty)", "the name of a file")
    context.meta[STORE] = path
    return path


def file_options(csv: str, plot: str) -> _Decorator[Any]:
    """--csv, --plot and --force, with the help texts of the first two."""

    def decorate(function: _Function) -> _Function:
        function = plot_option(plot)(force_option(function))
        return click.option("--csv", metavar="FILE", help=csv, shell_complete=complete_files)(function)

    return decorate


def plot_option(help: str) -> _Decorator[Any]:
    """--plot: a picture."""
    return click.option("--plot", metavar="FILE", help=help, shell_complete=complete_files)


def force_option(function: _Function) -> _Function:
    """--force."""
    return click.option("--force", is_flag=True, help="Overwrite files that exist.")(function)


def axis_option(function: _Function) -> _Function:
    """--log and --linear: the axis of a picture of laws."""
    return click.option("--log/--linear", default=None, help="Axis of the plot (default: as the law needs).")(function)
