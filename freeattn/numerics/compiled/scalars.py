"""How kernels are compiled, and the scalar operations that the compiler's own versions of are slow or raise.

Every kernel serves float64 (real branches) and complex128. numba's complex division raises at 0 and its modulus is an
order of magnitude slower than a square root.
"""

from __future__ import annotations

import math
from typing import Any

from numba import njit, types
from numba.extending import overload

__all__ = ["kernel", "modulus", "oriented", "reciprocal", "scaled"]

_SMALL, _LARGE = 1e-280, 1e280  # between them neither square of a modulus nor its parts leave the range of doubles


def kernel(function: Any) -> Any:
    """A function compiled when first called and kept on disk; division by 0 gives inf or nan, as in numpy."""
    return njit(cache=True, error_model="numpy", nogil=True)(function)


def modulus(x: Any) -> Any:
    """|x|."""


def scaled(x: Any, factor: Any) -> Any:
    """x times a real number."""


def reciprocal(x: Any) -> Any:
    """1/x; not finite at 0."""


def oriented(x: Any) -> Any:
    """What has to be positive: the imaginary part of a complex number, a real one itself."""


@overload(oriented, strict=False)
def _oriented(x: Any) -> Any:
    if isinstance(x, types.Complex):
        return lambda x: x.imag
    return lambda x: x


@overload(modulus, strict=False)
def _modulus(x: Any) -> Any:
    if not isinstance(x, types.Complex):
        return lambda x: abs(x)

    def of_complex(x: Any) -> Any:
        square = x.real * x.real + x.imag * x.imag
        if _SMALL < square < _LARGE:
            return math.sqrt(square)
        return math.hypot(x.real, x.imag)

    return of_complex


@overload(scaled, strict=False)
def _scaled(x: Any, factor: Any) -> Any:
    if isinstance(x, types.Complex):
        return lambda x, factor: complex(x.real * factor, x.imag * factor)
    return lambda x, factor: x * factor


@overload(reciprocal, strict=False)
def _reciprocal(x: Any) -> Any:
    if not isinstance(x, types.Complex):
        return lambda x: 1.0 / x

    def of_complex(x: Any) -> Any:
        square = x.real * x.real + x.imag * x.imag
        if _SMALL < square < _LARGE:
            return complex(x.real / square, -x.imag / square)
        unit = 1.0 / max(abs(x.real), abs(x.imag))
        real, imag = x.real * unit, x.imag * unit
        square = real * real + imag * imag
        return complex(real / square * unit, -imag / square * unit)

    return of_complex
