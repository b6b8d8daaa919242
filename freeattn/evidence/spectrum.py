"""A spectrum that a user computed, against a law: `verify_spectrum`.

The values are eigenvalues of M Mᵀ, or singular values of M, from any simulation. What is compared are all n
eigenvalues, zeros included; where a user gave fewer, the rest are zeros that a library left out (a matrix of rank r has
r nonzero ones, and many libraries return min(rows, columns) values).

Verdict: a finding fails when it deviates from the law by more than its allowance. For a layer with sizes the allowance
is what finite size is expected to do plus the noise of one draw (see `criteria`); for any other law noise alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freeattn.display import ShownAsTables
from freeattn.errors import InputError
from freeattn.evidence.against_law import AgainstLaw, Finding, finding
from freeattn.evidence.band_outliers import Outlier, outliers_of
from freeattn.evidence.compare import LawTable, Spectrum, as_spectrum
from freeattn.evidence.criteria import criteria_against_law
from freeattn.evidence.finite_size import FiniteSize, finite_size
from freeattn.evidence.written import verdict
from freeattn.model.attention import Attention
from freeattn.model.expression import Expression
from freeattn.model.quantities import as_nonnegative, as_size
from freeattn.numerics.law import SpectralLaw
from freeattn.numerics.limiting import law as limiting_law

__all__ = ["SpectrumVerification", "verify_spectrum"]

MOST_VALUES = 1_000_000
_NEGATIVE = 1e-6  # relative to the largest value: what single precision leaves of a zero, of either sign
_WIDTHS = ("n_tokens", "d_model", "d_key", "d_value", "d_out")
_LEAST_WIDTH = 16  # smaller numbers are near too much
_NEAR_FACTOR = 0.05  # of a width: the mean of one draw is nearer to its limit
_SAME_UNITS = 0.2  # a ratio of means further from 1 is more often another unit than a deviation
_LISTED = 20
_FARTHEST = 1e75  # of the largest eigenvalue from 1, up or down: fourth powers stay in the range of doubles


@final
@dataclass(frozen=True, eq=False, repr=False)
class SpectrumVerification(AgainstLaw, ShownAsTables):
    """A given spectrum against a law.

    Attributes:
        law: what it was compared with, of mean one when `normalized`.
        n_tokens: number of eigenvalues compared, with `padded` zeros that were not among the given values.
        normalized: True when both sides were divided by their mean.
        mean_ratio: mean of the values over the mean of the law, before that.
        findings: the statistics with their verdict.
        edges: smallest nonzero and largest value; `outliers`: values outside the bands, the furthest first.
        warnings: sentences on units, zeros and what limits the comparison.
        spectrum: the n_tokens values, ascending.
    """

    shown_as: ClassVar[str] = "spectrum-verification"

    law: SpectralLaw
    n_tokens: int
    padded: int
    normalized: bool
    mean_ratio: float
    findings: tuple[Finding, ...]
    edges: tuple[float, float]
    outliers: tuple[Outlier, ...]
    warnings: tuple[str, ...]
    spectrum: Spectrum

    def __repr__(self) -> str:
        return f"<SpectrumVerification of {self.n_tokens} values: {verdict(self.rows())}>"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form: plain numbers, texts and None; without the values. The furthest outliers are listed."""
        spec = self.law.spec
        return {
            "spec": spec.to_dict() if isinstance(spec, Attention) else None,
            "n_tokens": self.n_tokens, "padded_zeros": self.padded, "normalized": self.normalized,
            "mean_ratio": self.mean_ratio, "passed": self.passed,
            "edges": {"measured": list(self.edges), "law": [[float(end) for end in band] for band in self.law.edges]},
            "outliers": {
                "count": len(self.outliers), "furthest": [one.to_dict() for one in self.outliers[:_LISTED]],
            },
            "warnings": list(self.warnings), "statistics": [found.to_dict() for found in self.findings],
        }


def verify_spectrum(
    values: ArrayLike, source: Attention | Expression | SpectralLaw, *, n_tokens: int | None = None,
    singular_values: bool = False, normalized: bool = False, zero_below: float | None = None,
    law: SpectralLaw | None = None,
) -> SpectrumVerification:
    """Compare given eigenvalues of M Mᵀ (or singular values of M) with a limiting law.

    Args:
        values: one-dimensional, real and finite, in any order; not negative beyond rounding.
        source: a layer or an expression, whose law is compared with; or a law.
        n_tokens: rows of M (default: those of the layer, else as many as there are values). With fewer values the
            others are zeros.
        singular_values: the values are singular values of M: they are squared.
        normalized: compare spectrum and law divided by their means, for values in units of their own.
        zero_below: values below this share of the largest are zeros. Default: their number times the rounding of their
            type, which is the error of an eigenvalue or singular value; numbers that were computed in single precision
            and stored in double need their own, about 1e-7 times their number.
        law: the law of a layer, where it is at hand already.

    Raises:
        InputError: for values that are not a spectrum of n_tokens values, and for a source without a law.
    """
    _refuse_swapped(values, source)
    given, smallest = _checked(values, singular_values, zero_below)
    found = _law_of(source, law)
    n = _count(given, found, n_tokens)
    spectrum = np.concatenate([np.zeros(n - len(given)), given])
    if not spectrum[-1] > 0:
        raise InputError("values", "zeros only", "at least one value above 0")
    ratio = float(spectrum.mean() / found.mean)
    compared, reference = spectrum, found
    if normalized:
        compared, reference = spectrum / spectrum.mean(), found.normalized()
    spec = found.spec
    layer = (spec, finite_size(spec)) if isinstance(spec, Attention) and _sized(spec, n) else None
    table = LawTable.of(reference, n)
    with np.errstate(over="ignore"):  # a moment that is not finite fails
        findings = tuple(finding(one, [compared], table) for one in criteria_against_law(table, n, 1, layer))
    return SpectrumVerification(
        law=reference, n_tokens=n, padded=n - len(given), normalized=normalized, mean_ratio=ratio, findings=findings,
        edges=(float(compared[compared > 0][0]), float(compared[-1])), outliers=outliers_of(compared, reference),
        warnings=(
            *_warnings(_untested(ratio) if normalized else _units(spectrum, found, ratio), n - len(given), n, layer),
            *_unresolved(table, compared, smallest),
        ),
        spectrum=compared,
    )


def _refuse_swapped(values: object, source: object) -> None:
    sources = (Attention, Expression, SpectralLaw)
    if isinstance(values, sources):
        swapped = "; the two are swapped" if not isinstance(source, sources) else ""
        allowed = f"the eigenvalues, an array, before the layer: verify_spectrum(values, source){swapped}"
        raise InputError("values", values, allowed)
    if not isinstance(source, sources):
        raise InputError("source", _kind(source), "a layer (Attention), an expression in letters, or a law")


def _kind(value: object) -> str:
    """What stands where something else was expected, in few words."""
    return type(value).__name__ if hasattr(value, "__len__") and not isinstance(value, str) else repr(value)


def _checked(values: ArrayLike, singular_values: bool, zero_below: float | None) -> tuple[Spectrum, float]:
    """Ascending squared singular values from what a user gave, and below which share of the largest they are zeros."""
    array, share = _real_vector(values)
    if zero_below is not None:
        share = float(as_nonnegative("zero_below", zero_below, "a number from 0 to 1, or None"))
        if share > 1:
            raise InputError("zero_below", zero_below, "a number from 0 to 1, or None")
    if not np.isfinite(array).all():
        place = int(np.flatnonzero(~np.isfinite(array))[0])
        raise InputError("values", f"{array[place]} at position {place}", "finite numbers")
    low, high = int(array.argmin()), float(np.abs(array).max())
    if array[low] < -max(_NEGATIVE, share) * high:
        allowed = "nonnegative numbers: singular values of M, or eigenvalues of M Mᵀ (not of a symmetric M itself)"
        raise InputError("values", f"{array[low]:.6g} at position {low}", allowed)
    far = _FARTHEST ** (0.5 if singular_values else 1)
    if high > far or 0 < high < 1 / far:
        allowed = f"one from {1 / far:.1g} to {far:.1g}: take another unit"
        raise InputError("values", f"a largest value of {high:.6g}", allowed)
    if singular_values:
        return as_spectrum(np.maximum(array, 0) ** 2, share**2), share**2
    return as_spectrum(np.maximum(array, 0), share), share


def _real_vector(values: ArrayLike) -> tuple[NDArray[np.float64], float]:
    """The values as doubles, and their number times the rounding of the type they came in."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a ragged list must not become an array of objects in silence
        try:
            array = np.asarray(values)
        except (ValueError, TypeError, Warning):
            raise InputError("values", type(values).__name__, "a one-dimensional array of numbers") from None
    if array.dtype.kind not in "iuf":
        raise InputError("values", f"an array of {array.dtype}", "real numbers")
    if array.ndim != 1:
        allowed = "one dimension: the values of one spectrum (of several draws, one after the other)"
        raise InputError("values", f"an array of shape {array.shape}", allowed)
    if not 0 < len(array) <= MOST_VALUES:
        raise InputError("values", f"an array of length {len(array)}", f"1 to {MOST_VALUES} values")
    rounding = np.finfo(array.dtype if array.dtype.kind == "f" else np.float64).eps
    return array.astype(np.float64), min(len(array) * float(rounding), 1.0)


def _law_of(source: object, law: SpectralLaw | None) -> SpectralLaw:
    found = law
    if found is None:
        found = source if isinstance(source, SpectralLaw) else limiting_law(source)  # type: ignore[arg-type]
    if found.edges[0][0] < 0 or any(float(atom.location) < 0 for atom in found.atoms):
        raise InputError("source", source, "a law of squared singular values; this one reaches below 0")
    return found


def _count(given: Spectrum, law: SpectralLaw, n_tokens: int | None) -> int:
    own = getattr(law.spec, "n_tokens", None)
    n = as_size("n_tokens", n_tokens) if n_tokens is not None else own if isinstance(own, int) else len(given)
    if isinstance(own, int) and n != own:
        raise InputError("n_tokens", n, f"{own}, that of the layer")
    if not isinstance(n, int) or not len(given) <= n <= MOST_VALUES:
        allowed = f"at most n_tokens = {n} values, the eigenvalues of M Mᵀ (MᵀM has more zeros when M is wide)"
        raise InputError("values", f"an array of length {len(given)}", allowed)
    return n


def _sized(spec: Attention, n: int) -> bool:
    """Whether effects of finite size can be computed."""
    return spec.ratios is None and spec.n_tokens == n


def _unresolved(table: LawTable, spectrum: Spectrum, smallest: float) -> Iterator[str]:
    """Beside a hard edge at 0 a law has mass where eigenvalues in doubles are nothing but rounding."""
    mass = float(table.law.cdf(smallest * spectrum[-1])) - table.zero_weight
    if mass * len(spectrum) >= 1:
        yield (
            f"values below {smallest:.2g} of the largest count as zeros, and the law has {mass * len(spectrum):.3g} of "
            f"{len(spectrum)} values there: singular values of M resolve them, eigenvalues of M Mᵀ do not"
        )


def _untested(ratio: float) -> str | None:
    """What a comparison of mean-one forms says nothing about, where that may hide a mistake."""
    if _near_one(ratio):
        return None
    return (
        f"mean-one forms test neither the scale of M (the mean of the values is {ratio:.6g} times that of the law) "
        "nor, to speak of, β: values from scores without 1/√d_key pass too"
    )


def _units(spectrum: Spectrum, law: SpectralLaw, ratio: float) -> str | None:
    """Why the mean of the values is so many times that of the law: the likeliest cause."""
    mean, n = float(law.mean), len(spectrum)
    if _near_one(ratio):
        return None
    far = f"the mean of the values is {ratio:.6g} times that of the law"
    if spectrum[-1] - mean > 0.5 * abs(ratio - 1) * mean * n:
        share = 100 * float(spectrum[-1] / spectrum.sum())
        return f"{far}, and one value holds {share:.3g} % of their sum: is M centered, 1/n subtracted from each weight?"
    if _near_one(float(np.mean(spectrum**2) / mean)):
        return (
            f"{far}, and the mean of their squares is its own: are they singular values (singular_values=True, "
            "--singular-values)?"
        )
    return (
        f"{far} (root: {ratio**0.5:.6g}{_known_factor(ratio, law.spec)}): is 1/√d_key in the scores, and is β that of "
        "M? If M is in other units, multiply M accordingly, or compare mean-one forms (normalized=True, --normalized), "
        "which hardly depend on β"
    )


def _known_factor(ratio: float, spec: Any) -> str:
    """The width of the layer that the factor may be: W^O without 1/√(n_heads·d_value), for example."""
    given = ((name, getattr(spec, name, None)) for name in _WIDTHS)
    sizes = {name: size for name, size in given if isinstance(size, int) and size >= _LEAST_WIDTH}
    for name in ("d_key", "d_value"):
        if name in sizes and spec.n_heads > 1:
            sizes[f"n_heads·{name}"] = spec.n_heads * sizes[name]
    near = [
        text for name, size in sizes.items() for text, factor in ((name, size), (f"1/{name}", 1 / size))
        if abs(ratio / factor - 1) < _NEAR_FACTOR
    ]
    return f"; near {' or '.join(near)}" if near else ""


def _near_one(ratio: float) -> bool:
    return 1 - _SAME_UNITS <= ratio <= 1 / (1 - _SAME_UNITS)


def _warnings(
    units: str | None, padded: int, n: int, layer: tuple[Attention, FiniteSize] | None
) -> Iterator[str]:
    if units:
        yield units
    if padded:
        yield f"{padded} of {n} eigenvalues were not given and are taken as zeros (the rank of M is below n_tokens)"
    if layer is None:
        yield "allowances are those of Gaussian noise alone: the law is not that of a layer with sizes"
