"""From the texts of the command line to a specification."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import freeattn
from freeattn.cli.group import say
from freeattn.cli.layer import COMPOUND, composed_fields, option_of
from freeattn.cli.spec_text import is_path, is_preset, own_fields
from freeattn.errors import InputError
from freeattn.model.written_numbers import exact_number

if TYPE_CHECKING:  # the model loads when a specification is built, not for --help
    from freeattn.model.attention import Attention

__all__ = [
    "CHOICES", "Layer", "build_layer", "changed_spec", "flag", "kinds_spec", "spec_builder", "typed_fields",
]

CHOICES: dict[str, tuple[str, ...]] = {
    "inputs": ("orthogonal", "gaussian"),
    "tie": ("none", "key-value", "output-key", "key-value-output"),
    "output": ("mha", "values", "attention", "head-sum"),
    "scores": ("softmax", "linear", "relu", "sigmoid"),
}
_OF_CONFIGS = ("part", "model_type")
_FINITE_SIZE = "finite_size"  # what the θ's are, not a field of the layer
_EXAMPLE = "--n-tokens 512 --d-model 768 --n-heads 12 --d-key 64 --d-value 64"
_IN_PYTHON = {
    ", a symbol, or None": "", ", or a symbol": "", " or a symbol": "", "architectures()": "freeattn architectures",
    'inputs="gaussian"': "--inputs gaussian", "beta=1": "--beta 1",
}


def flag(field: str) -> str:
    """The option that sets a field: "--n-tokens" for "n_tokens"."""
    return "--" + field.replace("_", "-")


class Layer(NamedTuple):
    """A specification; where it comes from a configuration file, what it rests on and that as lines of text."""

    spec: Attention
    config: dict[str, Any] | None = None
    lines: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        """Specification, what it rests on and what it leaves out, JSON-ready."""
        spec = self.spec
        return {
            "config": self.config, "spec": spec.to_dict(), "finite_size": spec.finite_size,
            "not_modelled": list(spec.not_modelled),
        }


def spec_builder(
    preset: str | None, options: Mapping[str, Any]
) -> Callable[[Mapping[str, Any]], tuple[Attention, str]]:
    """`build_layer` of one preset or file, which is read once, as a function of options that say the same of files.

    It gives the specification and what there is to say of it.
    """
    if preset is not None and is_path(preset):
        record = _read_config(preset, options)

        def configured(changed: Mapping[str, Any]) -> tuple[Attention, str]:
            spec, fields = _configured_spec(preset, record, changed)
            return spec, record.kept_widths(spec, fields)

        return configured

    def published(changed: Mapping[str, Any]) -> tuple[Attention, str]:
        layer, kept = _built(preset, changed)
        return layer.spec, kept

    return published


def build_layer(preset: str | None, options: Mapping[str, Any]) -> Layer:
    """A layer: a preset or a configuration file with changes, or fields alone.

    One line on stderr tells widths that a changed n_heads or d_model leaves as they are.

    Args:
        preset: a SPEC, which may have fields of its own.
        options: the texts of the options.

    Raises:
        InputError: with the value as it was typed.
    """
    layer, kept = _built(preset, options)
    if kept:
        say("note", f"{preset}: {kept}")
    return layer


def _built(preset: str | None, options: Mapping[str, Any]) -> tuple[Layer, str]:
    """The layer, and what its record's `kept_widths` says of it."""
    preset, options = own_fields(preset, options)
    typed = _typed(options)
    if preset is not None and is_path(preset):
        return _configured_layer(preset, options)
    _refuse_config_options(options)
    if preset is None:
        if not typed:
            allowed = f"a preset (freeattn architectures lists them) or sizes such as {_EXAMPLE}"
            raise InputError("preset", "(not given)", allowed)
        return Layer(_reported(typed, lambda: _sized(freeattn.Attention(**typed_fields(options)), typed))), ""
    fields = typed_fields(options, preset)
    spec = _reported(typed, lambda: _sized(freeattn.architecture(preset, **fields), typed))
    return Layer(spec), _preset(preset).kept_widths(spec, typed)


def kinds_spec(preset: str, options: Mapping[str, Any]) -> Attention:
    """What kind of layer a preset or a configuration file describes; sizes and beta do not count."""
    if is_path(preset):
        return _read_config(preset, options).attention(n_tokens=1, beta=1)
    _refuse_config_options(options)
    return freeattn.architecture(preset, n_tokens=1)


def changed_spec(base: Attention, options: Mapping[str, Any], fields: Mapping[str, Any]) -> Attention:
    """A base specification with the fields that `options` were read into."""
    typed = _typed(options)
    return _reported(typed, lambda: _sized(base.replace(**fields), typed))


def typed_fields(
    options: Mapping[str, Any], preset: str | None = None, latents: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The fields of `Attention` that the options give, as changes of a preset or file (with its latents) if any.

    Raises:
        InputError: with the value as it was typed.
    """
    typed = _typed(options)
    apart = {*COMPOUND, _FINITE_SIZE}
    fields = {name: _value(name, text, preset) for name, text in typed.items() if name not in apart}
    return fields | _reported(typed, lambda: composed_fields(typed, _latents(preset) if latents is None else latents))


def _sized(spec: Attention, typed: Mapping[str, str]) -> Attention:
    return spec.with_finite_size() if _FINITE_SIZE in typed else spec


def _typed(options: Mapping[str, Any]) -> dict[str, str]:
    """The options for fields that were given, as texts; a flag is given when it is on."""
    given = {name: text for name, text in options.items() if text not in (None, False) and name not in _OF_CONFIGS}
    return {name: "on" if text is True else text for name, text in given.items()}


def _read_config(path: str, options: Mapping[str, Any]) -> Any:
    name = os.path.basename(path).removesuffix(".json")
    if not os.path.exists(path) and is_preset(name):
        hint = f"a file that exists; the preset of this name is {name}, without folder or .json"
        raise InputError("config", path, hint)
    return freeattn.read_config(path, **{name: options.get(name) for name in _OF_CONFIGS})


def _configured_layer(path: str, options: Mapping[str, Any]) -> tuple[Layer, str]:
    layer = _read_config(path, options)
    spec, fields = _configured_spec(path, layer, options)
    statement = layer.statement(spec, fields)
    defaults = ", ".join(f"{name} = {value}" for name, value in statement["defaults"].items())
    lines = (
        f"Read as {statement['model_type']}: n_tokens {_parenthesized(statement['n_tokens'])}, "
        f"beta {_parenthesized(statement['beta']['rule'])}",
        f"Not in the file, taken from the library: {defaults}" if defaults else "",
    )
    return Layer(spec, statement, tuple(line for line in lines if line)), layer.kept_widths(spec, fields)


def _configured_spec(path: str, layer: Any, options: Mapping[str, Any]) -> tuple[Attention, dict[str, Any]]:
    """The specification of a file's layer, and the fields that the options give."""
    typed, fields = _typed(options), typed_fields(options, path, layer.latents)
    return _reported(typed, lambda: _sized(layer.attention(**fields), typed)), fields


def _parenthesized(text: str) -> str:
    return text if text == "given" else f"({text})"


def _refuse_config_options(options: Mapping[str, Any]) -> None:
    for name in _OF_CONFIGS:
        if options.get(name) is not None:
            raise InputError(name, options[name], "nothing without a configuration file")


def _latents(preset: str | None) -> dict[str, Any]:
    return _preset(preset).latents if preset is not None and is_preset(preset) else {}


@cache  # a sweep asks for each of its layers
def _preset(name: str) -> Any:
    return next(record for record in freeattn.architectures() if record.name == name)


def _value(name: str, text: str, preset: str | None) -> Any:
    if name in CHOICES:
        return text
    if name == "beta" and text == "init":
        if preset is None:
            raise InputError(name, text, 'a number; "init" needs a preset or a configuration file to take it from')
        return text
    return exact_number(name, text)


def _reported(typed: Mapping[str, str], build: Callable[[], Any]) -> Any:
    """What `build` returns; its errors name the option and the text that was typed."""
    try:
        return build()
    except InputError as error:
        raise _as_typed(error, typed) from None


def _as_typed(error: InputError, typed: Mapping[str, str]) -> InputError:
    """The same error with the value as the user wrote it, and without what only Python can be given."""
    allowed = error.allowed
    for in_python, here in _IN_PYTHON.items():
        allowed = allowed.replace(in_python, here)
    option, part = option_of(error.field)
    if option in typed:
        return InputError(option, typed[option], f"{part} {allowed}".strip())
    if error.value is None:
        return InputError(error.field, "(not given)", f"{allowed}, by {flag(error.field)} or a preset", error.source)
    return InputError(error.field, error.value, allowed, error.source)
