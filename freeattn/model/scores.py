"""Score functions: how scores become attention weights.

A score function f acts entrywise on β·S, S the n × n matrix of scores with iid-like N(0, 1) entries. Two kinds:

- row-normalized, A_ij = f(βS_ij) / Σ_k f(βS_ik) with f > 0 (softmax is f = exp); the rows of A sum to one;
- plain, A_ij = f(βS_ij) / n; A is centered by the mean of its entries.

With χ ~ N(0, 1) and g = f(βχ)/E f(βχ) (row-normalized) or g = f(βχ) (plain), an entrywise function enters every law
through two numbers only (arXiv 2610.10033, sections 2-3; the second by Stein's identity E g' = E χg):

    θ₁ = Var g,    θ₂ = (E χ g)².

This module imports neither numpy nor sympy: arrays bring their own functions (the array API's `__array_namespace__`)
and exact θ's are written for any namespace that has `exp`, `pi` and `sqrt`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from freeattn.errors import InputError, NotCoveredError
from freeattn.model.precision import own_context
from freeattn.model.quantities import as_integer

__all__ = ["Entrywise", "FiniteRows", "Linear", "ReLU", "ScoreFunction", "Sigmoid", "Softmax", "as_scores"]

_PROBES = (-13, -5, -2, 0, 1, 3, 7, 11)  # quarters at which a user's function is recorded


class ScoreFunction(ABC):
    """An entrywise function of the scores, as a value.

    Attributes:
        name: identifier, used in specifications written to files.
        normalized: True when rows are divided by their sum, False for f(βS)/n.
        kinks: points where f is not smooth; quadrature splits there.
        max_beta: largest inverse temperature at which θ₁ is a finite double.
        n_tokens: the length of the rows that the θ's are those of; None for the limit of long rows.
    """

    name: str
    normalized: bool
    kinks: tuple[float, ...] = ()
    max_beta: float = math.inf
    n_tokens: int | None = None

    @property
    def limiting(self) -> ScoreFunction:
        """The function with the θ's of the limit."""
        return self

    @abstractmethod
    def value(self, x: Any, functions: Any) -> Any:
        """f(x), where `functions` is the namespace (numpy, mpmath, …) that x belongs to."""

    def exact_thetas(self, beta: Any, functions: Any) -> tuple[Any, Any] | None:
        """(θ₁, θ₂) in closed form in the given namespace, or None when only quadrature gives them."""
        del beta, functions
        return None

    def row_coefficient(self, beta: Any, participation: Any) -> Any | None:
        """E χ₁ n A₁ of a normalized row in closed form, given I_n = E Σ_j A_j²; None when only quadrature gives it."""
        del beta, participation
        return None

    def at_tokens(self, n_tokens: Any) -> ScoreFunction:
        """The function in a layer of so many tokens: `FiniteRows` takes the length of its rows from it."""
        del n_tokens
        return self

    def to_form(self) -> object:
        """What identifies the function in a specification's canonical form."""
        return self.name

    def apply(self, scores: Any, beta: float) -> Any:
        """Attention weights A (n × n) for an n × n array of scores S; see the module for the two kinds."""
        functions = scores.__array_namespace__()
        weights = self.value(beta * scores, functions)
        if self.normalized:
            return weights / functions.sum(weights, axis=-1, keepdims=True)
        return weights / scores.shape[-1]


@dataclass(frozen=True)
class Softmax(ScoreFunction):
    """Softmax by rows: f = exp, θ₁ = e^{β²} − 1, θ₂ = β² (arXiv 2610.10033, section 2)."""

    name: str = field(default="softmax", init=False)
    normalized: bool = field(default=True, init=False)
    max_beta: float = field(default=26.0, init=False)  # e^{26²} is the last integer power below the largest double

    def value(self, x: Any, functions: Any) -> Any:
        return functions.exp(x)

    def exact_thetas(self, beta: Any, functions: Any) -> tuple[Any, Any]:
        if hasattr(functions, "expm1"):  # e^{β²} − 1 cancels at small β
            return functions.expm1(beta**2), beta**2
        return functions.exp(beta**2) - 1, beta**2

    def row_coefficient(self, beta: Any, participation: Any) -> Any:
        return beta * (1 - participation)  # Stein's identity: E χ₁A₁ = E ∂₁A₁ = βE A₁(1 − A₁)

    def apply(self, scores: Any, beta: float) -> Any:
        functions = scores.__array_namespace__()
        shifted = beta * scores
        shifted -= functions.max(shifted, axis=-1, keepdims=True)  # same quotient, no overflow
        weights = functions.exp(shifted)
        weights /= functions.sum(weights, axis=-1, keepdims=True)
        return weights


@dataclass(frozen=True)
class Linear(ScoreFunction):
    """Linear attention A = βS/n: θ₁ = θ₂ = β²."""

    name: str = field(default="linear", init=False)
    normalized: bool = field(default=False, init=False)

    def value(self, x: Any, functions: Any) -> Any:
        del functions
        return x

    def exact_thetas(self, beta: Any, functions: Any) -> tuple[Any, Any]:
        del functions
        return beta**2, beta**2


@dataclass(frozen=True)
class ReLU(ScoreFunction):
    """A = max(βS, 0)/n: θ₁ = β²(1/2 − 1/(2π)), θ₂ = β²/4 (half-normal moments)."""

    name: str = field(default="relu", init=False)
    normalized: bool = field(default=False, init=False)
    kinks: tuple[float, ...] = field(default=(0.0,), init=False)

    def value(self, x: Any, functions: Any) -> Any:
        del functions
        return (x + abs(x)) / 2

    def exact_thetas(self, beta: Any, functions: Any) -> tuple[Any, Any]:
        return beta**2 * (1 - 1 / functions.pi) / 2, beta**2 / 4


@dataclass(frozen=True)
class Sigmoid(ScoreFunction):
    """A = 1/(1 + e^{−βS})/n; its θ's come from quadrature."""

    name: str = field(default="sigmoid", init=False)
    normalized: bool = field(default=False, init=False)

    def value(self, x: Any, functions: Any) -> Any:
        return (1 + functions.tanh(x / 2)) / 2


@dataclass(frozen=True)
class Entrywise(ScoreFunction):
    """Any entrywise score function.

    Args:
        function: called as function(x, functions) with the namespace of x (numpy or an mpmath context), for example
            `lambda x, m: m.exp(-x**2)`; it must accept arrays and single numbers.
        name: identifier used in reports.
        normalized: divide each row by its sum (then f must be positive), or f(βS)/n.
        kinks: points where f is not smooth.
    """

    function: Callable[[Any, Any], Any]
    name: str = "entrywise"
    normalized: bool = False
    kinks: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InputError("function", self.function, "a callable of (x, functions)")
        if self.name in _BY_NAME:
            raise InputError("name", self.name, "a name other than those of the built-in score functions")
        try:
            kinks = tuple(sorted(float(kink) for kink in self.kinks))
        except (TypeError, ValueError):
            raise InputError("kinks", self.kinks, "a sequence of finite numbers") from None
        if not all(math.isfinite(kink) for kink in kinks):
            raise InputError("kinks", self.kinks, "a sequence of finite numbers")
        object.__setattr__(self, "kinks", kinks)

    def to_form(self) -> object:
        context = own_context(15)
        values = [context.nstr(self.value(context.mpf(k) / 4, context), 15) for k in _PROBES]
        return {"entrywise": self.name, "normalized": self.normalized, "kinks": list(self.kinks), "values": values}

    def value(self, x: Any, functions: Any) -> Any:
        try:
            return self.function(x, functions)
        except (TypeError, AttributeError, ValueError) as error:
            allowed = (
                "a function of (x, functions) made of arithmetic, abs and what numpy and mpmath share (functions.exp, "
                f".log, .sqrt, .tanh, …), for arrays and for single numbers; it failed with: {error}"
            )
            raise InputError("scores", self.name, allowed) from error


@dataclass(frozen=True)
class FiniteRows(ScoreFunction):
    """A row-normalized score function with the θ's of rows of n tokens in place of those of the limit.

    For a row of n weights A_j over iid scores βχ_j, χ_j ~ N(0, 1),

        θ₁ = Var n A₁ = n I_n − 1,   θ₂ = (E χ₁ n A₁)²,   I_n = E Σ_j A_j²,

    exact at every n (`freeattn.model.rows`), and the θ's of the limit as n → ∞. For softmax θ₂ = β²(1 − I_n)². The
    weights themselves are those of `scores`. What finite key widths do is left out.

    Args:
        scores: a row-normalized score function, or the name of one.
        n_tokens: taken from the layer; not to be given.

    Raises:
        NotCoveredError: for plain score functions, whose entries f(βS)/n have the θ's of the limit at every n.
    """

    scores: ScoreFunction
    n_tokens: int | None = None
    normalized: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        scores = as_scores(self.scores).limiting
        if not scores.normalized:
            raise NotCoveredError(
                f"finite size is a matter of row sums, and {scores.name!r} scores f(βS)/n have none: their θ₁ and θ₂ "
                "are those of the limit at every n_tokens; leave finite_size out"
            )
        object.__setattr__(self, "scores", scores)

    @property
    def name(self) -> str:  # type: ignore[override]
        """That of the function; the canonical form tells the two apart."""
        return self.scores.name

    @property
    def kinks(self) -> tuple[float, ...]:  # type: ignore[override]
        """Those of the function."""
        return self.scores.kinks

    @property
    def max_beta(self) -> float:  # type: ignore[override]
        """That of the function."""
        return self.scores.max_beta

    @property
    def limiting(self) -> ScoreFunction:
        return self.scores

    def value(self, x: Any, functions: Any) -> Any:
        return self.scores.value(x, functions)

    def apply(self, scores: Any, beta: float) -> Any:
        return self.scores.apply(scores, beta)

    def row_coefficient(self, beta: Any, participation: Any) -> Any | None:
        return self.scores.row_coefficient(beta, participation)

    def at_tokens(self, n_tokens: Any) -> ScoreFunction:
        allowed = "a number of at least 2 for finite size (a layer by ratios gets one from with_sizes)"
        return replace(self, n_tokens=as_integer("n_tokens", n_tokens, allowed, 2))

    def to_form(self) -> object:
        return {_FINITE_SIZE: self.scores.to_form()}


_FINITE_SIZE = "finite-size"  # its key in canonical forms; n_tokens is that of the layer
_BY_NAME: dict[str, Callable[[], ScoreFunction]] = {
    "softmax": Softmax,
    "linear": Linear,
    "relu": ReLU,
    "sigmoid": Sigmoid,
}


def as_scores(value: object) -> ScoreFunction:
    """Resolve "softmax", "linear", "relu" and "sigmoid"; a score function passes through."""
    if isinstance(value, ScoreFunction):
        return value
    if isinstance(value, str) and value in _BY_NAME:
        return _BY_NAME[value]()
    if isinstance(value, dict) and set(value) == {_FINITE_SIZE}:
        return FiniteRows(value[_FINITE_SIZE])
    if isinstance(value, dict):
        raise InputError("scores", value.get("entrywise"), "a built-in name: a user's own function cannot be read back")
    names = ", ".join(f'"{name}"' for name in _BY_NAME)
    raise InputError("scores", value, f"{names}, or a ScoreFunction such as fa.Entrywise(…)")
