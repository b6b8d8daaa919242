"""What a published table or figure consists of, as data: layers, quantities, and what is drawn of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, final

from freeattn.evidence.compare import LawTable
from freeattn.evidence.published import Printed
from freeattn.evidence.reproduce_draws import Kind
from freeattn.evidence.verify import Estimate
from freeattn.model.attention import Attention
from freeattn.numerics.law import SpectralLaw

__all__ = ["Case", "Draw", "Drawn", "Figure", "Found", "Histogram", "Line", "Panel", "Points", "Reproduced", "reduced"]

Vector: TypeAlias = Any  # a list or array of floats

_SIZES = ("n_tokens", "d_model", "d_key", "d_value", "d_out")


def reduced(spec: Attention, scale: int) -> tuple[Attention, int]:
    """The layer with all sizes divided, heads and ratios kept: by the largest divisor of `scale` that divides them all.

    The law is the same; the second value says by how much they were divided.
    """
    sizes = {name: getattr(spec, name) for name in _SIZES if getattr(spec, name) is not None}
    factor = math.gcd(scale, *sizes.values())
    return spec.replace(**{name: size // factor for name, size in sizes.items()}), factor


@final
@dataclass(frozen=True)
class Case:
    """One layer of a figure.

    Attributes:
        spec: the layer at the size of the publication.
        kind: what is drawn of it.
        scale: by how much its sizes are divided unless another scale is asked for; 1 where a draw takes seconds.
    """

    spec: Attention
    kind: Kind
    scale: int = 1


@final
@dataclass(frozen=True)
class Draw:
    """One draw of a case: its law, tabulated for the size that was drawn, and what `kind` read."""

    table: LawTable
    read: Any

    @property
    def unit(self) -> float:
        """The mean of the law."""
        return self.table.mean


@final
@dataclass(frozen=True, eq=False)
class Drawn:
    """A case with all its draws.

    Attributes:
        law: the limiting law; the same at the size of the publication and at the one that was drawn.
        spec, scale: the layer that was drawn, and by how much its sizes were divided.
        reads: what was read of each draw.
    """

    law: SpectralLaw
    spec: Attention
    scale: int
    reads: tuple[Any, ...]

    @cached_property
    def draws(self) -> tuple[Draw, ...]:
        """The draws next to the numbers of the law."""
        table = LawTable.of(self.law, self.spec.n_tokens)
        return tuple(Draw(table, read) for read in self.reads)


@final
@dataclass(frozen=True, kw_only=True)
class Reproduced:
    """One line of a table: a number that the theory gives, or that is measured on draws, or both.

    Attributes:
        label, name: the layer and the quantity, for the reader.
        cases: the layers that it is about.
        theory: from the laws of the cases; None when the theory has no value.
        measure: from one draw of each case, with the same seed, NaN for a draw that does not have the quantity; None
            when nothing is simulated.
        printed_theory, printed: what the publication prints for the two.
    """

    label: str
    name: str
    cases: tuple[Case, ...]
    theory: Callable[[Sequence[SpectralLaw]], Any] | None = None
    measure: Callable[[Sequence[Draw]], float] | None = None
    printed_theory: Printed | None = None
    printed: Printed | None = None


@final
@dataclass(frozen=True, eq=False)
class Found:
    """Everything that was computed and drawn for a figure."""

    drawn: Mapping[Case, Drawn]

    def law(self, case: Case) -> SpectralLaw:
        """The law of a layer."""
        return self.drawn[case].law

    def measured(self, measure: Callable[[Sequence[Draw]], Any], *cases: Case) -> list[Any]:
        """A quantity for each draw."""
        together = zip(*(self.drawn[case].draws for case in cases), strict=True)
        return [measure(draws) for draws in together]

    def points(self, label: str, measure: Callable[[Sequence[Draw]], float], where: Mapping[Any, Any]) -> Points:
        """Means over draws with their intervals, at each x the cases given for it."""
        found = [Estimate.of(self.measured(measure, *_as_tuple(cases))) for cases in where.values()]
        return Points(label, list(where), [e.mean for e in found], [e.half_width or 0.0 for e in found])


def _as_tuple(cases: Any) -> tuple[Case, ...]:
    return (cases,) if isinstance(cases, Case) else tuple(cases)


# Pictures ---------------------------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, eq=False)
class Line:
    """A curve of the theory."""

    label: str
    x: Vector
    y: Vector


@final
@dataclass(frozen=True, eq=False)
class Points:
    """Measured values with their half-widths; they have the colour of the line of the same label."""

    label: str
    x: Vector
    y: Vector
    half_widths: Vector


@final
@dataclass(frozen=True, eq=False)
class Histogram:
    """A law over the pooled values of all draws."""

    law: SpectralLaw
    values: Vector


@final
@dataclass(frozen=True, eq=False)
class Panel:
    """One pair of axes.

    Attributes:
        title, x_name, y_name: texts.
        lines, points: curves and measured values; `histogram` stands alone.
        log: axes that are logarithmic, "", "x", "y" or "xy".
        marks: positions on the x axis with a text, drawn as vertical lines.
        names: texts in place of the numbers 0, 1, … on the x axis.
    """

    title: str
    x_name: str = ""
    y_name: str = ""
    lines: tuple[Line, ...] = ()
    points: tuple[Points, ...] = ()
    histogram: Histogram | None = None
    log: str = ""
    marks: tuple[tuple[float, str], ...] = ()
    names: tuple[str, ...] = ()


@final
@dataclass(frozen=True, kw_only=True)
class Figure:
    """A published table or figure.

    Attributes:
        name: as on the command line.
        title, setting: what it shows, and of which layers.
        draws: how many unless another number is asked for.
        quantities: the lines of its table.
        panels: its picture, from everything found.
        note: what a reader should know about this reproduction.
    """

    name: str
    title: str
    setting: str
    draws: int
    quantities: tuple[Reproduced, ...]
    panels: Callable[[Found], tuple[Panel, ...]]
    note: str = ""

    @property
    def cases(self) -> tuple[Case, ...]:
        """Every layer that is drawn, once."""
        return tuple(dict.fromkeys(case for quantity in self.quantities for case in quantity.cases))
