"""From the texts of the command line to a specification."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import freeattn
from freeattn.cli.layer import COMPOUND, composed_fields, option_of
from freeattn.cli.numbers import exact_number
from freeattn.errors import InputError

if TYPE_CHECKING:  # the model loads when a specification is built, not for --help
    from freeattn.model.attention import Attention

__all__ = ["CHOICES", "build_spec", "changed_spec", "flag", "typed_fields"]

CHOICES: dict[str, tuple[str, ...]] = {
    "inputs": ("orthogonal", "gaussian"),
    "tie": ("none", "key-value", "output-key", "key-value-output"),
    "output": ("mha", "values", "attention", "head-sum"),
    "scores": ("softmax", "linear", "relu", "sigmoid"),
}
_FINITE_SIZE = "finite_size"  # what the θ's are, not a field of the layer
_EXAMPLE = "--n-tokens 512 --d-model 768 --n-heads 12 --d-key 64 --d-value 64"
_IN_PYTHON = {
    ", a symbol, or None": "", ", or a symbol": "", " or a symbol": "", "architectures()": "freeattn architectures",
    'inputs="gaussian"': "--inputs gaussian",
}


def flag(field: str) -> str:
    """The option that sets a field: "--n-tokens" for "n_tokens"."""
    return "--" + field.replace("_", "-")


def build_spec(preset: str | None, options: Mapping[str, Any]) -> Attention:
    """The specification: a preset with changes, or fields alone.

    Raises:
        InputError: with the value as it was typed.
    """
    typed = _typed(options)
    if preset is None:
        if not typed:
            allowed = f"a preset (freeattn architectures lists them) or sizes such as {_EXAMPLE}"
            raise InputError("preset", "(not given)", allowed)
        return _reported(typed, lambda: _sized(freeattn.Attention(**typed_fields(options)), typed))
    return _reported(typed, lambda: _sized(freeattn.architecture(preset, **typed_fields(options, preset)), typed))


def changed_spec(base: Attention, options: Mapping[str, Any], fields: Mapping[str, Any]) -> Attention:
    """A base specification with the fields that `options` were read into."""
    typed = _typed(options)
    return _reported(typed, lambda: _sized(base.replace(**fields), typed))


def typed_fields(options: Mapping[str, Any], preset: str | None = None) -> dict[str, Any]:
    """The fields of `Attention` that the options give, as changes of a preset where there is one.

    Raises:
        InputError: with the value as it was typed.
    """
    typed = _typed(options)
    apart = {*COMPOUND, _FINITE_SIZE}
    fields = {name: _value(name, text, preset) for name, text in typed.items() if name not in apart}
    return fields | _reported(typed, lambda: composed_fields(typed, _latents(preset)))


def _sized(spec: Attention, typed: Mapping[str, str]) -> Attention:
    return spec.with_finite_size() if _FINITE_SIZE in typed else spec


def _typed(options: Mapping[str, Any]) -> dict[str, str]:
    """The options that were given, as texts; a flag is given when it is on."""
    return {name: "on" if text is True else text for name, text in options.items() if text not in (None, False)}


def _latents(preset: str | None) -> dict[str, Any]:
    found = [record.mla for record in freeattn.architectures() if record.name == preset] if preset else []
    return found[0].fields() if found and found[0] is not None else {}


def _value(name: str, text: str, preset: str | None) -> Any:
    if name in CHOICES:
        return text
    if name == "beta" and text == "init":
        if preset is None:
            raise InputError(name, text, 'a number; "init" needs a preset, whose initialization it takes')
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
        return InputError(error.field, "(not given)", f"{allowed}, by {flag(error.field)} or a preset")
    return InputError(error.field, error.value, allowed)
