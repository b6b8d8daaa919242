"""Exact derivatives of predictions with respect to the ratios of a layer and to β.

Nothing is differenced: with ∂w/∂p from the scalar equation of the law (`numerics.implicit`), or from its Dyson equation
(`numerics.implicit_words`),

    ∂E_λ/∂p = −(∂w/∂p)/γ + (λ/γ − σ²) ∂w'/∂p + (w − λw')/γ² (∂γ/∂p),        γ = γ_O,
    ∂L/∂p(t) = inverse Laplace transform of −(∂w/∂p)(s/2)/s at t,             ∂t*/∂p = −(∂L/∂p)/(∂L/∂t) at t*.

All for the law of mean one. Covered: layers, with a closed law or not, and β where all heads share it; expressions in
letters by their symbols.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

from freeattn.errors import InputError, NotCoveredError
from freeattn.model.precision import own_context
from freeattn.model.quantities import as_integer
from freeattn.numerics.exact_words import ExactWords
from freeattn.numerics.given_numbers import DOUBLE_DIGITS, rounded
from freeattn.numerics.implicit import ImplicitEquation
from freeattn.numerics.implicit_words import ImplicitWords
from freeattn.numerics.law import SpectralLaw
from freeattn.numerics.network import NetworkEngine
from freeattn.numerics.precise_integrals import as_number
from freeattn.predict.flow import arrival_time
from freeattn.predict.inputs import checked_digits, out_ratio, positive_number, spectral_law
from freeattn.predict.laplace import PreciseLoss, talbot
from freeattn.predict.shape import rank_fraction

__all__ = ["Sensitivities", "sensitivities"]

_GUARD_DIGITS = 5
_NEAR = 1e-7  # relative distance from an edge at which m is taken, outside the band


@dataclass(frozen=True)
class Sensitivities:
    """Derivatives of the predictions of one law; every method gives one number (or list) for each parameter.

    Attributes:
        law: the law of a layer, or of an expression whose sizes are symbols.
        digits: of the results: floats for 15, mpmath numbers beyond.
        parameters: of a closed law names among gamma_key, gamma_value, gamma_out, n_heads (at fixed ratios), beta;
            gamma_kv for a head sum. Of other layers also tokens_per_width, rho, latent_rank, query_latent_rank and
            position_width (over n_tokens), residual, and heads[0].gamma_key and the like; of an expression its symbols.
    """

    law: SpectralLaw
    digits: int = DOUBLE_DIGITS

    @cached_property
    def _equation(self) -> ImplicitEquation | ImplicitWords:
        exact, engine = self.law._exact, self.law._engine
        if isinstance(exact, ExactWords) and isinstance(engine, NetworkEngine):
            return ImplicitWords(exact, engine)
        return ImplicitEquation(self.law.spec)

    @cached_property
    def _law(self) -> SpectralLaw:
        """The law of mean one."""
        return self.law.normalized()

    @property
    def parameters(self) -> tuple[str, ...]:
        """What can be varied."""
        return self._equation.parameters

    @property
    def _working(self) -> int:
        return self.digits + _GUARD_DIGITS

    def degrees_of_freedom(self, penalty: Any = 1e-4, *, derivative: int = 0) -> dict[str, Any]:
        """∂w/∂p at fixed λ > 0, or ∂w'/∂p with derivative=1."""
        if derivative not in (0, 1) or isinstance(derivative, bool):
            raise InputError("derivative", derivative, "0 or 1")
        point, w = self._dof(penalty)
        return self._each(lambda name: self._equation.slopes(name, point, w, self._working)[1 + derivative])

    def ridge_error(self, penalty: Any = 1e-4, noise: Any = 0.1) -> dict[str, Any]:
        """∂E_λ/∂p at fixed λ > 0 and σ² > 0, of a layer with an output map."""
        point, w = self._dof(penalty)
        context = own_context(self._working)
        gamma = as_number(context, out_ratio(self.law, None))
        variance = positive_number("noise", noise, self._working)

        def change(name: str) -> Any:
            slope, of_w, of_slope = self._equation.slopes(name, point, w, self._working)
            direct = as_number(context, self._equation.out_change(name)) * (w - point * slope) / gamma**2
            return -of_w / gamma + (point / gamma - variance) * of_slope + direct

        return self._each(change)

    def flow_loss(self, t: Any) -> dict[str, Any]:
        """∂L/∂p at fixed t > 0."""
        change = self._loss_changes(positive_number("t", t, self._working))
        return self._each(change)

    def arrival_time(self, level: Any) -> dict[str, Any]:
        """∂t*/∂p where L(t*) = level; 0 at level 1, where t* = 0 whatever the parameters are."""
        working = self._working
        time = own_context(working).convert(arrival_time(self.law, level, digits=working))
        if not time:
            return self._each(lambda _: time)
        rate = PreciseLoss(self._law, working)(time, derivative=1)
        change = self._loss_changes(time)
        return self._each(lambda name: -change(name) / rate)

    def moments(self, order: int) -> dict[str, list[Any]]:
        """∂m_k/∂p for k = 1 … order, of the law of mean one (0 for the first)."""
        order = as_integer("order", order, "a positive integer", 1)
        return {
            name: [self._rounded(v) for v in self._equation.moments(name, order, self._working)]
            for name in self.parameters
        }

    def edges(self) -> dict[str, list[tuple[Any, Any]]]:
        """∂x/∂p for both ends of each band of the law of mean one; 0 at a hard edge, which stays at 0."""
        law = self._law
        bands = law.edges_to(self._working)

        def change(name: str, x: Any, side: int) -> Any:
            if x == 0:
                return x
            near = float(x) * (1 + side * _NEAR)
            return self._equation.edge(name, x, lambda: 1 + near * law.stieltjes(near).real, self._working)

        return {
            name: [(self._rounded(change(name, low, -1)), self._rounded(change(name, high, 1))) for low, high in bands]
            for name in self.parameters
        }

    def _each(self, change: Callable[[str], Any]) -> dict[str, Any]:
        return {name: self._rounded(change(name)) for name in self.parameters}

    def _rounded(self, value: Any) -> Any:
        return float(value) if self.digits == DOUBLE_DIGITS else rounded(value, self.digits)

    def _dof(self, penalty: Any) -> tuple[Any, Any]:
        point = positive_number("penalty", penalty, self._working)
        return point, self._w(point, self._working)

    def _w(self, point: Any, digits: int) -> Any:
        context = own_context(digits)
        point = context.convert(point)
        return 1 - point * as_number(context, self._law.stieltjes(-point, digits=digits))

    def _loss_changes(self, time: Any) -> Callable[[str], Any]:
        """∂L/∂p by the name of p: that of the plateau, and e^{−2ta} times the rest with a the left edge, as `laplace`.

        Values of w are kept for the next parameter.
        """
        law, context = self._law, own_context(self._working)
        if not law.edges or any(0 < atom.location < law.edges[0][0] for atom in law.atoms):
            raise NotCoveredError("derivatives of a loss with an atom between 0 and the first band")
        falls = {name: self._fall_of_plateau(name) for name in self.parameters}
        kept: dict[tuple[Any, int], tuple[Any, Any]] = {}

        def transform(name: str, shifted: Any, digits: int) -> Any:
            if (shifted, digits) not in kept:
                s = shifted - 2 * as_number(own_context(digits), law.edges_to(digits)[0][0])
                kept[shifted, digits] = s, self._w(s / 2, digits)
            s, w = kept[shifted, digits]
            return (-self._equation.change(name, s / 2, w, digits) + as_number(own_context(digits), falls[name])) / s

        def change(name: str) -> Any:
            edge = as_number(context, law.edges_to(self._working)[0][0])
            moving = context.exp(-2 * time * edge) * talbot(partial(transform, name), time, self._working)
            return moving - as_number(context, falls[name])

        return change

    def _fall_of_plateau(self, name: str) -> Fraction:
        """∂/∂p of rank/n beside a gap above 0, by which the plateau falls; at a hard edge it moves with the rest."""
        if not self.law.edges[0][0] > 0:
            return Fraction(0)
        if isinstance(self._equation, ImplicitWords):
            change = self._equation.rank_change(name)
            if change is None:
                raise NotCoveredError(f"derivatives of a loss by {name}, at which the rank has a kink")
            return change
        return Fraction(name == self._binding_ratio())

    def _binding_ratio(self) -> str | None:
        """The ratio that is the rank of the law over n, away from the others: the plateau falls by 1 with it."""
        law, spec = self.law, self.law.spec
        widths = ["gamma_key" if spec.tie.value == "key" else "gamma_value", "gamma_out"] if spec.has_values else []
        rank = float(rank_fraction(law))
        equal = [name for name in widths if name in self.parameters and float(getattr(spec, name)) == rank]
        return equal[0] if len(equal) == 1 and rank < 1 and law.edges[0][0] > 0 else None


def sensitivities(law: SpectralLaw, *, digits: int = DOUBLE_DIGITS) -> Sensitivities:
    """Derivatives of the predictions from this law with respect to its ratios and to β.

    Raises:
        InputError: for anything but a law on [0, ∞).
        NotCoveredError: for laws of law expressions and of free convolutions, for a law without anything to vary, and
            for infinitely many heads without a closed law.
    """
    found = Sensitivities(spectral_law(law), checked_digits(digits))
    found.parameters  # noqa: B018  # refuses what is not covered at once
    return found
