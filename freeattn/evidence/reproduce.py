"""The tables and figures of arXiv 2610.10033 again: theory, simulated softmax attention, and what is printed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, final

from freeattn.display import ShownAsTables
from freeattn.errors import InputError
from freeattn.evidence.draws import number_of_draws, results_of
from freeattn.evidence.published import Printed
from freeattn.evidence.reproduce_parts import Drawn, Figure, Found, Panel, Reproduced, reduced
from freeattn.evidence.reproduce_readouts import figure_2a, figure_2c, figure_2d
from freeattn.evidence.reproduce_sharing import figure_3a, figure_3b
from freeattn.evidence.reproduce_spectra import figure_d1, table_d2
from freeattn.evidence.verify import Estimate
from freeattn.evidence.weights import named_seed
from freeattn.model.quantities import as_integer
from freeattn.numerics.limiting import law as limiting_law
from freeattn.runs import Progress, Store

__all__ = ["FIGURES", "Reproduction", "Row", "other_scales", "reproduce"]

FIGURES: Mapping[str, Callable[[], Figure]] = {
    "table-d2": table_d2, "fig-2a": figure_2a, "fig-2c": figure_2c, "fig-2d": figure_2d, "fig-3a": figure_3a,
    "fig-3b": figure_3b, "fig-d1": figure_d1,
}
ALL = "all"

_MOST_INTERVALS = 2.0  # combined half-widths by which a measurement at full size may differ from the printed one


@final
@dataclass(frozen=True)
class Row:
    """One quantity of a reproduced figure.

    Attributes:
        label, quantity: which layer, and what of it.
        theory, printed_theory: from the law, and as printed.
        theory_agrees: whether the first is printed as the second; None when nothing is printed.
        simulated, half_width: mean over the draws, and its 95 % interval; None when nothing is simulated.
        without_value: draws that do not have the quantity; with any the mean is None, and nothing passes.
        n_tokens, scale, draws: the size that was drawn, by how much it was divided, and how often.
        from_theory: (simulated − theory)/half-width.
        printed, printed_half_width: as measured there, at full size.
        from_printed: (simulated − printed) in units of the half-width of the difference; None for a layer of another
            size than that of the publication, which measures another number.
    """

    label: str
    quantity: str
    theory: float | None
    printed_theory: str | None
    theory_agrees: bool | None
    simulated: float | None
    half_width: float | None
    without_value: int | None
    n_tokens: int | None
    scale: int | None
    draws: int | None
    from_theory: float | None
    printed: str | None
    printed_half_width: float | None
    from_printed: float | None

    @property
    def passed(self) -> bool | None:
        """The theory as printed, and the measurement within two intervals of the printed one; None: not judged.

        A measurement that is printed without an interval is shown, and not judged; neither is a row some of whose draws
        have no value, unless its theory is off.
        """
        verdicts = [] if self.theory_agrees is None else [self.theory_agrees]
        if self.from_printed is not None and self.printed_half_width is not None:
            verdicts.append(abs(self.from_printed) <= _MOST_INTERVALS)
        if self.without_value and all(verdicts):
            return None
        return all(verdicts) if verdicts else None

    @property
    def not_judged(self) -> str | None:
        """Why there is no verdict, in a few words; None where there is one."""
        if self.passed is not None:
            return None
        reasons = {
            "draws without a value": bool(self.without_value),
            "nothing is printed": self.printed is None and self.printed_theory is None,
            "printed for another size": self.scale not in (None, 1),
            "printed without an interval": self.printed_half_width is None,
            "one draw has no interval": self.half_width is None,
        }
        return next((reason for reason, applies in reasons.items() if applies), "no theory and no draws")

    def to_dict(self) -> dict[str, Any]:
        """One flat row."""
        return {**vars(self), "passed": self.passed, "not_judged": self.not_judged}


@final
@dataclass(frozen=True, eq=False)
class Reproduction(ShownAsTables):
    """A published table or figure, computed and simulated again.

    Attributes:
        name, title, setting, note: what it is, see `reproduce_parts.Figure`.
        seed: draw i uses SeedSequence(seed).spawn(…)[i], the same for every layer.
        found: one `Row` for each quantity.
    """

    shown_as: ClassVar[str] = "reproduction"

    name: str
    title: str
    setting: str
    note: str
    seed: int
    found: tuple[Row, ...]
    _panels: Callable[[], tuple[Panel, ...]]

    def __repr__(self) -> str:
        verdicts = [row.passed for row in self.found if row.passed is not None]
        return f"<Reproduction of {self.name}: {verdicts.count(True)} of {len(verdicts)} checks passed>"

    @property
    def passed(self) -> bool:
        """True when no row failed."""
        return all(row.passed is not False for row in self.found)

    @property
    def reduced(self) -> bool:
        """True when a layer was drawn at another size than that of the publication."""
        return any(row.scale is not None and row.scale > 1 for row in self.found)

    def panels(self) -> tuple[Panel, ...]:
        """The picture as data, for `report.plot_panels`."""
        return self._panels()

    def rows(self) -> list[dict[str, Any]]:
        """One flat row for each quantity, for tables."""
        return [{"figure": self.name, **row.to_dict()} for row in self.found]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "figure": self.name, "title": self.title, "setting": self.setting, "note": self.note, "seed": self.seed,
            "reduced": self.reduced, "passed": self.passed, "rows": [row.to_dict() for row in self.found],
        }


def reproduce(
    names: str | Iterable[str] = ALL, *, draws: int | None = None, seed: int = 0, scale: int | None = None,
    store: Store | str | Path | None = None, workers: int | None = 1, executor: Executor | None = None,
    progress: Progress | None = None,
) -> tuple[Reproduction, ...]:
    """Compute published tables and figures again, with simulated softmax attention beside the law.

    Args:
        names: "table-d2", "fig-2a", "fig-2c", "fig-2d", "fig-3a", "fig-3b", "fig-d1", several of them, or "all".
        draws: of every layer (default: as many as each figure needs).
        seed: of all draws; the same seed gives the same numbers on the same machine.
        scale: divide the sizes of every layer by this, as far as it divides them all, with the same ratios, law and
            number of heads; 1 is the size of the publication (default: 1 where a draw takes seconds, else 2 to 8).
        store: file of finished draws; an interrupted call goes on from there.
        workers, executor: see `runs.run`.
        progress: called as progress(done, total) after each draw.

    Returns:
        One `Reproduction` for each figure, in the order asked for.

    Raises:
        InputError: for an unknown name, or numbers that are not allowed.
        TaskError: when a draw fails.
    """
    figures = [FIGURES[name]() for name in _names(names)]
    if scale is not None:
        scale = as_integer("scale", scale, "a positive integer, or None for the choice of each figure", 1)
    count, root = None if draws is None else number_of_draws(draws, 1), named_seed(seed)
    plans = [_Plan(figure, scale, figure.draws if count is None else count, root) for figure in figures]
    tasks = [task for plan in plans for task in plan.tasks()]
    results = iter(results_of(tasks, executor=executor, workers=workers, store=store, progress=progress))
    return tuple(plan.reproduction(results) for plan in plans)


def other_scales(names: str | Iterable[str], scale: int) -> dict[str, dict[int, tuple[str, ...]]]:
    """The figures some of whose layers `reproduce` divides by less than `scale`, which does not divide all their sizes.

    By figure and by what a layer is divided by, the labels of what is measured on these layers.
    """
    found: dict[str, dict[int, tuple[str, ...]]] = {}
    for name in _names(names):
        by_scale: dict[int, dict[str, None]] = {}
        for quantity in FIGURES[name]().quantities:
            for case in quantity.cases:
                by_scale.setdefault(reduced(case.spec, scale)[1], {})[quantity.label] = None
        if set(by_scale) - {scale}:
            found[name] = {taken: tuple(labels) for taken, labels in by_scale.items()}
    return found


def _names(names: str | Iterable[str]) -> list[str]:
    asked = [names] if isinstance(names, str) else list(names)
    for name in asked:
        if name not in (*FIGURES, ALL):
            raise InputError("figure", name, ", ".join((*FIGURES, ALL)))
    expanded = [one for name in asked for one in (FIGURES if name == ALL else (name,))]
    return list(dict.fromkeys(expanded))


@final
class _Plan:
    """A figure with the layers that are drawn for it."""

    def __init__(self, figure: Figure, scale: int | None, draws: int, seed: int) -> None:
        self._figure, self._draws, self._seed = figure, draws, seed
        self._layers = {case: reduced(case.spec, case.scale if scale is None else scale) for case in figure.cases}

    def tasks(self) -> Iterator[Any]:
        for case, (spec, _) in self._layers.items():
            for draw in range(self._draws):
                yield case.kind.task(spec, self._seed, draw)

    def reproduction(self, results: Iterator[Any]) -> Reproduction:
        """What follows from the results of the tasks, taken in their order."""
        drawn = {}
        for case, (spec, scale) in self._layers.items():
            reads = tuple(case.kind.read(next(results), spec) for _ in range(self._draws))
            drawn[case] = Drawn(limiting_law(case.spec), spec, scale, reads)
        figure, found = self._figure, Found(drawn)
        rows = tuple(_row(quantity, found) for quantity in figure.quantities)
        return Reproduction(
            figure.name, figure.title, figure.setting, figure.note, self._seed, rows, lambda: figure.panels(found)
        )


def _row(quantity: Reproduced, found: Found) -> Row:
    theory = None
    if quantity.theory is not None:
        theory = float(quantity.theory([found.law(case) for case in quantity.cases]))
    agrees = None
    if theory is not None and quantity.printed_theory is not None:
        agrees = quantity.printed_theory.agrees(theory)
    simulated, drawn, missing = None, None, None
    if quantity.measure is not None:
        values = found.measured(quantity.measure, *quantity.cases)
        missing = sum(math.isnan(value) for value in values)
        simulated = None if missing else Estimate.of(values)
        drawn = found.drawn[quantity.cases[0]]
    printed = quantity.printed
    return Row(
        label=quantity.label, quantity=quantity.name, theory=theory, theory_agrees=agrees,
        printed_theory=None if quantity.printed_theory is None else quantity.printed_theory.text,
        simulated=None if simulated is None else simulated.mean,
        half_width=None if simulated is None else simulated.half_width,
        without_value=missing, n_tokens=None if drawn is None else drawn.spec.n_tokens,
        scale=None if drawn is None else drawn.scale,
        draws=None if drawn is None else len(drawn.reads), from_theory=_in_intervals(simulated, theory, None),
        printed=None if printed is None else printed.text,
        printed_half_width=None if printed is None else printed.half_width,
        from_printed=_from_printed(simulated, printed) if drawn is not None and drawn.scale == 1 else None,
    )


def _from_printed(simulated: Estimate | None, printed: Printed | None) -> float | None:
    return None if printed is None else _in_intervals(simulated, printed.value, printed.half_width)


def _in_intervals(simulated: Estimate | None, other: float | None, half_width: float | None) -> float | None:
    """A difference over its half-width: that of the estimate and, where there is one, of the other value."""
    if simulated is None or other is None or simulated.half_width is None:
        return None
    width = math.hypot(simulated.half_width, half_width or 0.0)
    return (simulated.mean - other) / width if width > 0 else None

