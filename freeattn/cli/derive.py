"""`freeattn derive`: the equations of a law, from the architecture to the polynomial."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from importlib import resources
from typing import TYPE_CHECKING, Any

import click

import freeattn
from freeattn.cli.completion import complete_files
from freeattn.cli.files import output_files
from freeattn.cli.group import Command, say
from freeattn.cli.options import force_option, json_option, name_option, preset_argument, spec_options
from freeattn.cli.progress import progress_of
from freeattn.cli.records import dump_json
from freeattn.cli.spec import Layer, build_layer, changed_spec, kinds_spec, typed_fields
from freeattn.cli.spec_text import own_fields, preset_name
from freeattn.errors import InputError
from freeattn.model.ties import as_ties
from freeattn.report.writing import OutputFile

if TYPE_CHECKING:
    from freeattn.model.attention import Attention

__all__ = ["derive_command"]

_KINDS = ("output", "tie", "inputs", "latent", "query_latent", "position_width", "heads", "residual")

_LATENTS = ("latent", "query_latent")

_FORMS = ("text", "latex", "document", "json", "python", "mathematica", "julia")

_EPILOG = """\b
Examples:
  freeattn derive bert-base --n-tokens 512
  freeattn derive --symbolic --format latex
  freeattn derive --symbolic --output attention --format document \\
    -o attention.tex
  freeattn derive bert-base --n-tokens 512 --format python -o bert.py
  freeattn derive --symbolic --tie key-value --json
  freeattn derive bert-base --n-tokens 512 --route pencil
"""


@click.command("derive", cls=Command, epilog=_EPILOG, short_help="The equations of a law: text, LaTeX, JSON, programs.")
@preset_argument
@spec_options
@click.option("--symbolic", is_flag=True,
              help="Keep sizes and beta as symbols; options that are given still put in their numbers.")
@name_option("route", ("transform", "pencil"),
             "How: free convolutions, or matrix Dyson equation (default: transform where a closed law is known).")
@name_option("format", _FORMS,
             "Form of the derivation: latex is a fragment, document a whole file; python, mathematica and julia are "
             "programs that give the Stieltjes transform and the density (default: text).")
@json_option
@click.option("--standalone", is_flag=True, help="With --format latex: the same as --format document.")
@click.option("--macros", is_flag=True,
              help="LaTeX with the macros of freeattn.sty and keys of references.bib, both in freeattn/theory/data.")
@click.option("-o", "out_file", metavar="FILE", help="Write to FILE instead of stdout.", shell_complete=complete_files)
@force_option
def derive_command(
    preset: str | None, symbolic: bool, route: str | None, format: str | None, as_json: bool, standalone: bool,
    macros: bool, out_file: str | None, force: bool, **options: Any,
) -> None:
    """The derivation of a law, from the assumptions to the polynomial, the atom and the moments.

    The architecture is SPEC: a preset (see freeattn architectures) or the config.json of a model, which may
    have fields of its own, NAME:FIELD=VALUE,…, with options in place of its other values; or options alone.
    With --symbolic its sizes and beta are not taken, and the derivation holds for all of them; what kind of
    layer it is stays (output, ties, inputs, latents with their numbers).
    """
    form = _form(format, as_json, standalone, macros)
    files = output_files(force, {"-o": out_file})
    layer = Layer(_symbolic_spec(*own_fields(preset, options))) if symbolic else build_layer(preset, options)
    with progress_of("deriving"):
        derivation = freeattn.derive(layer.spec, route=route)
        text = _text(derivation, form, macros, preset_name(preset), layer.config)
    _put(text.rstrip("\n") + "\n", files.get("-o"))
    if macros:
        folder = resources.files("freeattn.theory") / "data"
        say("derive", f"LaTeX needs freeattn.sty and references.bib next to the file; they are in {folder}")


def _form(form: str | None, as_json: bool, standalone: bool, macros: bool) -> str:
    if as_json and form not in (None, "json"):
        raise InputError("format", form, "json, or nothing, next to --json")
    form = "json" if as_json else form or "text"
    if standalone:
        if form not in ("latex", "document"):
            raise InputError("format", form, "latex next to --standalone")
        form = "document"
    if macros and form not in ("latex", "document"):
        raise InputError("format", form, "latex or document next to --macros")
    return form


def _symbolic_spec(preset: str | None, options: Mapping[str, Any]) -> Attention:
    """A layer of symbols with what kind of layer it is: from the preset, then from the options."""
    published = None if preset is None else kinds_spec(preset, options)
    latents = {name: getattr(published, name) for name in _LATENTS} if published else {}
    fields = typed_fields(options, preset, latents)
    if fields.get("beta") == "init":
        raise InputError("beta", "init", "a number, or nothing, next to --symbolic")
    kinds = {name: getattr(published, name) for name in _KINDS} if published else {}
    kinds |= {name: fields.pop(name) for name in _KINDS if name in fields}
    return changed_spec(_symbols(kinds), options, fields)


def _symbols(kinds: dict[str, Any]) -> Attention:
    """The layer of symbols; sizes that its kind makes equal are one symbol."""
    theory = importlib.import_module("freeattn.theory.derive")  # loads sympy: only when a derivation is asked
    tie = as_ties(kinds.pop("tie", "none"))
    spec: Attention = theory.symbolic_spec(
        output=kinds.pop("output", "mha"), tie="key-value" if tie.equal_widths else "none"
    )
    if tie.output == "key" or kinds.get("residual") is not None:
        kinds["d_out"] = spec.d_model
    return spec.replace(tie=tie, **kinds)


def _text(
    derivation: Any, form: str, macros: bool, preset: str | None, config: dict[str, Any] | None
) -> str:
    if form == "json":
        source = {"version": freeattn.__version__, "preset": preset, "config": config}
        return dump_json({**source, **derivation.to_dict()})
    if form in ("latex", "document"):
        return str(derivation.latex(standalone=form == "document", macros=macros))
    if form == "text":
        return str(derivation.text())
    return str(getattr(derivation, f"to_{form}")())


def _put(text: str, file: OutputFile | None) -> None:
    if file is None:
        click.echo(text, nl=False)
        return
    with file.writing() as path:
        path.write_text(text, encoding="utf-8")
