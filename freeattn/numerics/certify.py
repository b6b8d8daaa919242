"""Certificates of a law: from a point, or an edge, to a report of what is proved about it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from flint import fmpq
from numpy.typing import NDArray

from freeattn.errors import BranchError, CertificationError, ConvergenceError, NotCoveredError
from freeattn.model.attention import Attention
from freeattn.model.expression import Expression
from freeattn.model.precision import new_context
from freeattn.numerics.backends import precise_traces, trace_equation_at_once, value_proofs
from freeattn.numerics.certificates import (
    BAND,
    BRANCHES,
    DYSON,
    EDGES_NOT_PROVED,
    EDGES_PROVED,
    FLOATING_POINT,
    GAP,
    LIBRARIES,
    PROVED,
    UPPER,
    Certificate,
    CertifiedBall,
    CertifiedEdge,
    EdgeCertificate,
    ball_of,
)
from freeattn.numerics.descent import Descent
from freeattn.numerics.dyson_tables import mapped
from freeattn.numerics.enclosures import double_of, exactly, rounded
from freeattn.numerics.engine import Engine
from freeattn.numerics.exact import ExactSide
from freeattn.numerics.exact_points import exact_pair
from freeattn.numerics.exact_traces import ExactTraces, Pair
from freeattn.numerics.exact_weights import EnclosedWeights
from freeattn.numerics.exact_words import ExactWords, words_law
from freeattn.numerics.fold_proofs import ProvedFold, place_fold, prove_fold, refine_fold
from freeattn.numerics.folds import Fold, find_fold
from freeattn.numerics.given_numbers import DOUBLE_DIGITS, digits_up_to
from freeattn.numerics.network import NetworkEngine
from freeattn.numerics.polynomials import to_context
from freeattn.numerics.real_axis import BAND as IN_BAND
from freeattn.numerics.real_axis import GAP as IN_GAP
from freeattn.numerics.real_axis import Axis
from freeattn.numerics.root_proofs import Root, System, in_cone, increasing, prove, refine, value_of
from freeattn.numerics.trace_balls import TraceBalls
from freeattn.numerics.trace_equation import TraceEquation
from freeattn.numerics.trace_pattern import keeps_pattern

__all__ = ["Certifier", "certifier_of"]

MOST_DIGITS = 200  # residuals are handed on as doubles: their size stays far from underflow
_GUARD_DIGITS = 30
_FEW_DIGITS = 80  # that few rounds of refinement reach
_ROUNDS = 30  # of refinement; each gains ten digits or so
_REMEMBERED = 256  # solutions from which others start
_NEWTON_STEPS = 8  # from there
_SETTLED = 1e-10  # relative: the last step of Newton's method, after which rounding is left
_NEAR = 0.2  # relative distance of a remembered point that may serve as a start

_BESIDE = (1e-4, 1e-2, 1e-6)  # of the room beside an edge
_BESIDE_ZERO = 1e-5  # of the size of the law
_SAME_EDGE = 1e-9  # relative distance of a fold from the edge it belongs to

Numbers = NDArray[Any]


def certifier_of(exact: ExactSide, engine: Engine | None = None) -> Certifier:
    """What proves values of a law; an engine of Dyson equations has found the folds already.

    Raises:
        NotCoveredError: for law expressions, which are not given by words, and for infinitely many heads.
    """
    if isinstance(exact, ExactWords):
        if not isinstance(engine, NetworkEngine):
            return Certifier(exact, exact.mean_one)
        certifier = Certifier(exact, exact.mean_one, engine.equation)
        certifier.know(engine.folds)
        return certifier
    if not isinstance(exact.source, (Attention, Expression)):
        raise NotCoveredError("certificates are for laws of attention layers and of expressions in letters")
    return Certifier(words_law(exact.source, "gram", None), bool(getattr(exact, "mean_one", False)))


class Certifier:
    """Certificates of the law of some words, in its own unit or the one of mean one.

    Args:
        words: the exact data of the law.
        mean_one: whether the unit is the one of mean one.
        equation: the equation in doubles, for starts; made when there is none yet.

    Raises:
        CertificationError: when the theorem about the physical root does not apply to the equation.
    """

    def __init__(self, words: ExactWords, mean_one: bool, equation: TraceEquation | None = None) -> None:
        if not keeps_pattern(words.system):
            raise CertificationError("a positive imaginary part of all blocks creates traces that the equation lacks")
        self._words, self._mean_one = words, mean_one
        self._weights: dict[int, EnclosedWeights] = {}
        self._systems: dict[int, tuple[System, fmpq]] = {}
        self._balls = TraceBalls(self._enclosed(15).tables())
        self.equation = equation or trace_equation_at_once(words.tables(0))
        second = float(words._moments(2, 17)[1])
        self._size = second**0.5
        self._descent = Descent(self.equation, self._size)
        self.axis = Axis(self.equation, self._descent)
        self._known: list[tuple[complex, Numbers]] = []
        self._folds: dict[tuple[int, str], Fold] = {}
        self._precise: dict[int, Any] = {}

    def _enclosed(self, digits: int) -> EnclosedWeights:
        if digits not in self._weights:
            self._weights[digits] = EnclosedWeights(self._words, self._mean_one, digits + _GUARD_DIGITS)
        return self._weights[digits]

    def system(self, digits: int) -> tuple[System, fmpq]:
        """(the equation to some digits, what one unit of the law is in the unit of the equation)."""
        if digits not in self._systems:
            weights = self._enclosed(digits)
            exact = ExactTraces(weights.tables(), self._balls, digits)
            per_unit, spread = rounded(weights.unit().inverse(), digits + _GUARD_DIGITS)
            width = exact.width + 2 * double_of(spread / per_unit)
            self._systems[digits] = System(exact, self._balls, width), per_unit
        return self._systems[digits]

    def assumptions(self, digits: int) -> tuple[Any, ...]:
        """What every certificate rests on."""
        return (DYSON, FLOATING_POINT, LIBRARIES, *self._enclosed(digits).assumptions)

    # Points --------------------------------------------------------------------------------------------------------

    def point(self, z: Any, digits: int) -> Certificate:
        """The certificate of m(z), and of the density at real z.

        Raises:
            CertificationError: when there is no proof that the value is known to the digits.
            InputError: for what is not a finite number.
        """
        digits = digits_up_to(MOST_DIGITS, digits)
        given = exact_pair(z)
        per_unit = self.system(digits)[1]
        upper = (given[0] * per_unit, abs(given[1]) * per_unit)
        report = self._from_any_start(z, upper, digits)
        if given[1] < 0:
            ball = report.stieltjes
            conjugate = CertifiedBall(ball.midpoint.conjugate(), ball.radius)
            return Certificate(z, report.place, conjugate, None, report.proved, report.assumptions, report.branch,
                               report.contraction)
        return report

    def proved(self, z: Any, scaled: Pair, start: Numbers, digits: int) -> Certificate:
        """The certificate from a solution in doubles, complex off the axis and in bands, real in gaps.

        `scaled` is the point in the unit of the equation.
        """
        system = self.system(digits)[0]
        real = not np.iscomplexobj(start)
        if not real and digits == DOUBLE_DIGITS and (quick := self._proved_at_once(z, scaled, start)) is not None:
            return quick
        root = prove(system, start, scaled)
        if not (increasing(system, root) if real else in_cone(system, root)):
            raise CertificationError(
                "the root is not the physical one, or not provably: the matrices of traces "
                + ("do not increase" if real else "have no positive definite imaginary part")
            )
        place = UPPER if scaled[1] else (GAP if real else BAND)
        return self._certificate(z, place, self._ball(system, root, digits, place), root.proof.share, digits)

    def _certificate(self, z: Any, place: str, ball: CertifiedBall, share: float, digits: int) -> Certificate:
        density = None
        if place == GAP:
            density = CertifiedBall(ball.midpoint * 0, ball.radius * 0)
        elif place == BAND:
            context = ball.midpoint.context
            middle = ball.midpoint.imag / context.pi
            density = CertifiedBall(middle, ball.radius / 3 + context.ldexp(abs(middle), 4 - context.prec))
        return Certificate(z, place, ball, density, PROVED[place], self.assumptions(digits), BRANCHES[place], share)

    def _proved_at_once(self, z: Any, scaled: Pair, start: Numbers) -> Certificate | None:
        """The certificate by compiled bounds; None where there are none, or they prove too little."""
        if self._compiled is None or (found := self._compiled(start, scaled)) is None:
            return None
        system, per_unit = self.system(DOUBLE_DIGITS)
        size = found.middle.size
        radius = (found.radius + 2 * system.width * size) * double_of(per_unit) * (1 + 1e-12)
        if not radius <= 10.0**-DOUBLE_DIGITS * size * double_of(per_unit):
            return None
        ball = ball_of(found.middle, per_unit, radius, DOUBLE_DIGITS, False)
        return self._certificate(z, UPPER if scaled[1] else BAND, ball, found.share, DOUBLE_DIGITS)

    @cached_property
    def _compiled(self) -> Any:
        return value_proofs(self.equation, self._enclosed(DOUBLE_DIGITS).tables(), self.system(DOUBLE_DIGITS)[0].width)

    def _ball(self, system: System, root: Root, digits: int, place: str) -> CertifiedBall:
        _, per_unit = self.system(digits)
        wanted = 10.0**-digits
        for _ in range(_ROUNDS):
            value = value_of(root)
            size = value.middle.size
            radius = (value.radius + 2 * system.width * size) * double_of(per_unit) * (1 + 1e-12)
            if radius <= wanted * size * double_of(per_unit):
                return ball_of(value.middle, per_unit, radius, digits, place == GAP)
            root = refine(system, root)
        raise CertificationError(f"the value is proved, but not to {digits} digits: radius {radius:.3g}")

    def know(self, folds: Sequence[tuple[Fold | None, Fold | None]]) -> None:
        """Folds in doubles, band by band, from which proofs start."""
        for number, pair in enumerate(folds):
            for side, fold in zip(("left", "right"), pair, strict=True):
                if fold is not None:
                    self._folds[number, side] = fold

    # Edges ---------------------------------------------------------------------------------------------------------

    def edges(self, known: Sequence[tuple[float, float]], digits: int) -> EdgeCertificate:
        """The certificate of all ends of bands, which are `known` in doubles, that are folds.

        Raises:
            CertificationError: when one of them has no proof to the digits.
        """
        digits = digits_up_to(MOST_DIGITS, digits)
        system, per_unit = self.system(digits)
        found, left_out = [], []
        for number, band in enumerate(known):
            for side, x in zip(("left", "right"), band, strict=True):
                if x == 0:
                    left_out.append(x)
                    continue
                if (number, side) not in self._folds:
                    place = double_of(fmpq(*x.as_integer_ratio()) * per_unit)
                    self._folds[number, side] = self._fold(place, _room(known, number, side))
                found.append(self.proved_edge(prove_fold(system, self._folds[number, side]), side, digits))
        return EdgeCertificate(tuple(found), tuple(left_out), EDGES_PROVED, EDGES_NOT_PROVED, self.assumptions(digits))

    def proved_edge(self, fold: ProvedFold, side: str, digits: int) -> CertifiedEdge:
        """An edge to the digits, from a proved fold that must be this end of its band."""
        system, per_unit = self.system(digits)
        if fold.right_end != (side == "right"):
            raise CertificationError(f"the fold is proved to be the other end of a band than the {side} one")
        for number in range(_ROUNDS):
            edge = fold.edge
            size = edge.middle.size
            radius = (edge.radius + 2 * system.width * size) * (1 + 1e-12)
            if radius <= 10.0**-digits * size:
                ball = ball_of(edge.middle, 1 / per_unit, radius / double_of(per_unit), digits, True)
                return CertifiedEdge(ball, side, fold.proof.share)
            fold = self._placed(fold, digits) if number == 0 and digits > _FEW_DIGITS else refine_fold(system, fold)
        raise CertificationError(f"the edge is proved, but not to {digits} digits: radius {radius:.3g}")

    def _placed(self, fold: ProvedFold, digits: int) -> ProvedFold:
        """The fold at a place to all digits at once where loops are compiled, else one step further."""
        system = self.system(digits)[0]
        if type(self.equation) is not TraceEquation:
            if digits not in self._precise:
                context = new_context(digits + _GUARD_DIGITS)
                tables = mapped(self._enclosed(digits).tables(), lambda v: to_context(exactly(v).middle, context))
                self._precise[digits] = precise_traces(tables, self.equation, digits, _GUARD_DIGITS)
            try:
                return place_fold(system, fold, self._precise[digits].fold_numbers(fold.start))
            except (BranchError, ConvergenceError, CertificationError):
                pass
        return refine_fold(system, fold)

    def _fold(self, x: float, room: float) -> Fold:
        """The fold at an edge that is known in doubles, from the real branch beside it; `room` is signed."""
        for share in _BESIDE:
            there = np.array([x + room * share * abs(x)])
            status, found = self.axis.classify(there)
            if status[0] != IN_GAP:
                continue
            traces = found.real
            tangent = self.equation.tangent(self.equation.matrices(traces, there))
            fold = find_fold(self.equation, x, traces[0], tangent[0])
            if fold is not None and abs(fold.x - x) <= _SAME_EDGE * abs(x):
                return fold
        raise CertificationError(f"no fold was found at the edge {x:.17g} (in the unit of the equation)")

    # Starts --------------------------------------------------------------------------------------------------------

    def _from_any_start(self, z: Any, scaled: Pair, digits: int) -> Certificate:
        """The certificate from a solution at a point nearby, where that succeeds, else by continuation from infinity.

        Starts need not be trusted: what is proved does not rest on them.
        """
        point = complex(double_of(scaled[0]), double_of(scaled[1]))
        start = self._from_known(point)
        if start is not None:
            try:
                return self._remembered(point, start, self.proved(z, scaled, start, digits))
            except CertificationError:  # another root, perhaps
                pass
        start = self._from_infinity(point)
        return self._remembered(point, start, self.proved(z, scaled, start, digits))

    def _remembered(self, z: complex, start: Numbers, report: Certificate) -> Certificate:
        self._known = [*self._known[1 - _REMEMBERED:], (z, start)]
        return report

    def _from_known(self, z: complex) -> Numbers | None:
        known = [(place, u) for place, u in self._known
                 if abs(place - z) <= _NEAR * abs(z) and (place.imag == 0) == (z.imag == 0)]
        if not known:
            return None
        near, u = min(known, key=lambda pair: abs(pair[0] - z))
        if near == z:
            return u
        here, there = (near, z) if np.iscomplexobj(u) else (near.real, z.real)
        if type(self.equation) is not TraceEquation:  # compiled: one call for all steps
            tangent = self.equation.tangent(self.equation.matrices(u[None], np.array([here])))
            found, good = self.equation.newton(u + tangent * (there - here), np.array([there]))
            return np.asarray(found[0]) if good[0] else None
        start = u + self._balls.newton(u, here).tangent * (there - here)
        for _ in range(_NEWTON_STEPS):
            step = self._balls.newton(start, there)
            start = start + step.step
            if not np.isfinite(step.relative):
                return None
            if step.relative <= _SETTLED:
                return start
        return None

    def _from_infinity(self, z: complex) -> Numbers:
        try:
            if z.imag:
                return np.asarray(self._descent.solve(np.array([z]))[0])
            x = np.array([z.real])
            status, found = self.axis.classify(x) if z.real else self._beside_zero()
        except (BranchError, ConvergenceError) as error:
            raise CertificationError(f"no start for a proof was found: {error}") from None
        if status[0] == IN_BAND:
            return np.asarray(found[0])
        if status[0] == IN_GAP:
            return np.asarray(found[0].real)
        raise CertificationError(f"no start for a proof at {z.real:.17g}: it is an edge, an atom, or too near one")

    def _beside_zero(self) -> tuple[NDArray[np.int_], Numbers]:
        """At x = 0, from a point near it."""
        origin = np.zeros(1)
        for x in (_BESIDE_ZERO * self._size, -_BESIDE_ZERO * self._size):
            status, found = self.axis.classify(np.array([x]))
            if status[0] == IN_BAND:
                found, good = self.axis.in_band(found, origin)
            elif status[0] == IN_GAP:
                real, good = self.axis.in_gap(found.real, origin)
                found = real.astype(complex)
            else:
                continue
            if good[0]:
                return status, found
        return np.zeros(1, dtype=int), np.zeros((1, self.equation.count), dtype=complex)


def _room(known: Sequence[tuple[float, float]], number: int, side: str) -> float:
    """How far the gap beside an edge reaches, relative to the edge and at most 1; negative to the left."""
    here = known[number][side == "right"]
    if side == "right":
        end = known[number + 1][0] if number + 1 < len(known) else np.inf
    else:
        end = known[number - 1][1] if number else -np.inf
    width = known[number][1] - known[number][0]
    return float(np.sign(end - here) * min(1.0, abs(end - here) / abs(here), width / abs(here)))
