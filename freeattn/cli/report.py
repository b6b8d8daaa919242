"""`freeattn report`: one page in HTML about a layer, or several side by side."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import click

import freeattn
from freeattn import report
from freeattn.cli.completion import complete_files, complete_layers
from freeattn.cli.files import output_files
from freeattn.cli.group import say
from freeattn.cli.options import LAYER_FIELDS, count_option, force_option, json_option, seed_option, spec_options
from freeattn.cli.progress import progress_of
from freeattn.cli.records import dump_json
from freeattn.cli.spec import Layer, build_layer, flag
from freeattn.cli.spec_text import distinct_names
from freeattn.cli.warnings import warn_of_dominated_rows
from freeattn.errors import InputError
from freeattn.model.written_numbers import exact_number

__all__ = ["report_command"]

_EPILOG = """\b
Examples:
  freeattn report bert-base --n-tokens 512 -o bert-base.html
  freeattn report bert-base modernbert-base --n-tokens 512 --draws 0 \\
    -o two.html
  freeattn report bert-base:n_tokens=512 falcon-7b:n_tokens=2048 -o two.html
  freeattn report --n-tokens 512 --d-model 768 --n-heads 12 --d-key 64 \\
    --d-value 64 -o layer.html
"""
_MOST_DRAWS = 1000


@click.command("report", epilog=_EPILOG, short_help="One HTML page: law, predictions, evidence, derivation.")
@click.argument("layers", nargs=-1, metavar="[SPEC…]", shell_complete=complete_layers(LAYER_FIELDS))
@spec_options
@count_option("draws", 3, 0, _MOST_DRAWS, "Simulated draws of each layer; 0 leaves simulation out.")
@seed_option("Of the draws.")
@click.option("--noise", metavar="X", default="0.1", show_default=True, help="Noise variance of ridge regression.")
@click.option("-o", "out_file", metavar="FILE", help="The file to write; needs the extra 'report'.",
              shell_complete=complete_files)
@force_option
@json_option
def report_command(
    layers: Sequence[str], draws: int, seed: int, noise: str, out_file: str | None, force: bool, as_json: bool,
    **options: Any,
) -> None:
    """Write what is known of a layer, or of several side by side, as one HTML file that needs nothing else.

    A SPEC is a preset or a configuration file, with fields of its own as NAME:FIELD=VALUE,FIELD=VALUE,…; options hold
    for all others. Without one, the options describe the layer. Large layers are drawn with the same ratios at fewer
    tokens.
    """
    if out_file is None:
        raise InputError("-o", "(not given)", "the name of the file to write, such as report.html")
    files = output_files(force, {"-o": out_file})
    report.check_page_file(out_file, "-o")
    report.check_html_libraries()
    names, built = _layers(layers, options)
    settings = {"draws": draws, "seed": seed, "noise": noise}
    with progress_of("computing", 0) as progress:
        page = freeattn.html_report(
            *(layer.spec for layer in built), names=names, draws=draws, seed=seed,
            noise=float(exact_number("noise", noise)), command=_command(layers, settings, options),
            notes={name: layer.lines for name, layer in zip(names, built, strict=True)}, progress=progress,
        )
    with files["-o"].writing() as path:
        page.save(path)
    warn_of_dominated_rows([layer.spec for layer in built], names if len(names) > 1 else ())
    if as_json:
        click.echo(dump_json({"file": out_file, "bytes": len(page.html.encode()), **page.data.to_dict()}))
    else:
        say("report", f"{out_file}, {len(page.html.encode()) / 1e6:.1f} MB")


def _layers(layers: Sequence[str], options: dict[str, Any]) -> tuple[list[str], list[Layer]]:
    """The layers and their names: "layer" for options alone, the preset or file, or all that was typed."""
    if not layers:
        return ["layer"], [build_layer(None, options)]
    built = [build_layer(text, options) for text in layers]
    return distinct_names(layers), built


def _command(layers: Sequence[str], settings: Mapping[str, object], options: Mapping[str, Any]) -> str:
    """The line that makes the page again: every setting, and the options that were given."""
    words = ["freeattn", "report", *layers]
    for field, value in {**options, **settings}.items():
        if value is not None and value is not False:
            words += [flag(field)] if value is True else [flag(field), str(value)]
    return shlex.join([*words, "-o", "report.html"])
