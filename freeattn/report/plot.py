"""Pictures of laws: one over the histogram of a sample, or several on the same axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freeattn.errors import InputError
from freeattn.report.curves import line_of, named
from freeattn.report.given_samples import Sample, sample_values
from freeattn.report.grid import BINS, DensityView, cdf_curve, law_grid
from freeattn.report.lettering import plain_text
from freeattn.report.style import COLOURS, LINE_WIDTH, MUTED, axes_of, legend, set_title

__all__ = ["law_title", "plot_law", "plot_laws"]

_CURVE_POINTS = 800
_FEW_BINS, _FEW = 40, 4000  # fewer bins below so many values
_HEADROOM = 1.15  # height of the axis over what it shows
_HANDLE, _LETTER = 0.17, 0.018  # width of a legend in a column: of its handles and of a letter, as shares of the axis
_MARGIN, _ROW = 0.05, 0.08  # its height: above, and of a row
_LEAST_BELOW = 0.5  # share of the height that is left to the curves, however long the legend
_DECADES = 1e-2  # left over right edge below which a band is drawn on a logarithmic axis
_BAR, _BAR_STEP = 1.6, 0.018  # points, and share of the height: bars that show bands of several laws
_LAW = COLOURS[1]

Curve = tuple[NDArray[np.float64], NDArray[np.float64]]  # x and heights


def plot_law(
    law: Any, ax: Any = None, *, sample: Any = None, normalized: bool = False, log: bool | None = None,
    cdf: bool = False, label: str = "limiting law", title: str = "",
) -> Any:
    """Density of a law with its bands shaded and its atoms marked, over the histogram of a sample.

    Args:
        law: a `SpectralLaw`.
        ax: matplotlib Axes to draw on; a new figure of the width of a column when None.
        sample: squared singular values, or eigenvalues: an array, a result of `fa.sample` (its softmax values), or a
            list of them, which are pooled. Values at an atom are left out of the histogram and counted in the legend:
            the area of the histogram is one minus their share, as that of the density is one minus the atom.
        normalized: divide the law, and the sample, by the mean of the law.
        log: logarithmic axis with the density of log x, x ρ(x); shows hard and nearly hard edges. None takes it
            when the support spreads over more than two decades.
        cdf: distribution functions in place of densities; an atom is a jump.
        label: of the law, in the legend.
        title: above the Axes. Both are drawn letter for letter; a formula is set on the Axes: `ax.set_title("$x$")`.

    Returns:
        The Axes; `ax.figure` is the figure, for `fa.save_figure` or `savefig`.

    Raises:
        InputError: for what is no sample (`report.given_samples`), such as values below 0 beside a law of squares, and
            for log=True with a law that has values below 0.
        MissingExtraError: when matplotlib is not installed.
    """
    values = None if sample is None else sample_values(sample, law.signed)
    if normalized:
        mean, law = law.mean, law.normalized()
        values = None if values is None else values / np.asarray(mean, dtype=values.dtype)
    log, label = _logarithmic([law], log), plain_text(label)
    few = values is not None and values.size < _FEW
    view = DensityView.of(law, log, _FEW_BINS if few else BINS)
    ax = axes_of(ax)
    if title:
        set_title(ax, title)
    for left, right in law.edges:
        ax.axvspan(max(float(left), float(view.bins[0])), float(right), color=MUTED["band"], linewidth=0, zorder=0)
    if cdf:
        curve = _draw_cdf(ax, view, values, label)
        _finish(ax, [view], normalized, [curve], cdf=True)
        return ax
    highest, shapes = float(view.law_bars().max()), []
    if values is not None:
        shapes.append(_draw_sample(ax, view, values))
        highest = max(highest, float(shapes[0][1].max()))
    shapes.append(_draw_density(ax, view, label, color=_LAW, linestyle="-"))
    top = _height(_peak(shapes[-1]), highest)
    _draw_atoms(ax, view, values, top)
    _finish(ax, [view], normalized, shapes, top=top)
    return ax


def plot_laws(
    laws: Mapping[str, Any] | Sequence[Any], ax: Any = None, *, normalized: bool = False, log: bool | None = None,
    cdf: bool = False,
) -> Any:
    """Densities of several laws on the same axes, told apart by colours and line styles.

    Bars at the bottom are the bands of each law; atoms stand in the legend.

    Args:
        laws: names and laws, {"β = 1": law, …}; or a list of laws, which are called as their layers are.
        ax, normalized, log, cdf: as for `SpectralLaw.plot`; each law is divided by its own mean.

    Returns:
        The Axes.

    Raises:
        InputError: when there is no law, and for log=True with values below 0.
        MissingExtraError: when matplotlib is not installed.
    """
    chosen = {name: law.normalized() if normalized else law for name, law in named(laws, "laws").items()}
    log = _logarithmic(list(chosen.values()), log)
    views = [DensityView.of(law, log) for law in chosen.values()]
    ax = axes_of(ax)
    low, high = min(float(view.bins[0]) for view in views), max(float(view.bins[-1]) for view in views)
    curves, tops = [], []
    for k, (name, view) in enumerate(zip(chosen, views, strict=True)):
        look = line_of(k)
        label = ", ".join([plain_text(name), *(_atom_text(atom) for atom in _real_atoms(view.law))])
        if cdf:
            curves.append(cdf_curve(view.law, low, high, _CURVE_POINTS))
            ax.plot(*curves[-1], label=label, linewidth=LINE_WIDTH, **look)
        else:
            curves.append(_draw_density(ax, view, label, **look))
            tops.append(_height(_peak(curves[-1]), float(view.law_bars().max())))
        for left, right in view.law.edges:
            ax.plot(
                [max(float(left), low), float(right)], [(k + 0.6) * _BAR_STEP] * 2, color=look["color"],
                linewidth=_BAR, solid_capstyle="butt", transform=ax.get_xaxis_transform(), zorder=1,
            )
    _finish(ax, views, normalized, curves, cdf=cdf, top=max(tops, default=1.0))
    return ax


def law_title(spec: Any, draws: int = 0) -> str:
    """One line about a layer, and how many draws are shown; without what it does not have."""
    betas = ", ".join(f"{float(beta):g}" for beta in spec.betas)
    parts = [spec.name or "", spec.output, f"n = {spec.n_tokens}" if spec.n_tokens else "", f"β = {betas}"]
    parts += ["finite size" if spec.finite_size else "", f"{draws} draw{'' if draws == 1 else 's'}" if draws else ""]
    return ", ".join(part for part in parts if part)


# Parts ------------------------------------------------------------------------------------------------------


def _spreads(law: Any) -> bool:
    """True when the support on the positive axis is too wide for a linear one."""
    ends = [float(end) for left, right in law.edges if left >= 0 for end in (left, right)]
    return bool(ends) and min(ends) < _DECADES * max(ends)


def _logarithmic(laws: Sequence[Any], log: bool | None) -> bool:
    """The axis that was asked for, else the one that the laws need and allow."""
    ends = [[float(end) for band in law.edges for end in band] for law in laws]
    places = [[float(atom.location) for atom in law.atoms] for law in laws]
    allowed = all(max(each) > 0 and min(each) >= 0 for each in (a + b for a, b in zip(ends, places, strict=True)))
    if log and not allowed:
        raise InputError("log", log, "False for laws with values below 0, or 0 alone")
    return (allowed and any(map(_spreads, laws))) if log is None else log


def _real_atoms(law: Any) -> list[Any]:
    return [atom for atom in law.atoms if float(atom.weight) > 0]


def _atom_text(atom: Any) -> str:
    return f"atom {float(atom.weight):.4g} at {float(atom.location):.4g}"


def _sample_label(size: int, beyond: int = 0) -> str:
    return f"sample of {size}" + (f" ({beyond} beyond the axis)" if beyond else "")


def _draw_sample(ax: Any, view: DensityView, sample: Sample) -> Curve:
    """The histogram; its heights at the middles of its bins."""
    heights, beyond = view.sample_bars(sample)
    label = _sample_label(sample.size, beyond)
    ax.stairs(heights, view.bins, fill=True, color=MUTED["sample"], label=label, zorder=1)
    return (view.bins[:-1] + view.bins[1:]) / 2, heights


def _peak(curve: Curve) -> float:
    return float(curve[1].max()) if curve[1].size else 0.0


def _draw_density(ax: Any, view: DensityView, label: str, **look: Any) -> Curve:
    """One line for each band, the first with the label; and all points of the curve."""
    grid = law_grid(view.law, _CURVE_POINTS)
    grid = grid[grid >= view.bins[0]]
    heights = view.height(grid)
    for number, (left, right) in enumerate(view.law.edges):
        inside = (grid >= float(left)) & (grid <= float(right))
        name = label if number == 0 else None
        ax.plot(grid[inside], heights[inside], label=name, linewidth=LINE_WIDTH, zorder=3, **look)
    if not view.law.edges:
        ax.plot([], [], label=label, linewidth=LINE_WIDTH, **look)
    return grid, heights


def _draw_cdf(ax: Any, view: DensityView, sample: Sample | None, label: str) -> Curve:
    low, high = float(view.bins[0]), float(view.bins[-1])
    if sample is not None:
        steps = np.clip(np.sort(sample.astype(float)), low, high)  # what lies beyond the axis is there at its end
        shares = np.arange(1, steps.size + 1) / steps.size
        ax.step(
            np.concatenate([[low], steps, [high]]), np.concatenate([[0.0], shares, [1.0]]), where="post",
            color=MUTED["steps"], linewidth=2 * LINE_WIDTH, label=_sample_label(sample.size), zorder=2,
        )
    curve = cdf_curve(view.law, low, high, _CURVE_POINTS)
    ax.plot(*curve, color=_LAW, linewidth=LINE_WIDTH, label=label, zorder=3)
    return curve


def _draw_atoms(ax: Any, view: DensityView, sample: Sample | None, top: float) -> None:
    """An arrow for each atom, and in the legend its weight with the share of the sample that is at it."""
    shares = None if sample is None else [np.count_nonzero(at) / sample.size for at in view.at_atoms(sample)]
    for number, atom in enumerate(view.law.atoms):
        if float(atom.weight) <= 0:
            continue
        place = float(atom.location)
        shown = place >= float(view.bins[0])  # 0 has no place on a logarithmic axis
        label = _atom_text(atom) + ("" if shares is None else f" (sample: {shares[number]:.4g})")
        ax.plot(
            *(([place, place], [0, top]) if shown else ([], [])), color=MUTED["atom"], linewidth=LINE_WIDTH,
            marker="^", markersize=4, markevery=[1] if shown else None, label=label, zorder=4,
        )


def _height(peak: float, bars: float) -> float:
    """What the axis has to show: all of it, unless a hard or nearly hard edge towers above the histograms."""
    if max(peak, bars) <= 0:
        return 1.0
    return max(peak, bars) if peak < 2 * bars else 1.5 * bars


def _finish(
    ax: Any, views: Sequence[DensityView], normalized: bool, curves: Sequence[Curve], *, cdf: bool = False,
    top: float = 1.0,
) -> None:
    """Scales, limits, names, and the legend where the curves leave a corner free."""
    log = views[0].log
    low, high = min(float(view.bins[0]) for view in views), max(float(view.bins[-1]) for view in views)
    margin = 0.0 if log else 0.02 * (high - low)
    squares = all(hasattr(view.law.spec, "output") for view in views)
    name = ("squared singular value" if squares else "eigenvalue") + (" / mean" if normalized else "")
    labels = ax.get_legend_handles_labels()[1]
    height, place = (
        _room_for_cdf(curves, low, high, log) if cdf else _room(curves, labels, low, high, log, top)
    )
    value = "distribution function" if cdf else "density of the logarithm" if log else "density"
    ax.set_xscale("log" if log else "linear")
    ax.autoscale(axis="y")  # not the bottom of another law that was drawn before
    bottom = None if ax.get_yscale() == "log" else 0
    ax.set(xlim=(low - margin, high), ylim=(bottom, height), xlabel=name, ylabel=value)
    legend(ax, place)


def _room_for_cdf(curves: Sequence[Curve], low: float, high: float, log: bool) -> tuple[float, str]:
    """Height of the axis, and the corner that is off the curves: below those that are high half way."""
    middle = float(np.sqrt(low * high)) if log else (low + high) / 2
    half_way = np.mean([np.interp(middle, x, y) for x, y in curves])
    return 1.04, "lower right" if half_way > 0.5 else "upper left"


def _room(
    shapes: Sequence[Curve], labels: Sequence[str], low: float, high: float, log: bool, top: float
) -> tuple[float, str]:
    """Height of the axis, and the upper corner, that keep the legend off what is drawn."""
    width = min(1.0, _HANDLE + _LETTER * max(map(len, labels), default=0))
    below = 1 - _MARGIN - _ROW * len(labels)  # share of the height that the legend leaves
    needed = {}
    for corner, start in (("upper right", 1 - width), ("upper left", 0.0)):
        parts = []
        for x, y in shapes:
            share = np.log(x / low) / np.log(high / low) if log else (x - low) / (high - low)
            parts.append(y[(share >= start) & (share <= start + width)])
        highest = max((float(part.max()) for part in parts if part.size), default=0.0)
        needed[corner] = min(highest, top) / max(below, _LEAST_BELOW)
    corner = min(needed, key=lambda name: needed[name])
    return max(_HEADROOM * top, needed[corner]), corner
