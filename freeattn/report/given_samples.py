"""What users hand to a picture of a law as a sample: one array of real numbers, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from freeattn.errors import InputError

__all__ = ["Sample", "sample_values"]

Sample: TypeAlias = NDArray[np.floating[Any]]

_ROUNDING = 1e-12  # of the largest value: so far below 0 a value of a solver of eigenvalues is 0
_ROUNDINGS = 8  # of the type of the values, where that is coarser
_NUMBERS = "iuf"
_ALLOWED = "real numbers in one dimension, a result of fa.sample, or a list of them"
_SQUARES = "squared singular values, which are at least 0 (down to -1e-12 of the largest they are taken as 0)"


def sample_values(sample: Any, signed: bool) -> Sample:
    """One array of all values; single precision stays what it is, for its zeros are rough.

    Args:
        sample: an array, a result of `fa.sample` (its softmax values), or a list of them, which are pooled.
        signed: whether values below 0 may occur. Where they may not, those that are 0 but for rounding are set to 0.

    Raises:
        InputError: for values that are not real, not finite, or below 0; for arrays of two dimensions, such as the
            matrix itself; when there is no value.
    """
    parts = [_cleaned(_array(one), signed) for one in _parts(sample)]
    values = np.concatenate(parts) if parts else np.empty(0)
    if not values.size:
        raise InputError("sample", "no values", "at least one number")
    return values


def _cleaned(values: NDArray[Any], signed: bool) -> Sample:
    """Finite values of one draw, those that are 0 but for the rounding of their type set to 0."""
    values = values if values.dtype.kind == "f" else values.astype(float)
    _refuse(~np.isfinite(values), values, "not finite", "finite numbers")
    if signed or not values.size:
        return values
    rounding = max(_ROUNDING, _ROUNDINGS * float(np.finfo(values.dtype).eps)) * float(values.max())
    _refuse(values < -max(rounding, 0.0), values, "below 0", _SQUARES)
    return np.maximum(values, 0)


def _parts(sample: Any) -> Iterator[Any]:
    """The draws of a list, or the sample as the only one."""
    several = isinstance(sample, (list, tuple)) and any(map(_is_draw, sample))
    yield from sample if several else [sample]


def _is_draw(one: Any) -> bool:
    """Whether it holds several values."""
    return isinstance(one, (list, tuple)) or bool(getattr(_drawn(one), "ndim", 0))


def _drawn(one: Any) -> Any:
    """The softmax values of a result of `fa.sample`; of a tensor `softmax` is a method."""
    values = getattr(one, "softmax", one)
    return one if callable(values) else values


def _array(one: Any) -> NDArray[Any]:
    try:
        values = np.asarray(one.compressed() if isinstance(one, np.ma.MaskedArray) else _drawn(one))
        if values.dtype.kind == "O":  # exact numbers and those of many digits
            if any(isinstance(item, (str, bytes, bool, np.bool_)) for item in values.flat):
                raise TypeError
            values = values.astype(float)
    except (TypeError, ValueError, OverflowError, RuntimeError):  # ragged lists, tensors that are part of a computation
        raise InputError("sample", f"a value of type {type(one).__name__}", _ALLOWED) from None
    if values.size and values.dtype.kind not in _NUMBERS:
        what = "complex numbers" if values.dtype.kind == "c" else f"an array of {values.dtype}"
        raise InputError("sample", what, _ALLOWED)
    if values.ndim != 1:
        allowed = f"{_ALLOWED}: of a matrix, its squared singular values"
        raise InputError("sample", f"an array of shape {values.shape}", allowed)
    return values


def _refuse(bad: NDArray[np.bool_], values: Sample, what: str, allowed: str) -> None:
    count = np.count_nonzero(bad)
    if count:
        first = int(np.argmax(bad))
        told = f"{count} of {values.size} values {what}, the first of them {values[first]:.6g} at position {first}"
        raise InputError("sample", told, allowed)
