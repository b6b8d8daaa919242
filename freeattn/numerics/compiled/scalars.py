"""How kernels are compiled, and scalar operations of which the compiler's own versions raise, or are slow.

Kernels know complex numbers only: on a real branch imaginary parts are 0, and sums, products and quotients keep them
so. One version is compiled instead of two.
"""

from __future__ import annotations

import math
from typing import Any

from numba import njit

from freeattn.numerics.compiled.waiting import tell_of_compiling

__all__ = ["kernel", "modulus", "reciprocal", "scaled"]

_SMALL, _LARGE = 1e-280, 1e280  # between them neither a squared modulus nor its parts leave the range of doubles


def kernel(function: Any) -> Any:
    """A function compiled when first called and kept on disk; division by 0 gives inf or nan, as in numpy."""
    tell_of_compiling()
    return njit(cache=True, error_model="numpy", nogil=True)(function)


@kernel
def modulus(x: complex) -> float:
    """|x|; the library's hypot only where a square leaves the range of doubles."""
    square = x.real * x.real + x.imag * x.imag
    if _SMALL < square < _LARGE:
        return math.sqrt(square)
    return math.hypot(x.real, x.imag)


@kernel
def scaled(x: complex, factor: float) -> complex:
    """x times a real number."""
    return complex(x.real * factor, x.imag * factor)


@kernel
def reciprocal(x: complex) -> complex:
    """1/x; not finite at 0, where complex division would raise."""
    square = x.real * x.real + x.imag * x.imag
    if _SMALL < square < _LARGE:
        return complex(x.real / square, -x.imag / square)
    unit = 1.0 / max(abs(x.real), abs(x.imag))
    real, imag = x.real * unit, x.imag * unit
    square = real * real + imag * imag
    return complex(real / square * unit, -imag / square * unit)
