"""SpectralLaw: a limiting law in numbers."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import mpmath
import numpy as np
from numpy.typing import ArrayLike, NDArray

from freeattn.display import ShownAsTables
from freeattn.errors import BranchError, InputError, NotCoveredError
from freeattn.model.attention import Attention
from freeattn.model.precision import own_context
from freeattn.model.quantities import as_integer
from freeattn.numerics.engine import Engine
from freeattn.numerics.exact import Atom, ExactSide
from freeattn.numerics.given_numbers import DOUBLE_DIGITS, complex_array, digits_up_to, one_number, real_array, rounded
from freeattn.numerics.precise_integrals import as_number
from freeattn.numerics.quantiles import quantile_to

__all__ = ["Atom", "SpectralLaw"]

Array = NDArray[np.float64]

_MAX_DIGITS = 2000
_LEVEL_ROUNDING = 1e-13  # of a computed mass: a level this little above it still belongs to it
_EDGE_DIGITS = 20  # rounded once to a double
_MASS_TOLERANCE = 1e-9  # of total mass, and of the mean relative to itself; panels are resolved to about 1e-13
_FAR = 1e6  # times the reach of the law: what the series at infinity leaves out is below rounding


class SpectralLaw(ShownAsTables):
    """A probability law on the line: bands with a density, and atoms.

    For an `Attention` it is the limit of the empirical law of the n_tokens eigenvalues of M Mᵀ, M the centered output,
    zeros included (arXiv 2610.10033, Theorem 3.1). It says nothing about single outliers above the bulk. The Stieltjes
    transform is m(z) = ∫ ν(dx)/(x − z): Im m > 0 for Im z > 0, ρ = Im m(x + i0)/π.

    All functions of x, z or p are vectorized. `digits=` asks for more than double precision: the answer is then one
    mpmath number (one point at a time), and nothing global is changed.
    """

    shown_as: ClassVar[str] = "law"

    def __init__(self, engine: Engine, exact: ExactSide, checked: bool = False) -> None:
        self._engine = engine
        self._exact = exact
        self._unit = float(exact.unit(DOUBLE_DIGITS))
        if not checked:
            self._check()

    @property
    def spec(self) -> Any:
        """What the law was made from: an `Attention`, law expression, expression in letters, or `FreeConvolution`."""
        return self._exact.source

    @property
    def signed(self) -> bool:
        """Whether a value below 0 may occur: the law is of a symmetric matrix itself, or has support there."""
        places = [float(left) for left, _ in self.edges] + [float(atom.location) for atom in self.atoms]
        return getattr(self._exact, "signed", False) or min(places) < 0

    def __repr__(self) -> str:
        bands = ", ".join(f"[{a:.6g}, {b:.6g}]" for a, b in self.edges)
        atoms = ", ".join(f"{float(atom.weight):.6g} at {atom.location:g}" for atom in self.atoms) or "none"
        return f"<SpectralLaw mean {self.mean:.6g}, bands {bands or 'none'}, atoms {atoms}>"

    def __reduce__(self) -> Any:
        """By its recipe (`numerics.recipes`): numbers are computed anew where a law is unpickled."""
        return importlib.import_module("freeattn.numerics.recipes").reduced(self._exact)

    def __copy__(self) -> SpectralLaw:
        """The law itself: it is never changed."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> SpectralLaw:
        del memo
        return self

    def _check(self) -> None:
        """Total mass one and the exact mean, or the wrong root was taken somewhere."""
        mass = sum(self._engine.masses) + sum(float(atom.weight) for atom in self.atoms)
        if abs(mass - 1) > _MASS_TOLERANCE:
            raise BranchError(f"the law has total mass {mass:.12g} instead of 1: a root is on the wrong branch")
        ends = [x for band in self.edges for x in band] + [atom.location for atom in self.atoms]
        size, found = max(map(abs, ends)), self.integrate(lambda x: x)
        signed = min(ends) < 0  # terms of both signs cancel: relative to the size of the law then
        if abs(found - self.mean) > _MASS_TOLERANCE * max(abs(self.mean), size if signed else 1e-6 * size):
            raise BranchError(
                f"the law has mean {found:.12g} instead of {self.mean:.12g}: a root is on the wrong branch"
            )

    # Exact data ----------------------------------------------------------------------------------------------------

    @cached_property
    def mean(self) -> float:
        """The first moment."""
        return float(self.moments(1)[0])

    def moments(self, order: int, digits: int = DOUBLE_DIGITS, exact: bool = False) -> tuple[Any, ...]:
        """m_1 … m_order, from the exact series, not from the density; mpmath numbers when digits > 15.

        With exact=True as sympy expressions without rounding: rational numbers, or polynomials in the symbols θ₁ and θ₂
        where these are irrational (in c = θ₂/θ₁ for the law of mean one).
        """
        order = as_integer("order", order, "a positive integer", 1)
        if exact:
            return self._exact.exact_moments(order)
        values = self._exact.moments(order, _digits(digits))
        if digits > DOUBLE_DIGITS:
            return tuple(rounded(v, digits) for v in values)
        if not np.isfinite(found := [float(v) for v in values]).all():
            raise InputError("digits", digits, "more than 15: a moment exceeds the range of doubles")
        return tuple(found)

    @cached_property
    def atoms(self) -> tuple[Atom, ...]:
        """Point masses, ascending; weights are exact."""
        return tuple(Atom(self._unit * atom.location, atom.weight) for atom in self._exact.atoms)

    @cached_property
    def edges(self) -> tuple[tuple[float, float], ...]:
        """(left, right) of each band of the continuous spectrum, ascending, correct to double rounding."""
        return tuple((float(a), float(b)) for a, b in self.edges_to(_EDGE_DIGITS))

    def edges_to(self, digits: int) -> tuple[tuple[Any, Any], ...]:
        """`edges` as mpmath numbers with the given decimal digits."""
        unit = self._exact.unit(_digits(digits))
        bands = self._engine.bands(digits)
        return tuple((rounded(unit * band.left.x, digits), rounded(unit * band.right.x, digits)) for band in bands)

    @property
    def edge_exponents(self) -> tuple[tuple[Fraction, Fraction], ...]:
        """Power of |x − edge| with which the density starts at each end: 1/2, or 1/k − 1 at a hard edge at 0."""
        bands = self._engine.bands(DOUBLE_DIGITS)
        return tuple((band.left.exponent, band.right.exponent) for band in bands)

    @property
    def band_masses(self) -> tuple[float, ...]:
        """Mass of each band."""
        return self._engine.masses

    # Functions -----------------------------------------------------------------------------------------------------

    def density(self, x: ArrayLike, digits: int = DOUBLE_DIGITS) -> Any:
        """ρ(x) = Im m(x + i0)/π of the continuous part: 0 outside the bands, inf at a hard edge; atoms are not in it.

        Raises:
            InputError: for NaN or infinite x, and at an atom inside a band.
            BranchError: at a singular point, such as a cusp, that doubles do not resolve.
        """
        if _digits(digits) > DOUBLE_DIGITS:
            unit = self._exact.unit(digits)
            point = _one_number("x", x, real=True) / unit
            bands = self._engine.bands(digits)
            if any(edge.exponent < 0 and edge.x == point for band in bands for edge in (band.left, band.right)):
                return mpmath.inf
            return rounded(self._engine.density_to(point, digits) / unit, digits)
        points = _real_array("x", x, finite=True)
        for atom in self.atoms:
            if (points == atom.location).any() and any(a < atom.location < b for a, b in self.edges):
                raise InputError("x", atom.location, "a point off an atom that lies inside a band")
        return _as_given(x, self._engine.density(points / self._unit) / self._unit)

    def cdf(self, x: ArrayLike, digits: int = DOUBLE_DIGITS) -> Any:
        """ν((−∞, x]), right-continuous, atoms included.

        Raises:
            InputError: for NaN.
        """
        if _digits(digits) > DOUBLE_DIGITS:
            unit = self._exact.unit(digits)
            point = _one_number("x", x, real=True)
            slack = _mp(10, digits) ** (-digits)  # an atom's location is rounded, the point is not
            atoms = self._exact.atoms_to(digits)
            sides = [(weight, location - point <= slack * abs(location)) for location, weight in atoms]
            above = self._hard_ends_only_below(point)
            weights = [weight for weight, below in sides if below is not above]
            ends = {"lower" if above else "upper": point / unit}
            mass = sum(weights, self._engine.integrate_to(lambda t: t * 0 + 1, digits, **ends))
            return rounded(min(max(1 - mass if above else mass, 0), 1), digits)
        points = _real_array("x", x, finite=False)
        total = self._engine.mass_below(points / self._unit)
        for atom in self.atoms:
            total = total + float(atom.weight) * (points >= atom.location)
        return _as_given(x, np.clip(total, 0.0, 1.0))

    def _hard_ends_only_below(self, point: Any) -> bool:
        """Whether mass is told from the other side: beside an end where the density diverges it takes most digits."""
        pairs = zip(self.edges, self.edge_exponents, strict=True)
        ends = [x for band, powers in pairs for x, power in zip(band, powers, strict=True) if power < 0]
        return bool(ends) and all(end < point for end in ends)

    def quantile(self, p: ArrayLike, digits: int = DOUBLE_DIGITS) -> Any:
        """inf{x : cdf(x) ≥ p}; p = 0 gives the lower end of the support.

        Raises:
            InputError: for p outside [0, 1].
        """
        if _digits(digits) > DOUBLE_DIGITS:
            level = _mp(_one_number("p", p, real=True), digits)
            if not 0 <= level <= 1:
                raise InputError("p", p, "a probability in [0, 1]")
            return quantile_to(self, level, self._exact.atoms_to(digits), digits)
        levels = _real_array("p", p, finite=True)
        if ((levels < 0) | (levels > 1)).any():
            raise InputError("p", float(levels[(levels < 0) | (levels > 1)].flat[0]), "a probability in [0, 1]")
        return _as_given(p, self._quantiles(levels))

    def _quantiles(self, levels: Array) -> Array:
        result = np.full(levels.shape, np.nan)
        remaining = levels.copy()
        for atom in self.atoms:
            weight = float(atom.weight)
            before = float(self.cdf(atom.location)) - weight
            at_atom = (levels > before + _LEVEL_ROUNDING) & (levels <= before + weight)
            result[at_atom] = atom.location
            remaining = np.where(levels > before + weight, remaining - weight, remaining)
        free = np.isnan(result)
        if free.any() and self.edges:
            result[free] = self._unit * self._engine.quantile(np.maximum(remaining[free], 0.0))
        lowest = min([atom.location for atom in self.atoms] + [left for left, _ in self.edges])
        return np.where(levels == 0, lowest, result)

    def stieltjes(self, z: ArrayLike, digits: int = DOUBLE_DIGITS) -> Any:
        """m(z) = ∫ ν(dx)/(x − z); at real z the boundary value from the upper half-plane.

        Raises:
            InputError: at an atom or a hard edge, where m is infinite, and for NaN or infinite z.
        """
        if _digits(digits) > DOUBLE_DIGITS:
            number = _one_number("z", z, real=False)
            unit = self._exact.unit(digits)
            self._refuse_atoms(np.array([complex(number)]))
            return rounded(self._engine.stieltjes_to(number / unit, digits) / unit, digits)
        points = complex_array("z", z)
        if not np.isfinite(points).all():
            raise InputError("z", complex(points[~np.isfinite(points)].flat[0]), "a finite complex number")
        self._refuse_atoms(points)
        flat = points.ravel()
        m, far = self._far(flat), np.abs(flat) > _FAR * self._reach
        m[~far] = self._engine.stieltjes(flat[~far] / self._unit) / self._unit
        return complex(m[0]) if np.ndim(z) == 0 else m.reshape(points.shape)

    @cached_property
    def _reach(self) -> float:
        """The largest modulus of a point of the support."""
        return max([abs(x) for band in self.edges for x in band] + [abs(atom.location) for atom in self.atoms])

    def _far(self, z: NDArray[np.complex128]) -> NDArray[np.complex128]:
        """−1/z − m₁/z² − m₂/z³: m to rounding at |z| > 10⁶ × the support; it takes no equation to its limits."""
        inverse, far = np.zeros_like(z), np.abs(z) > _FAR * self._reach
        if not far.any():
            return inverse
        first, second = self.moments(2)
        np.divide(1, z, out=inverse, where=far)
        return np.asarray(-inverse - first * inverse**2 - second * inverse**3)

    def _refuse_atoms(self, points: NDArray[np.complex128]) -> None:
        for atom in self.atoms:
            if (points == atom.location).any():
                raise InputError("z", atom.location, "a point off the atoms, where the Stieltjes transform is infinite")

    def integrate(self, function: Callable[[Any], Any], digits: int = DOUBLE_DIGITS) -> Any:
        """∫ f dν, atoms included; f is called with arrays (doubles) or single mpmath numbers (digits > 15).

        Raises:
            InputError: when f is no function that gives one number, real or complex, for each point.
            ConvergenceError: when f is too rough on the support.
        """
        if not callable(function):
            raise InputError("function", function, "a function of x")
        if _digits(digits) > DOUBLE_DIGITS:
            unit = self._exact.unit(digits)
            atoms = [weight * function(location) for location, weight in self._exact.atoms_to(digits)]
            return sum(atoms, self._engine.integrate_to(lambda t: function(unit * t), digits))

        def values(x: Array) -> Any:
            found = function(x)
            if np.shape(found) != x.shape or np.asarray(found).dtype.kind not in "biufc":
                raise InputError("function", function, "one that gives an array of numbers for an array of points")
            return np.asarray(found)

        total = self._engine.integrate(lambda t: values(self._unit * t))
        return total + sum(float(atom.weight) * values(np.array([atom.location]))[0].item() for atom in self.atoms)

    def check(self) -> float:
        """Compare the two routes to this law: the largest relative difference of m(z) at 20 points of each half-plane.

        Raises:
            NotCoveredError: when there is one route only.
            BranchError: when they differ by more than 1e-10.
        """
        if not isinstance(self.spec, Attention):
            raise NotCoveredError("only the law of an attention layer has two routes")
        worst: float = importlib.import_module("freeattn.numerics.agreement").routes_agree(self.spec)
        return worst

    def certify(self, z: Any, digits: int = DOUBLE_DIGITS) -> Any:
        """A proved ball around m(z), and the density at real z; CertificationError without a proof."""
        return self._certifier.point(z, digits)

    def certify_edges(self, digits: int = DOUBLE_DIGITS) -> Any:
        """Proved balls around the ends of bands (`numerics.certificates.EdgeCertificate`); raises like `certify`."""
        return self._certifier.edges(self.edges, digits)

    @cached_property
    def _certifier(self) -> Any:
        return importlib.import_module("freeattn.numerics.certify").certifier_of(self._exact, self._engine)

    def psi(self, z: ArrayLike) -> Any:
        """ψ(z) = −1 − m(1/z)/z (`numerics.transforms_of_laws`, as the four below)."""
        return self._transforms.psi(self, z)

    def eta_transform(self, z: ArrayLike) -> Any:
        """η(z) = ψ(z)/(1 + ψ(z))."""
        return self._transforms.eta_transform(self, z)

    def r_transform(self, g: ArrayLike) -> Any:
        """R(g) = Σ κ_n g^{n−1}, for real g that −m takes beyond the support, and small complex g."""
        return self._transforms.r_transform(self, g)

    def s_transform(self, w: ArrayLike) -> Any:
        """S(w) = (1 + w)χ(w)/w of a law on [0, ∞), for real w that ψ takes at points whose inverse is off the hull."""
        return self._transforms.s_transform(self, w)

    def free_cumulants(self, order: int, digits: int = DOUBLE_DIGITS) -> tuple[Any, ...]:
        """κ_1 … κ_order, from the exact moments; mpmath numbers when digits > 15."""
        return self._transforms.free_cumulants(self, order, _digits(digits))

    def curve(self) -> Any:
        """The algebraic curve of m(z) over Q, where exact moments are rational (`numerics.transforms_of_laws`)."""
        return self._transforms.curve(self)

    @property
    def _transforms(self) -> Any:
        return importlib.import_module("freeattn.numerics.transforms_of_laws")

    def plot(
        self, ax: Any = None, *, sample: Any = None, normalized: bool = False, log: bool | None = None,
        cdf: bool = False, label: str = "limiting law", title: str = "",
    ) -> Any:
        """The Axes with the density, or the cdf, over a sample: `freeattn.report.plot_law` (needs the extra "plot")."""
        plot_law = importlib.import_module("freeattn.report.plot").plot_law  # matplotlib only when a picture is drawn
        return plot_law(self, ax, sample=sample, normalized=normalized, log=log, cdf=cdf, label=label, title=title)

    def normalized(self) -> SpectralLaw:
        """The same law with mean one.

        Raises:
            InputError: when the mean is not positive.
        """
        if not self.mean > 0:
            raise InputError("mean", self.mean, "positive to normalize")
        return SpectralLaw(self._engine, self._exact.normalized(), checked=True)  # the engine has been checked


def _digits(digits: int) -> int:
    return digits_up_to(_MAX_DIGITS, digits)


def _mp(value: Fraction | float, digits: int) -> Any:
    return as_number(own_context(digits + 10), value)


def _one_number(name: str, value: Any, real: bool) -> Any:
    """One finite number, exactly."""
    number, context = one_number(name, value, _MAX_DIGITS), own_context(_MAX_DIGITS)
    if not context.isfinite(number) or (real and context.im(number) != 0):
        raise InputError(name, value, "a finite real number" if real else "a finite complex number")
    return context.re(number) if real else number


def _real_array(name: str, value: ArrayLike, finite: bool) -> Array:
    points = real_array(name, value)
    bad = ~np.isfinite(points) if finite else np.isnan(points)
    if bad.any():
        raise InputError(name, float(points[bad].flat[0]), "finite numbers" if finite else "numbers, not NaN")
    return points


def _as_given(given: ArrayLike, values: Array) -> Any:
    return float(values) if np.ndim(given) == 0 else values
