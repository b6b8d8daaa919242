"""Figures as SVG: for print, for pages without scripts, and for readers of code. Colours are those of the page."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape

from freeattn.report.page_figures import Axis, Figure, Series, View, bars_outline

__all__ = ["svg_of"]

_WIDTH, _HEIGHT = 720, 380
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 14, 12, 46
_TICKS = 6  # about so many on a linear axis
_BAND = 4  # height of the bar that is a band, one above the other for several layers
_NICE = (1, 2, 2.5, 5, 10)
_PARTS = (1, 2, 5)  # of a decade, where a logarithmic axis has less than one between powers of ten


def svg_of(figure: Figure, view: View, number: int) -> str:
    """One view of a figure as an SVG element with a title and a description."""
    name = f"{figure.key}-{number}"
    parts = [
        f'<svg class="still" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-labelledby="{name}-title {name}-description">',
        f'<title id="{name}-title">{escape(f"{figure.title}, {view.name} axis")}</title>',
        f'<desc id="{name}-description">{escape(_described(figure, view))}</desc>',
        f'<clipPath id="{name}-frame"><rect x="{_LEFT}" y="{_TOP}" width="{_WIDTH - _LEFT - _RIGHT}" '
        f'height="{_HEIGHT - _TOP - _BOTTOM}"/></clipPath>',
        *_grid(view),
        f'<g clip-path="url(#{name}-frame)">', *(_drawn(one, view) for one in view.series), "</g>",
        "</svg>",
    ]
    return "\n".join(parts)


def _described(figure: Figure, view: View) -> str:
    drawn = "; ".join(dict.fromkeys(f"{one.label}{f' ({one.note})' if one.note else ''}" for one in view.series))
    return f"{figure.description} Shown: {drawn}."


def _place(value: float, axis: Axis, start: float, end: float) -> float:
    """Where a value stands; what has no place on a logarithmic axis stands far below its start."""
    if not axis.log:
        share = (value - axis.low) / (axis.high - axis.low)
    elif value <= 0:
        share = -1.0
    else:
        share = math.log(value / axis.low) / math.log(axis.high / axis.low)
    return start + min(max(share, -1.0), 2.0) * (end - start)


def _x(value: float, view: View) -> str:
    return f"{_place(value, view.x, _LEFT, _WIDTH - _RIGHT):.1f}"


def _y(value: float, view: View) -> str:
    return f"{_place(value, view.y, _HEIGHT - _BOTTOM, _TOP):.1f}"


def _path(points: Iterator[tuple[float, float]], view: View) -> str:
    return "M" + "L".join(f"{_x(x, view)} {_y(y, view)}" for x, y in points)


def _drawn(one: Series, view: View) -> str:
    mark = f'class="{one.kind} layer-{one.layer}"'
    if one.kind == "bars":
        return f'<path {mark} d="{_path(bars_outline(one), view)}Z"/>'
    if one.kind == "line":
        return f'<path {mark} d="M{_x(one.x[0], view)} {_HEIGHT - _BOTTOM}V{_TOP}"/>'
    if one.kind == "band":
        height = _HEIGHT - _BOTTOM - _BAND * (one.layer + 0.5)
        return f'<path {mark} d="M{_x(one.x[0], view)} {height}H{_x(one.x[1], view)}"/>'
    points = list(zip(one.x, one.y, strict=True))
    paths = "".join(_path(iter(points[first:last]), view) for first, last in one.pieces if last > first)
    return f'<path {mark} d="{paths}"/>'


# Axes -------------------------------------------------------------------------------------------------------


def _grid(view: View) -> Iterator[str]:
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    for value, text in _ticks(view.x):
        at = _x(value, view)
        yield f'<path class="grid" d="M{at} {_TOP}V{bottom}"/>'
        yield f'<text class="tick" x="{at}" y="{bottom + 18}" text-anchor="middle">{text}</text>'
    for value, text in _ticks(view.y):
        at = _y(value, view)
        yield f'<path class="grid" d="M{_LEFT} {at}H{right}"/>'
        yield f'<text class="tick" x="{_LEFT - 7}" y="{float(at) + 4:.1f}" text-anchor="end">{text}</text>'
    yield f'<path class="frame" d="M{_LEFT} {_TOP}V{bottom}H{right}"/>'
    middle = (_TOP + bottom) / 2
    yield f'<text x="{(_LEFT + right) / 2}" y="{_HEIGHT - 8}" text-anchor="middle">{escape(view.x.label)}</text>'
    yield f'<text transform="translate(14 {middle}) rotate(-90)" text-anchor="middle">{escape(view.y.label)}</text>'


def _ticks(axis: Axis) -> Iterator[tuple[float, str]]:
    """Values inside the axis with their texts: powers of ten or their round parts, or round steps."""
    if axis.log:
        first, last = math.ceil(math.log10(axis.low) - 1e-9), math.floor(math.log10(axis.high) + 1e-9)
        if last > first:
            step = 1 + (last - first) // 8
            yield from ((10.0**power, _power(power)) for power in range(first, last + 1, step))
            return
        parts = [k * 10.0**power for power in range(first - 1, last + 1) for k in _PARTS]
        shown = [value for value in parts if axis.low <= value <= axis.high]
        if len(shown) > 1:
            yield from ((value, f"{value:.6g}") for value in shown)
            return
    rough = (axis.high - axis.low) / _TICKS
    scale = 10.0 ** math.floor(math.log10(rough))
    width = next(nice * scale for nice in _NICE if nice * scale >= rough * (1 - 1e-9))
    for k in range(math.ceil(axis.low / width - 1e-9), math.floor(axis.high / width + 1e-9) + 1):
        yield k * width, f"{k * width:.6g}"


def _power(power: int) -> str:
    if -2 <= power <= 3:
        return f"{10.0**power:g}"
    return f'10<tspan class="exponent" dy="-5">{str(power).replace("-", "−")}</tspan>'
