"""What a sweep tells about each layer: quantities of its law by name, predictions from it, and simulated draws.

A quantity is written as its name, with arguments after a colon where it has some: "mean", "moments:order=6",
"ridge_error:penalty=0.01,noise=1/10", "arrival_time:level=0.5".
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, final

from freeattn import predict
from freeattn.errors import InputError, did_you_mean
from freeattn.evidence.verify import Verification
from freeattn.model.attention import Attention
from freeattn.model.written_numbers import exact_number

__all__ = ["DEFAULT", "NAMES", "SweepQuantity", "quantity", "simulated_columns", "simulated_values"]

DEFAULT = ("mean", "edges", "atom")
_ORDERS = 4
_MOST_ORDERS = 60
_OF_LAWS: Mapping[str, tuple[str, ...]] = {
    "mean": ("mean",), "edges": ("left_edge", "right_edge", "n_bands"), "bands": ("bands",), "atom": ("atom",),
}
_PREDICTIONS = (
    "degrees_of_freedom", "ridge_error", "best_penalty", "flow_loss", "arrival_time", "condition_number", "stable_rank",
    "participation_ratio", "entropy_rank", "rank_fraction", "spike_gap", "leading_singular_value",
    "attention_stable_rank", "parameter_count",
)
NAMES = (*_OF_LAWS, "moments", *_PREDICTIONS)
_NOT_ARGUMENTS = ("law", "spec", "digits")  # a table holds doubles
_SIMULATED = ("relative_w1_to_law", "relative_w1_to_equivalent", "ks_to_law", "moment_1", "quantile_99", "outliers")


@final
@dataclass(frozen=True)
class SweepQuantity:
    """A named quantity of a layer and its law.

    Attributes:
        name: one of `NAMES`.
        arguments: what it is called with, by name.
    """

    name: str
    arguments: tuple[tuple[str, int | float], ...] = ()

    @property
    def label(self) -> str:
        """The text that `quantity` reads."""
        given = ",".join(f"{name}={value!r}" for name, value in self.arguments)
        return f"{self.name}:{given}" if given else self.name

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its values."""
        if self.name == "moments":
            return tuple(f"moment_{order}" for order in range(1, int(dict(self.arguments).get("order", _ORDERS)) + 1))
        return _OF_LAWS.get(self.name, (self.label,))

    @property
    def needs_law(self) -> bool:
        """False for what follows from the layer alone."""
        return not _of_layer(self.name)

    def values(self, spec: Attention, law: Any) -> dict[str, Any]:
        """Plain values by column; `law` may be None where it is not needed.

        Raises:
            FreeattnError: as what computes them.
        """
        found: tuple[Any, ...]
        if self.name == "mean":
            found = (float(law.mean),)
        elif self.name == "edges":
            found = (float(law.edges[0][0]), float(law.edges[-1][1]), len(law.edges))
        elif self.name == "bands":
            found = ([[float(end) for end in band] for band in law.edges],)
        elif self.name == "atom":
            found = (float(sum(atom.weight for atom in law.atoms if atom.location == 0)),)
        elif self.name == "moments":
            found = tuple(float(moment) for moment in law.moments(len(self.columns)))
        else:
            function = getattr(predict, self.name)
            value = function(law if self.needs_law else spec, **dict(self.arguments))
            found = (value if isinstance(value, int) else float(value),)
        return dict(zip(self.columns, found, strict=True))


def quantity(given: SweepQuantity | str) -> SweepQuantity:
    """A quantity from its text.

    Raises:
        InputError: for a name or an argument that is not known, one that is missing, or a value that is no number.
    """
    if isinstance(given, SweepQuantity):
        return given
    name, _, rest = given.partition(":") if isinstance(given, str) else (given, "", "")
    if name not in NAMES:
        raise InputError("quantity", given, f"one of {', '.join(NAMES)}{did_you_mean(name, NAMES)}")
    needed, optional = _parameters(name)
    pairs = [_argument(given, part) for part in rest.split(",")] if rest else []
    arguments = dict(pairs)
    if len(arguments) < len(pairs):
        raise InputError("quantity", given, "each argument once")
    for argument in arguments:
        if argument not in needed + optional:
            listed = ", ".join(needed + optional)
            with_them = f"with {listed}{did_you_mean(argument, needed + optional)}" if listed else "without arguments"
            raise InputError("quantity", given, f"{name} {with_them}")
    for argument in needed:
        if argument not in arguments:
            raise InputError("quantity", given, f"{name} with {argument}, such as {name}:{argument}=0.5")
    if name == "moments":
        order = arguments.get("order", _ORDERS)
        if not isinstance(order, int) or not 1 <= order <= _MOST_ORDERS:
            raise InputError("quantity", given, f"moments with an order from 1 to {_MOST_ORDERS}")
    return SweepQuantity(name, tuple(arguments.items()))


def simulated_columns() -> tuple[str, ...]:
    """The columns that draws add: of each statistic the mean over draws and the half-width of its interval."""
    columns: list[str] = []
    for name in _SIMULATED:
        columns += [f"softmax_{name}", f"softmax_{name}_half_width"]
        columns += [] if name.endswith("_to_equivalent") else [f"equivalent_{name}"]
    return (*columns, "passed")


def simulated_values(verification: Verification) -> dict[str, Any]:
    """Their values."""
    found: dict[str, Any] = {}
    for statistic in verification.statistics:
        if statistic.name in _SIMULATED:
            found[f"softmax_{statistic.name}"] = statistic.softmax.mean
            found[f"softmax_{statistic.name}_half_width"] = statistic.softmax.half_width
            if statistic.equivalent is not None:
                found[f"equivalent_{statistic.name}"] = statistic.equivalent.mean
    return {**found, "passed": verification.passed}


@cache
def _of_layer(name: str) -> bool:
    """True for a prediction from the layer itself, not from its law."""
    return name in _PREDICTIONS and "spec" in inspect.signature(getattr(predict, name)).parameters


def _parameters(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Arguments that a quantity needs, and those that it may be given."""
    if name not in _PREDICTIONS:
        return (), (("order",) if name == "moments" else ())
    function: Callable[..., Any] = getattr(predict, name)
    found = [one for one in inspect.signature(function).parameters.values() if one.name not in _NOT_ARGUMENTS]
    needed = tuple(one.name for one in found if one.default is inspect.Parameter.empty)
    return needed, tuple(one.name for one in found if one.name not in needed)


def _argument(given: str, part: str) -> tuple[str, int | float]:
    name, _, text = part.partition("=")
    try:
        number = exact_number("quantity", text)
        return name.strip(), number if isinstance(number, int) else float(number)
    except (InputError, OverflowError):
        raise InputError("quantity", given, "arguments as NAME=NUMBER between commas, such as penalty=0.01") from None
