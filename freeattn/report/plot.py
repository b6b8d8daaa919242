"""The curve of a law on a grid that resolves its edges, and its picture over the histogram of a sample.

matplotlib is the extra "plot". Only its object interface is used: no pyplot, no global state, no display.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freeattn.errors import InputError, MissingExtraError

__all__ = [
    "PLOT_SUFFIXES", "DensityView", "check_plot_file", "density_rows", "figure_class", "law_grid", "plot_law",
    "save_law_plot",
]

PLOT_SUFFIXES = (".png", ".pdf", ".svg")
_SQUARE_ROOT = 0.5  # exponent of a soft edge
_WIDE_BAND = 20.0  # right/left end above which half of a band's points are spaced by factors
_CURVE_POINTS = 800
_BINS = 80
_HEADROOM = 1.15  # height of the axis over what it shows, for the legend
_SHOWN_BEYOND = 1.12  # the axis ends here, relative to the outermost edge
_DECADES = 1e-2  # left over right edge below which a band is drawn on a logarithmic axis
_HIDDEN_BELOW = 2e-3  # share of a band at a hard edge that a logarithmic axis leaves out, at most
_ROUNDING = 1e-9  # relative to the axis: values this close to an atom are at it
_RGB = {"law": "#b2182b", "sample": "#9db4c8", "band": "#f3e3df", "atom": "#4d4d4d"}

_ARROW = {"arrowstyle": "-|>", "color": _RGB["atom"], "linewidth": 1.5, "shrinkA": 0, "shrinkB": 0}

# The curve --------------------------------------------------------------------------------------------------


def _half_to_edge(count: int, exponent: float) -> NDArray[np.float64]:
    """Distances from an edge in (0, 1/2], as u^p/2 with u equispaced and p = max(2, 2/(1 + exponent)).

    With ρ ~ t^e at distance t, ρ dt/du ~ u^{p(1 + e) − 1} then vanishes at least like u; p = 2 at a
    square-root edge, where ρ itself is linear in u.
    """
    power = max(2.0, 2.0 / (1.0 + exponent))
    return 0.5 * (np.arange(1, count + 1) / count) ** power


def _band_grid(
    left: float, right: float, exponents: tuple[float, float], count: int
) -> NDArray[np.float64]:
    """`count` increasing points, dense at the ends, which are among them unless ρ diverges there."""
    ends = [end for end, exponent in zip((left, right), exponents, strict=True) if exponent > 0]
    inner = max(count - len(ends), 1)
    spread = inner // 3 if left > 0 and right > _WIDE_BAND * left else 0
    lower = (inner - spread + 1) // 2
    low = left + (right - left) * _half_to_edge(lower, exponents[0])
    high = right - (right - left) * _half_to_edge(inner - spread - lower + 1, exponents[1])[:-1]
    factors = left * (right / left) ** (np.arange(1, spread + 1) / (spread + 1)) if spread else np.empty(0)
    return np.unique(np.concatenate([ends, low, high, factors]))


def law_grid(law: Any, points: int = 1000) -> NDArray[np.float64]:
    """Increasing points that resolve every band of a law: about `points` in all, at most that many.

    Each band gets an equal share. Near an edge of exponent e the distance to it goes like u^{2/(1+e)} with u
    equispaced (u² at square-root edges); a band whose ends differ by a large factor also gets points spaced
    by equal factors. Edges belong to the grid unless the density diverges there.
    """
    bands = [(float(left), float(right)) for left, right in law.edges]
    if not bands:
        return np.empty(0)
    shares = [len(part) for part in np.array_split(np.arange(points), len(bands))]
    parts = [
        _band_grid(left, right, (float(soft[0]), float(soft[1])), share)
        for (left, right), soft, share in zip(bands, law.edge_exponents, shares, strict=True)
        if share
    ]
    return np.concatenate(parts)


def density_rows(law: Any, points: int = 1000) -> Iterator[tuple[float, float, float]]:
    """(x, density, cdf) on `law_grid`; atoms are steps of the cdf and no part of the density."""
    x = law_grid(law, points)
    density = np.asarray(law.density(x), dtype=float)
    cdf = np.asarray(law.cdf(x), dtype=float)
    yield from zip(x.tolist(), density.tolist(), cdf.tolist(), strict=True)


# The picture ------------------------------------------------------------------------------------------------


def figure_class() -> Any:
    """matplotlib's Figure.

    Raises:
        MissingExtraError: when matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("plotting", "plot") from None
    return Figure


def check_plot_file(path: str | os.PathLike[str]) -> None:
    """Refuse, before anything is computed, a picture that could not be written.

    Raises:
        InputError: for a suffix other than .png, .pdf, .svg.
        MissingExtraError: when matplotlib is not installed.
    """
    if Path(path).suffix.lower() not in PLOT_SUFFIXES:
        raise InputError("plot", os.fspath(path), f"a file name that ends in {', '.join(PLOT_SUFFIXES)}")
    figure_class()


@dataclass(frozen=True)
class DensityView:
    """What of a law is drawn: bins along the axis, and density per unit of x, or of log x."""

    law: Any
    bins: NDArray[np.float64]
    log: bool

    @classmethod
    def of(cls, law: Any, log: bool) -> DensityView:
        ends = [float(end) for band in law.edges for end in band]
        ends += [float(atom.location) for atom in law.atoms if not (log and float(atom.location) <= 0)]
        if not log:
            ends.append(0.0)
            limit = _SHOWN_BEYOND * max(ends) if max(ends) > 0 else 1.0
            return cls(law, np.linspace(min(ends), limit, _BINS + 1), log)
        zero = sum(float(atom.weight) for atom in law.atoms if float(atom.location) <= 0)
        low = max(float(law.quantile(zero + _HIDDEN_BELOW * (1 - zero))) / 2, min(ends) / _SHOWN_BEYOND)
        return cls(law, np.geomspace(low, _SHOWN_BEYOND**2 * max(ends), _BINS + 1), log)

    @property
    def widths(self) -> NDArray[np.float64]:
        """Widths of the bins, in x or log x."""
        return np.diff(np.log(self.bins) if self.log else self.bins)

    def height(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """ρ(x), or x ρ(x) on a logarithmic axis."""
        density = np.asarray(self.law.density(x), dtype=float)
        return density * x if self.log else density

    def law_bars(self) -> NDArray[np.float64]:
        """Mean height of the law in each bin, atoms left out."""
        mass = np.diff(np.asarray(self.law.cdf(self.bins), dtype=float))
        for atom in self.law.atoms:
            place = float(atom.location)
            mass[(self.bins[:-1] < place) & (place <= self.bins[1:])] -= float(atom.weight)
        return mass / self.widths

    def sample_bars(self, sample: NDArray[np.float64]) -> tuple[NDArray[np.float64], int]:
        """Heights of the histogram without the values at atoms, and how many values no bin holds."""
        at_atom = np.zeros(sample.shape, dtype=bool)
        for atom in self.law.atoms:
            at_atom |= np.abs(sample - float(atom.location)) <= _ROUNDING * float(self.bins[-1])
        continuous = sample[~at_atom]
        counts = np.histogram(continuous, self.bins)[0]
        return counts / (sample.size * self.widths), int(continuous.size - counts.sum())


def plot_law(
    law: Any, ax: Any = None, sample: ArrayLike | None = None, normalized: bool = False, log: bool | None = None
) -> Any:
    """Density of a law with its bands shaded and its atoms marked, over the histogram of a sample.

    Args:
        law: a `SpectralLaw`.
        ax: matplotlib Axes to draw on; a new figure when None.
        sample: squared singular values; values at an atom are left out of the histogram, whose area is one
            minus their share, as for the density.
        normalized: divide the law, and the sample, by the mean of the law.
        log: logarithmic axis with the density of log x, x ρ(x); shows hard and nearly hard edges. None takes it
            when a band spreads over more than two decades.

    Returns:
        The Axes; `ax.figure` is the figure.

    Raises:
        InputError: when the sample is empty or not finite.
        MissingExtraError: when matplotlib is not installed.
    """
    if ax is None:
        ax = figure_class()(figsize=(7.0, 4.2), layout="constrained").add_subplot()
    values = None if sample is None else _checked_sample(sample)
    if normalized:
        values = None if values is None else values / float(law.mean)
        law = law.normalized()
    log = _spreads(law) if log is None else log
    view = DensityView.of(law, log)
    for left, right in law.edges:
        ax.axvspan(max(float(left), float(view.bins[0])), float(right), color=_RGB["band"], zorder=0)
    bars = [float(view.law_bars().max())]
    if values is not None:
        bars.append(_draw_sample(ax, view, values))
    top = _HEADROOM * _height(_draw_density(ax, view), max(bars))
    _draw_atoms(ax, view, top / _HEADROOM)
    name = "squared singular value" + (" / mean" if normalized else "")
    margin = 0.0 if log else 0.02 * (view.bins[-1] - view.bins[0])
    ax.set(xlim=(view.bins[0] - margin, view.bins[-1]), ylim=(0, top), xlabel=name)
    ax.set(**({"xscale": "log", "ylabel": "density of the logarithm"} if log else {"ylabel": "density"}))
    ax.legend(frameon=False, loc="upper right")
    return ax


def _spreads(law: Any) -> bool:
    """True when a band on the positive axis is too wide for a linear one."""
    return any(0 <= float(left) < _DECADES * float(right) for left, right in law.edges)


def _title(spec: Any, draws: int) -> str:
    parts = [f"{spec.name}", f"{spec.output}", f"n_tokens {spec.n_tokens}", f"β = {float(spec.beta):g}"]
    return ", ".join(parts + ([f"{draws} draw{'' if draws == 1 else 's'}"] if draws else []))


def _draw_sample(ax: Any, view: DensityView, sample: NDArray[np.float64]) -> float:
    heights, beyond = view.sample_bars(sample)
    label = f"sample of {sample.size}" + (f" ({beyond} beyond the axis)" if beyond else "")
    ax.stairs(heights, view.bins, fill=True, color=_RGB["sample"], label=label, zorder=1)
    return float(heights.max())


def _draw_density(ax: Any, view: DensityView) -> float:
    grid = law_grid(view.law, _CURVE_POINTS)
    grid = grid[grid >= view.bins[0]]
    heights = view.height(grid)
    for number, (left, right) in enumerate(view.law.edges):
        inside = (grid >= float(left)) & (grid <= float(right))
        label = "limiting law" if number == 0 else None
        ax.plot(grid[inside], heights[inside], color=_RGB["law"], linewidth=1.8, label=label, zorder=3)
    return float(heights.max()) if heights.size else 0.0


def _height(peak: float, bars: float) -> float:
    """What the axis has to show: all of it, unless a hard or nearly hard edge towers above the histograms."""
    if max(peak, bars) <= 0:
        return 1.0
    return max(peak, bars) if peak < 2 * bars else 1.5 * bars


def _draw_atoms(ax: Any, view: DensityView, top: float) -> None:
    for atom in view.law.atoms:
        if float(atom.weight) <= 0:
            continue
        place = float(atom.location)
        shown = max(place, float(view.bins[0]))  # 0 has no place on a logarithmic axis
        if shown == place:
            ax.annotate("", xy=(place, top), xytext=(place, 0), zorder=4, arrowprops=_ARROW)
        ax.annotate(
            f"atom {float(atom.weight):.4g} at {place:.4g}", xy=(shown, top), xytext=(6, -4),
            textcoords="offset points", color=_RGB["atom"], ha="left", va="top",
        )


def _checked_sample(sample: ArrayLike) -> NDArray[np.float64]:
    values = np.ravel(np.asarray(sample, dtype=float))
    if not values.size or not np.isfinite(values).all():
        raise InputError("sample", f"an array of shape {values.shape}", "at least one number, all finite")
    return values


def save_law_plot(
    law: Any, path: str | os.PathLike[str], samples: Sequence[ArrayLike] | None = None,
    normalized: bool = False, log: bool | None = None,
) -> None:
    """Write `plot_law` to a .png, .pdf or .svg file, over the pooled histogram of the samples.

    Raises:
        InputError, MissingExtraError: as `check_plot_file`.
    """
    check_plot_file(path)
    pooled = np.concatenate([np.ravel(np.asarray(one, dtype=float)) for one in samples]) if samples else None
    ax = plot_law(law, sample=pooled, normalized=normalized, log=log)
    if law.spec is not None and getattr(law.spec, "name", None):
        ax.set_title(_title(law.spec, len(samples) if samples else 0))
    ax.figure.savefig(path, format=Path(path).suffix[1:].lower(), dpi=160)
