"""A spectrum in a file, in place of simulated attention: the options of `freeattn verify` that say so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

import freeattn
from freeattn.cli.completion import complete_files
from freeattn.cli.spec import flag
from freeattn.errors import InputError

__all__ = ["GivenSpectrum", "given_spectrum", "spectrum_options"]

_Function = TypeVar("_Function", bound=Callable[..., Any])
_SPECTRUM = "Compare the values of this file (.npy, or text) with the law, in place of simulated attention."
_SINGULAR = "The file has singular values of M, not eigenvalues of M Mᵀ."
_NORMALIZED = "Compare spectrum and law divided by their means."


@dataclass(frozen=True, eq=False)
class GivenSpectrum:
    """The values of a file, and what they are."""

    name: str
    values: Any
    singular_values: bool
    normalized: bool

    def compared(self, spec: Any, law: Any) -> Any:
        """The verification of these values."""
        return freeattn.verify_spectrum(
            self.values, spec, law=law, singular_values=self.singular_values, normalized=self.normalized
        )


def spectrum_options(function: _Function) -> _Function:
    """--spectrum and what goes with it."""
    function = click.option("--normalized", is_flag=True, help=_NORMALIZED)(function)
    function = click.option("--singular-values", is_flag=True, help=_SINGULAR)(function)
    return click.option("--spectrum", metavar="FILE", help=_SPECTRUM, shell_complete=complete_files)(function)


def given_spectrum(
    context: click.Context, file: str | None, singular_values: bool, normalized: bool
) -> GivenSpectrum | None:
    """The spectrum that was given, read; None where attention is to be simulated.

    Raises:
        InputError: for options that do not go together, and as `read_spectrum`.
    """
    if file is None:
        for name, given in (("singular_values", singular_values), ("normalized", normalized)):
            if given:
                raise InputError(name, "on", "nothing without --spectrum FILE")
        return None
    for name in ("draws", "seed", "workers", "store"):
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            raise InputError(name, context.params[name], f"nothing next to {flag('spectrum')}, which draws nothing")
    return GivenSpectrum(file, freeattn.read_spectrum(file), singular_values, normalized)
