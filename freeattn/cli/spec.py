"""From the texts of the command line to a specification.

Numbers are read exactly: "1/2" and "0.1" are the fractions that they look like, not the nearest double.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import freeattn
from freeattn.errors import InputError

if TYPE_CHECKING:  # the model loads when a specification is built, not for --help
    from freeattn.model.attention import Attention

__all__ = ["CHOICES", "build_spec", "exact_number", "flag"]

CHOICES: dict[str, tuple[str, ...]] = {
    "tie": ("none", "key-value"),
    "output": ("mha", "values", "attention", "head-sum"),
    "scores": ("softmax", "linear", "relu", "sigmoid"),
}
_EXAMPLE = "--n-tokens 512 --d-model 768 --n-heads 12 --d-key 64 --d-value 64"
_IN_PYTHON = {", or a symbol": "", " or a symbol": "", "architectures()": "freeattn architectures"}
_LONGEST = 1000  # characters; the conversion of longer texts can take long
_NUMBER = re.compile(r"[+-]?(\d+/\d+|(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?)")  # 3 digits reach every double


def flag(field: str) -> str:
    """The option that sets a field: "--n-tokens" for "n_tokens"."""
    return "--" + field.replace("_", "-")


def exact_number(field: str, text: str) -> int | Fraction:
    """The number that a text denotes, exactly: "12", "1/2", "0.559", "1e-3".

    Raises:
        InputError: for anything else (nan and inf included), naming the field.
    """
    stripped = text.strip()
    allowed = "a number such as 12, 0.5, 1e-3 or 1/2"
    if not (stripped.isascii() and len(stripped) <= _LONGEST and _NUMBER.fullmatch(stripped)):
        raise InputError(field, text, allowed)
    try:
        number = Fraction(stripped)
    except ZeroDivisionError:
        raise InputError(field, text, allowed) from None
    return number.numerator if number.denominator == 1 else number


def build_spec(
    preset: str | None, options: Mapping[str, str | None], base: Attention | None = None
) -> Attention:
    """The specification: a preset with changes, a base specification with changes, or fields alone.

    Raises:
        InputError: with the value as it was typed.
    """
    typed = {name: text for name, text in options.items() if text is not None}
    fields = {name: _value(name, text, preset) for name, text in typed.items()}
    if preset is None and base is None and not fields:
        allowed = f"a preset (freeattn architectures lists them) or sizes such as {_EXAMPLE}"
        raise InputError("preset", "(not given)", allowed)
    try:
        if base is not None:
            return base.replace(**fields)
        if preset is None:
            spec: Attention = freeattn.Attention(**fields)
        else:
            spec = freeattn.architecture(preset, **fields)
        return spec
    except InputError as error:
        raise _as_typed(error, typed) from None


def _value(name: str, text: str, preset: str | None) -> Any:
    if name in CHOICES:
        return text
    if name == "beta" and text == "init":
        if preset is None:
            raise InputError(name, text, 'a number; "init" needs a preset, whose initialization it takes')
        return text
    return exact_number(name, text)


def _as_typed(error: InputError, typed: Mapping[str, str]) -> InputError:
    """The same error with the value as the user wrote it, and without what only Python can be given."""
    allowed = error.allowed
    for in_python, here in _IN_PYTHON.items():
        allowed = allowed.replace(in_python, here)
    if error.field in typed:
        return InputError(error.field, typed[error.field], allowed)
    if error.value is None:
        return InputError(error.field, "(not given)", f"{allowed}, by {flag(error.field)} or a preset")
    return InputError(error.field, error.value, allowed)
