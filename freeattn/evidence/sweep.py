"""Sweeps: the quantities of a law over a grid or a list of layers, one row for each, on any number of cores.

A combination that is not allowed, or that has no law, is a row with the text of its error.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, TypeAlias, final

import numpy as np

from freeattn.display import ShownAsTables
from freeattn.errors import FreeattnError, InputError
from freeattn.evidence.draws import number_of_draws, results_of
from freeattn.evidence.quantities import DEFAULT, SweepQuantity, quantity, simulated_columns, simulated_values
from freeattn.evidence.verify import verify
from freeattn.evidence.weights import named_seed
from freeattn.model.attention import Attention, check_fields
from freeattn.numerics.limiting import law as limiting_law
from freeattn.runs import Progress, Result, Store, Task

__all__ = ["Sweep", "SweepPoint", "sweep", "sweep_row"]

Over: TypeAlias = Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Any]]

_MOST_ROWS = 1_000_000


@final
@dataclass(frozen=True)
class SweepPoint:
    """One combination: the plain values that name it, and the layer or what is wrong with it."""

    values: Mapping[str, Any]
    spec: Attention | None
    error: str | None = None

    @classmethod
    def of(cls, values: Mapping[str, Any], build: Callable[[], Attention]) -> SweepPoint:
        """The layer that `build` makes; what it refuses becomes the point's error."""
        try:
            return cls(values, build())
        except FreeattnError as error:
            return cls(values, None, str(error))


@final
@dataclass(frozen=True, eq=False, repr=False)
class Sweep(ShownAsTables):
    """Quantities over many layers.

    Attributes:
        columns: names: what was swept, the quantities, what was simulated, and "error".
        rows: one for each combination, in order: plain values by column; None where there is none.
        draws, seed: what was simulated; row by row the same seed.
        of_laws: False when nothing that was asked for needs a law.
    """

    shown_as: ClassVar[str] = "sweep"

    columns: tuple[str, ...]
    rows: tuple[dict[str, Any], ...]
    draws: int
    seed: int
    of_laws: bool

    def __repr__(self) -> str:
        return f"<Sweep of {len(self.rows)} layers, {len(self.errors)} with an error: {', '.join(self.columns)}>"

    @property
    def errors(self) -> tuple[dict[str, Any], ...]:
        """The rows with an error."""
        return tuple(row for row in self.rows if row["error"] is not None)

    def column(self, name: str) -> list[Any]:
        """The values of one column, row by row.

        Raises:
            InputError: for a name that is not a column.
        """
        if name not in self.columns:
            raise InputError("column", name, f"one of {', '.join(self.columns)}")
        return [row[name] for row in self.rows]

    @staticmethod
    def told_columns(quantities: Sequence[SweepQuantity | str] = DEFAULT, draws: int = 0) -> tuple[str, ...]:
        """The columns behind those that are swept: quantities, what is simulated, "error"; arguments as `sweep`."""
        told = (column for one in _wanted(quantities) for column in one.columns)
        return (*told, *(simulated_columns() if draws else ()), "error")

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {"columns": list(self.columns), "draws": self.draws, "seed": self.seed, "rows": list(self.rows)}


def sweep(
    spec: Attention | Sequence[SweepPoint], over: Over | None = None,
    quantities: Sequence[SweepQuantity | str] = DEFAULT, *, draws: int = 0, seed: int = 0,
    executor: Executor | None = None, workers: int | None = 1, store: Store | str | Path | None = None,
    progress: Progress | None = None,
) -> Sweep:
    """Quantities of the laws of many layers, as a table.

    Args:
        spec: the layer that is changed, or a list of `SweepPoint`s, for layers that are not changes of one.
        over: for each field the values it takes, {"beta": [0.5, 1], "n_heads": [4, 8]} (all combinations, the last
            field fastest); or a list of combinations, [{"n_heads": 4, "d_key": 64}, {"n_heads": 8, "d_key": 32}].
            Values are those of `Attention.replace`.
        quantities: what is told about each: names with arguments, see `evidence.quantities`.
        draws: simulated draws for each layer (default: none), compared with its law as by `verify`.
        seed: of the draws, the same for each layer.
        executor, workers, store: where rows are computed and kept, as in `runs.run`; by default in this process.
        progress: called as progress(done, total) while rows are computed.

    Raises:
        InputError: for a field or a quantity that is not known, and what is no number of draws or seed. What a single
            combination does not allow is the error of its row.
    """
    count, root = number_of_draws(draws, 0), named_seed(seed)
    wanted = _wanted(quantities)
    points = _points(spec, over)
    tasks = {i: _task(p.spec, wanted, count, root) for i, p in enumerate(points) if p.spec is not None}
    found = dict(zip(tasks, results_of(
        list(tasks.values()), executor=executor, workers=workers, store=store, progress=progress
    ), strict=True))
    columns = _columns(points, Sweep.told_columns(wanted, count))
    rows = ({**point.values, **found.get(i, {"error": point.error})} for i, point in enumerate(points))
    table = tuple({name: row.get(name) for name in columns} for row in rows)
    return Sweep(columns, table, count, root, _need_law(wanted, count))


def sweep_row(spec: Attention, quantities: Sequence[str], draws: int, seed: int) -> Result:
    """The values of one layer; what fails is told in "error", and the rest is there."""
    wanted = [quantity(text) for text in quantities]
    try:
        law = limiting_law(spec) if _need_law(wanted, draws) else None
    except FreeattnError as error:
        return {"error": str(error)}
    row: Result = {}
    errors = []
    for one in wanted:
        try:
            row |= one.values(spec, law)
        except FreeattnError as error:
            errors.append(f"{one.label}: {error}")
    if draws:
        try:
            row |= simulated_values(verify(spec, draws, seed, law))
        except FreeattnError as error:
            errors.append(f"draws: {error}")
    return {**row, "error": "; ".join(errors) or None}


def _need_law(wanted: Sequence[SweepQuantity], draws: int) -> bool:
    return bool(draws) or any(one.needs_law for one in wanted)


def _wanted(quantities: Sequence[SweepQuantity | str]) -> list[SweepQuantity]:
    if isinstance(quantities, str):
        raise InputError("quantities", quantities, "a list of names")
    wanted = list(dict.fromkeys(quantity(one) for one in quantities))
    columns = [column for one in wanted for column in one.columns]
    for column in columns:
        if columns.count(column) > 1:
            raise InputError("quantities", column, "each quantity once")
    return wanted


def _columns(points: Sequence[SweepPoint], told: tuple[str, ...]) -> tuple[str, ...]:
    names = tuple(points[0].values)
    for point in points:
        if tuple(point.values) != names or set(names) & set(told):
            allowed = f"the same names for every point, none of them {', '.join(told)}"
            raise InputError("points", dict(point.values), allowed)
    return names + told


def _task(spec: Attention, wanted: Sequence[SweepQuantity], draws: int, seed: int) -> Task:
    labels = [one.label for one in wanted]
    key = {"kind": "row of a sweep", "spec": spec.to_dict(), "quantities": labels, "draws": draws}
    return Task(key | ({"seed": seed} if draws else {}), sweep_row, (spec, labels, draws, seed))


def _points(spec: Attention | Sequence[SweepPoint], over: Over | None) -> list[SweepPoint]:
    if not isinstance(spec, Attention):
        points = list(spec) if isinstance(spec, Sequence) else []
        if not points or not all(isinstance(point, SweepPoint) for point in points):
            raise InputError("spec", spec, "an Attention, or a list of SweepPoints")
        if over is not None:
            raise InputError("over", over, "nothing next to a list of points")
        return points
    return [_changed(spec, combination) for combination in _combinations(over)]


def _combinations(over: Over | None) -> Iterator[dict[str, Any]]:
    """All combinations of a grid, or those of a list; names of fields are checked first."""
    allowed = 'values for each field, {"beta": [0.5, 1]}, or a list of combinations, [{"beta": 1, "n_heads": 8}]'
    if isinstance(over, Mapping):
        check_fields(dict(over))
        values = {name: _values(name, given) for name, given in over.items()}
        count = math.prod(len(given) for given in values.values())
        if not over or count > _MOST_ROWS:
            raise InputError("over", over or {}, f"{allowed}, at most {_MOST_ROWS} combinations; these are {count}")
        return (dict(zip(values, chosen, strict=True)) for chosen in itertools.product(*values.values()))
    if isinstance(over, (str, bytes)) or not isinstance(over, Sequence) or not over or len(over) > _MOST_ROWS:
        raise InputError("over", over, allowed)
    for record in over:
        if not isinstance(record, Mapping) or set(record) != set(over[0]):
            raise InputError("over", record, "combinations of the same fields")
        check_fields(dict(record))
    return (dict(record) for record in over)


def _values(name: str, given: Any) -> list[Any]:
    if isinstance(given, (str, bytes)) or not hasattr(given, "__iter__"):
        raise InputError(f"over[{name}]", given, "a list of values")
    values = list(given)
    if not values:
        raise InputError(f"over[{name}]", values, "at least one value")
    return values


def _changed(spec: Attention, combination: Mapping[str, Any]) -> SweepPoint:
    point = SweepPoint.of({}, lambda: spec.replace(**combination))
    form = {} if point.spec is None else point.spec.to_dict()
    values = {name: _shown(value, form.get(name)) for name, value in combination.items()}
    return SweepPoint(values, point.spec, point.error)


def _shown(value: Any, form: object) -> Any:
    """A value as it stands in a table: numbers and names as they are, other things by their canonical form."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Fraction):
        return float(value)
    return repr(value) if form is None else json.dumps(form)
