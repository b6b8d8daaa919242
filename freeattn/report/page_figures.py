"""The figures of a report as values: curves, histograms and lines over axes, for drawing still or interactively."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from freeattn.report.data import Curve, DensityData, Histogram, LayerData, ReportData

__all__ = ["Axis", "Figure", "Series", "View", "figures_of"]

_HEADROOM = 1.12
_TALLEST = 2.0  # peak over highest mean in a bin from which on a hard edge is cut off
_CUT_AT = 1.5  # times that mean
_WIDE = 1e-2  # left over right end below which the logarithmic axis is shown first
_LEAST_LOSS = 1e-6  # a logarithmic axis of losses goes down to here
_WIDEST_ERROR = 1e3  # errors of ridge regression that a figure shows, over the least one


@dataclass(frozen=True)
class Axis:
    """One axis: its label, its ends, and whether it is logarithmic."""

    label: str
    low: float
    high: float
    log: bool = False


@dataclass(frozen=True)
class Series:
    """Something drawn: kind "curve", "bars" or "line" (a vertical line at x[0]).

    Attributes:
        label: for the legend; includes the layer's name.
        layer: position of its layer, which gives its colour and dashes.
        x, y: points of a curve, ends and heights of bars; a line has one x, and `note` as its text.
        pieces: parts of a curve that are not joined.
    """

    kind: str
    label: str
    layer: int
    x: tuple[float, ...]
    y: tuple[float, ...] = ()
    pieces: tuple[tuple[int, int], ...] = ()
    note: str = ""


@dataclass(frozen=True)
class View:
    """One way to draw a figure, such as on a logarithmic axis."""

    name: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]


@dataclass(frozen=True)
class Figure:
    """A figure with one view or several.

    Attributes:
        key: an identifier for anchors.
        title, description: for captions, and for readers who do not see it.
        argument: what stands on the horizontal axis, for the table of its numbers.
        views: the first is shown first.
    """

    key: str
    title: str
    description: str
    argument: str
    views: tuple[View, ...]

    @property
    def bars(self) -> bool:
        """True when there are histograms."""
        return any(one.kind == "bars" for view in self.views for one in view.series)


def figures_of(data: ReportData) -> tuple[Figure, ...]:
    """Density, ridge error, degrees of freedom and loss, as far as the layers have them."""
    found = [_density(data.layers)]
    ridge = [(k, layer.name, layer.ridge) for k, layer in enumerate(data.layers) if layer.ridge is not None]
    freedom = [(k, layer.name, layer.freedom) for k, layer in enumerate(data.layers) if layer.freedom is not None]
    loss = [(k, layer.name, layer.loss) for k, layer in enumerate(data.layers) if layer.loss is not None]
    penalty = "penalty λ"
    if ridge:
        found.append(_predicted(
            "ridge", "Error of ridge regression",
            f"Error of the coefficients against the penalty, at noise variance {data.noise:g}; each curve is lowest "
            "at the best penalty.", penalty, "error E‖v̂ − ϑ‖²", ridge, _error_range(ridge), linear=False,
        ))
    if freedom:
        found.append(_predicted(
            "freedom", "Effective degrees of freedom", "Degrees of freedom per token of ridge regression against the "
            "penalty, from the rank over n at penalty 0 down to 0.", penalty, "degrees of freedom per token",
            freedom, (0.0, 1.05), linear=True,
        ))
    if loss:
        found.append(_predicted(
            "loss", "Training loss of gradient flow", "Relative training loss of gradient flow against time, from 1 at "
            "the start down to the weight of the atom at 0.", "time t", "loss", loss, _loss_range(loss), linear=False,
        ))
    return tuple(found)


# The density ------------------------------------------------------------------------------------------------


def _density(layers: Sequence[LayerData]) -> Figure:
    views = [_density_view(layers, place, name) for place, name in enumerate(("linear", "logarithmic"))]
    if any(x[0] < _WIDE * x[-1] for x in (layer.densities[0].curve.x for layer in layers)):
        views.reverse()
    drawn = any(layer.densities[0].sample for layer in layers)
    histogram = "; histograms are of simulated softmax attention" if drawn else ""
    return Figure(
        "density", "Density of the law of mean one",
        f"Density of the squared singular values divided by their mean{histogram}. Bars on the axis are the bands; "
        "vertical lines mark atoms and, on the logarithmic axis, the leading squared singular value of the output that "
        "is not centered. On the logarithmic axis it is the density of the logarithm, x ρ(x).", "x", tuple(views),
    )


def _density_view(layers: Sequence[LayerData], place: int, name: str) -> View:
    log = place == 1
    chosen = [layer.densities[place] for layer in layers]
    series = [one for k, layer in enumerate(layers) for one in _density_series(k, layer, layer.densities[place])]
    low = min(one.means.edges[0] for one in chosen)
    high = max([one.means.edges[-1] for one in chosen] + [s.x[0] * 1.3 for s in series if s.kind == "line" and log])
    x = Axis("x, squared singular value / mean", low if log else min(low, 0.0), high, log)
    top = _HEADROOM * max(_height(one) for one in chosen)
    return View(name, x, Axis("x ρ(x)" if log else "density ρ(x)", 0.0, top), tuple(series))


def _density_series(place: int, layer: LayerData, density: DensityData) -> Iterator[Series]:
    if density.sample is not None:
        beyond = f", {density.sample.beyond} values beyond the axis" if density.sample.beyond else ""
        label = f"{layer.name}: simulated{beyond}"
        yield Series("bars", label, place, density.sample.edges, density.sample.heights)
    for first, last in density.curve.pieces:
        ends = (density.curve.x[first], density.curve.x[last - 1])
        yield Series("band", f"{layer.name}: band", place, ends, note=f"band from {ends[0]:.6g} to {ends[1]:.6g}")
    yield Series("curve", f"{layer.name}: law", place, density.curve.x, density.curve.y, density.curve.pieces)
    for location, weight in layer.atoms:
        if location > 0 or not density.log:
            note = f"atom of weight {weight:.4g} at {location:g}"
            yield Series("line", f"{layer.name}: atom", place, (location,), note=note)
    if layer.spike is not None and density.log:
        yield Series("line", f"{layer.name}: s₁²", place, (layer.spike,), note=f"s₁² over the mean, {layer.spike:.6g}")


def _height(density: DensityData) -> float:
    """What the axis has to show: all, unless a hard or nearly hard edge towers above the histograms."""
    bars = max(density.means.heights)
    if density.sample is not None:
        bars = max(bars, *density.sample.heights)
    peak = max(density.curve.y, default=0.0)
    return max(peak, bars) if peak < _TALLEST * bars else _CUT_AT * bars


# Predictions ------------------------------------------------------------------------------------------------

_Curves = list[tuple[int, str, Curve]]


def _predicted(
    key: str, title: str, description: str, argument: str, value: str, curves: _Curves, ends: tuple[float, float],
    linear: bool,
) -> Figure:
    series = tuple(Series("curve", name, k, curve.x, curve.y, curve.pieces) for k, name, curve in curves)
    xs = [x for _, _, curve in curves for x in curve.x]
    x = Axis(argument, min(xs), max(xs), log=True)
    tallest = _HEADROOM * max((y for _, _, c in curves for y in c.y if y <= ends[1]), default=1.0)
    views = [View("linear", x, Axis(value, 0.0, min(ends[1], tallest)), series)]
    if not linear:
        views.insert(0, View("logarithmic", x, Axis(value, *ends, log=True), series))
    return Figure(key, title, description, argument, tuple(views))


def _error_range(curves: _Curves) -> tuple[float, float]:
    values = [y for _, _, curve in curves for y in curve.y if 0 < y < math.inf]
    least = min(values)
    return least / 1.3, min(max(values) * 1.3, least * _WIDEST_ERROR)


def _loss_range(curves: _Curves) -> tuple[float, float]:
    return max(min(min(curve.y) for _, _, curve in curves) / 2, _LEAST_LOSS), 1.2


def bars_outline(bars: Histogram | Series) -> Iterator[tuple[float, float]]:
    """The corners of a histogram from left to right, from the axis up and back to it."""
    edges = bars.edges if isinstance(bars, Histogram) else bars.x
    heights = bars.heights if isinstance(bars, Histogram) else bars.y
    yield edges[0], 0.0
    for left, right, height in zip(edges[:-1], edges[1:], heights, strict=True):
        yield left, height
        yield right, height
    yield edges[-1], 0.0
