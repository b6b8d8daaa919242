"""Tables for people. Importing this module imports rich."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from freeattn.report.numbers import DOUBLE_DIGITS, number_text

__all__ = [
    "architectures_table", "edge_kind", "estimate_text", "later_fields", "law_tables", "measured_tables",
    "not_modelled_lines", "render", "reproduction_tables", "rows_table", "sharing_text", "spec_rows", "spec_table",
    "spectrum_tables", "verification_tables",
]

_PIPE_WIDTH = 1000  # in a pipe nothing is folded: each row stays one line, for grep and friends
_SIZES = ("n_tokens", "d_model", "n_heads", "n_kv_heads", "d_key", "d_value", "d_out")
_EXACT = ("gamma_key", "gamma_value", "gamma_out", "beta", "value_scale", "output_scale")
_N_MOMENTS = 4
_LONGEST_EXACT = 20  # characters of a fraction that is still worth reading
_SQUARE_ROOT = 0.5
_VERIFICATION_NOTE = (
    "Deviations from the law (moments: relative), means over draws with 95 % Student-t intervals. The Gaussian "
    "equivalent has the same weights and shows the noise of this size: a check fails when softmax exceeds it by more "
    "than is allowed, or when the equivalent itself is off."
)
_SPECTRUM_NOTE = (
    "Deviations from the law (moments: relative). A check fails when one exceeds what is allowed: the noise of one "
    "draw, and for a layer what its finite size is expected to do."
)
_OUTSIDE = (
    "further from every band than the piece of it, at its end, that holds 1/n of the mass; the row outliers counts "
    "values above right edge*(1 + n^(-2/3))"
)
_MOST_LISTED = 5
_PRESET_COLUMNS = (
    "name", "d_model", "heads/kv", "d_key/value", "n_tokens", "gamma_key/value/out", "law", "confirmed",
)
_N_NUMBER_COLUMNS = 6  # the name and the numbers come first


def render(*parts: RenderableType) -> str:
    """The parts as text for stdout: as wide as the terminal, or one line for each row in a pipe."""
    width = None if sys.stdout.isatty() else _PIPE_WIDTH
    console = Console(file=sys.stdout, width=width, highlight=False, soft_wrap=width is not None)
    with console.capture() as capture:
        for number, part in enumerate(parts):
            if number and isinstance(part, Table):
                console.print()
            console.print(part)
    return "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"


def _table(title: str, *columns: str, left: int = 1, gap: int = 2) -> Table:
    """A table whose first `left` columns are texts and the others numbers, with `gap` ≥ 1 blanks between."""
    table = Table(
        title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False,
        show_edge=False, padding=(0, gap - 1, 0, 0),
    )
    for number, name in enumerate(columns):
        table.add_column(name, justify="left" if number < left else "right", overflow="fold")
    return table


def rows_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[RenderableType]], left: int = 1) -> Table:
    """Rows of texts under a title; the first `left` columns are names, the others numbers."""
    table = _table(title, *columns, left=left)
    for row in rows:
        table.add_row(*row)
    return table


# A law ------------------------------------------------------------------------------------------------------


def edge_kind(exponent: float) -> str:
    """What an edge is called where the density goes like distance^exponent."""
    if exponent == _SQUARE_ROOT:
        return "square root"
    power = Fraction(exponent).limit_denominator(1000)
    return f"{'hard, ' if exponent < 0 else ''}x^({power})"


def law_tables(
    law: Any, preset: str | None = None, digits: int = DOUBLE_DIGITS, limit: Any = None
) -> tuple[RenderableType, ...]:
    """The specification, the law and its bands as tables, then what the theory does not model.

    For a law at finite size, `limit` is the law of the limit, whose numbers then stand next to it.
    """
    normalized = law.normalized()
    return (
        spec_table(law.spec, preset),
        _numbers_table(law, normalized, digits, limit),
        _bands_table(law, normalized, digits),
        *(() if limit is None else (_bands_table(limit, limit.normalized(), digits, "Bands of the limit"),)),
        *not_modelled_lines(law.spec),
    )


def spec_table(spec: Any, preset: str | None) -> Table:
    """A specification: one row for each field that it has."""
    table = _table(f"{preset or 'Attention'}: output {spec.output}", "field", "exact", "value")
    for row in spec_rows(spec):
        table.add_row(*row)
    return table


def spec_rows(spec: Any) -> Iterator[tuple[str, str, str]]:
    """(field, exact value where that is short, decimal value of what is no integer) of a specification."""
    for name in (*_SIZES, *_EXACT):
        value = getattr(spec, name)
        if value is None or (name.endswith("_scale") and value == 1):
            continue
        exact, symbolic = str(value), bool(getattr(value, "free_symbols", None))
        shown = exact if symbolic or len(exact) <= _LONGEST_EXACT else ""
        yield name, shown, "" if symbolic or isinstance(value, int) else f"{float(value):.10g}"
    yield "tie", spec.tie.shorthand, ""
    yield "scores", f"{spec.scores.name}{f', rows of {spec.n_tokens} tokens' if spec.finite_size else ''}", ""
    yield "inputs", spec.inputs.name, ""
    for name, text in later_fields(spec):
        yield name, text, ""


def later_fields(spec: Any) -> Iterator[tuple[str, str]]:
    """Rows for the fields that a plain layer does not have."""
    for name in ("eigenvalues", "weights"):
        if hasattr(spec.inputs, name):
            yield name, ", ".join(str(value) for value in getattr(spec.inputs, name))
    for name, per_head in (("latent", "one per key/value head"), ("query_latent", "one per head")):
        latent = getattr(spec, name)
        if latent is not None:
            normalized = ", normalized" if latent.normalized else ""
            yield name, f"rank {latent.rank}, {'shared' if latent.shared else per_head}{normalized}"
    if spec.position_width != 0:
        yield "position_width", str(spec.position_width)
    for family in spec.heads or ():
        parts = {"d_key": family.d_key, "d_value": family.d_value, "beta": family.beta}
        listed = ", ".join(f"{name} {value}" for name, value in parts.items() if value is not None)
        yield "heads", f"{family.count} with {listed}"
    if spec.residual is not None:
        yield "residual", str(spec.residual)


def _numbers_table(law: Any, normalized: Any, digits: int, limit: Any = None) -> Table:
    laws = {"law": law, "mean one": normalized}
    if limit is not None:
        laws = {"finite size": law, "limit": limit, "mean one": normalized, "limit, mean one": limit.normalized()}
    table = _table("Squared singular values of the centered output", "", *laws)
    columns = [one.moments(_N_MOMENTS, digits=max(digits, DOUBLE_DIGITS)) for one in laws.values()]
    for order, row in enumerate(zip(*columns, strict=True), start=1):
        if order == 1:
            row = tuple(1 if name.endswith("mean one") else m for name, m in zip(laws, row, strict=True))
        table.add_row("mean" if order == 1 else f"moment {order}", *(number_text(m, digits) for m in row))
    for same in zip(*(one.atoms for one in laws.values()), strict=True):
        table.add_row("atom at", *(number_text(atom.location, digits) for atom in same))
        table.add_row("weight of the atom", *(number_text(atom.weight, digits) for atom in same))
    if not law.atoms:
        table.add_row("atoms", *("none" for _ in laws))
    return table


def _bands_table(law: Any, normalized: Any, digits: int, title: str = "Bands") -> Table:
    table = _table(title, "band", "edge", "density there", "law", "mean one", "mass", left=3)
    exact = digits > DOUBLE_DIGITS
    edges, scaled = (one.edges_to(digits) if exact else one.edges for one in (law, normalized))
    bands = zip(edges, scaled, law.edge_exponents, law.band_masses, strict=True)
    for number, (band, other, kinds, band_mass) in enumerate(bands, start=1):
        for side, name in enumerate(("left", "right")):
            ends = (number_text(one[side], digits) for one in (band, other))
            label, mass = (str(number), f"{band_mass:.10g}") if side == 0 else ("", "")
            table.add_row(label, name, edge_kind(float(kinds[side])), *ends, mass)
    return table


def not_modelled_lines(spec: Any) -> tuple[RenderableType, ...]:
    """What the theory leaves out of a layer, in one line; nothing where it leaves nothing out."""
    return (Text("Not modelled: " + "; ".join(spec.not_modelled)),) if spec.not_modelled else ()


# Presets ----------------------------------------------------------------------------------------------------


def sharing_text(preset: Any) -> str:
    """How keys and values are shared across heads, and whether they are tied within one."""
    if preset.n_kv_heads == preset.n_heads:
        text = "no"
    elif preset.n_kv_heads == 1:
        text = "all heads"
    else:
        text = f"by {preset.n_heads // preset.n_kv_heads}"
    return text if preset.tie == "none" else f"{text}, K = V"


def architectures_table(presets: Sequence[Any]) -> tuple[RenderableType, ...]:
    """One row for each preset, ratios at its own token count; on a terminal the sources follow as a list.

    A terminal of 80 columns shows every row on one line.
    """
    in_pipe = not sys.stdout.isatty()
    columns = [*_PRESET_COLUMNS, *(("shared", "source") if in_pipe else ())]
    if not in_pipe:
        columns = [name.replace("_", "_\n").replace("/", "/\n").replace("irmed", ".") for name in columns]
    title = f"{len(presets)} preset{'' if len(presets) == 1 else 's'}; ratios at their own n_tokens"
    table = _table(title, *columns, gap=2 if in_pipe else 1)
    for column in table.columns[_N_NUMBER_COLUMNS:]:
        column.justify = "left"
    for preset in presets:
        table.add_row(*_preset_row(preset), *((sharing_text(preset), preset.source) if in_pipe else ()))
    remedy = "choose --n-tokens up to d_model, or --inputs gaussian"
    notes = [Text(f'law "n > d": the published n_tokens exceeds d_model; {remedy}')]
    tied = [preset.name for preset in presets if preset.tie != "none"]
    if tied:
        notes.append(Text(f"keys = values within each head: {', '.join(tied)}"))
    latent = [preset.name for preset in presets if preset.mla is not None]
    if latent:
        notes.append(Text(f"keys and values from a latent, with a shared positional part: {', '.join(latent)}"))
    return (table, *notes) if in_pipe else (table, *notes, *_sources(presets))


def _preset_row(preset: Any) -> tuple[str, ...]:
    ratios = (preset.gamma_key, preset.gamma_value, preset.gamma_out)
    return (
        preset.name,
        str(preset.d_model),
        f"{preset.n_heads}/{preset.n_kv_heads}",
        f"{preset.d_key}/{preset.d_value}",
        str(preset.n_tokens),
        "/".join(f"{float(ratio):.3g}".removeprefix("0") for ratio in ratios),
        _coverage(preset),
        "yes" if preset.confirmed else "no",
    )


def _coverage(preset: Any) -> str:
    return "yes" if preset.covered else "n > d"


def _sources(presets: Sequence[Any]) -> Iterator[RenderableType]:
    by_source: dict[str, list[str]] = {}
    for preset in presets:
        by_source.setdefault(preset.source, []).append(preset.name)
    yield Text("Sources", style="bold")
    for source, names in by_source.items():
        yield Text.assemble((", ".join(names), "italic"), f": {source}")


# A verification ---------------------------------------------------------------------------------------------


_VERDICTS = {
    True: Text("passed", style="green"), False: Text("FAILED", style="bold red"), None: Text("not judged", style="dim")
}


def _add_statistic(table: Table, row: Mapping[str, Any], *names: str) -> None:
    allowed = "" if row["allowance"] is None else f"{row['allowance']:.3g}"
    table.add_row(row["statistic"], *(estimate_text(row, name) for name in names), allowed, _VERDICTS[row["passed"]])


def verification_tables(verification: Any, preset: str | None = None) -> tuple[RenderableType, ...]:
    """One row for each statistic: softmax and its Gaussian equivalent with their intervals, the verdict."""
    spec, draws, seed = verification.spec, verification.draws, verification.seed
    title = f"{preset or 'Attention'}: output {spec.output}, n_tokens {spec.n_tokens}, {draws} draws, seed {seed}"
    names = {"softmax": "softmax", "equivalent": "equivalent"}
    if spec.finite_size:
        names["limit"] = "softmax, from the limit"
    table = _table(title, "statistic", *names.values(), "allowed", "verdict")
    for row in verification.rows():
        _add_statistic(table, row, *names)
    return (table, _summary(verification), Text(_VERIFICATION_NOTE), *not_modelled_lines(spec))


def spectrum_tables(verification: Any, title: str) -> tuple[RenderableType, ...]:
    """One row for each statistic of a given spectrum, the verdict, then edges, units and outliers."""
    normalized = ", both of mean one" if verification.normalized else ""
    heading = f"{title}: {verification.n_tokens} eigenvalues against the law{normalized}"
    low, high = verification.edges
    bands = ", ".join(f"{left:.6g} to {right:.6g}" for left, right in verification.law.edges)
    return (
        *measured_tables(verification, heading), Text(_SPECTRUM_NOTE),
        Text(f"Nonzero values from {low:.6g} to {high:.6g}; the law: {bands}"),
        Text(f"Mean over that of the law: {verification.mean_ratio:.6g}"),
        Text(f"Values outside the bands ({_OUTSIDE}): {_outside(verification.outliers)}"),
    )


def measured_tables(verification: Any, title: str, measured: str = "measured") -> tuple[RenderableType, ...]:
    """One row for each statistic that is compared with the law alone, then the verdict."""
    table = _table(title, "statistic", measured, "allowed", "verdict")
    for row in verification.rows():
        _add_statistic(table, row, measured)
    return table, _summary(verification)


def _outside(found: Sequence[Any]) -> str:
    if not found:
        return "none"
    listed = ", ".join(f"{one.value:.6g}" for one in found[:_MOST_LISTED])
    return f"{len(found)}{', the furthest' if len(found) > _MOST_LISTED else ''}: {listed}"


def _summary(verification: Any) -> Text:
    """How many checks passed."""
    verdicts = [row["passed"] for row in verification.rows() if row["passed"] is not None]
    failed, total = verdicts.count(False), len(verdicts)
    summary = f"{failed} of {total} checks failed." if failed else f"All {total} checks passed."
    return Text(summary, style="bold red" if failed else "bold green")


def estimate_text(row: Any, name: str) -> str:
    """A mean with the half-width of its interval, where there are both."""
    mean, low, high = (row[key] for key in (name, f"{name}_low", f"{name}_high"))
    if mean is None:
        return ""
    return f"{mean:.3g}" if low is None else f"{mean:.3g} ± {(high - low) / 2:.1g}"


# A reproduction ---------------------------------------------------------------------------------------------


_REPRODUCTION_NOTE = (
    "Simulated: real softmax attention, mean over the draws with its 95 % interval; differences are in units of the "
    "interval: off the theory, and off what was measured there where the layer has the size of the publication. "
)
_REDUCED = (
    "Layers with n in the form 1024 = 4096/4 are smaller than the published ones, and further from their limit; "
    "--scale 1 draws those."
)
_THEORY_DIGITS = 10


def reproduction_tables(reproduction: Any) -> tuple[RenderableType, ...]:
    """One row for each quantity: theory, simulation and print, with their differences."""
    columns = ("layer", "quantity", "theory", "printed", "n", "draws", "simulated", "measured there", "off theory")
    table = _table(f"{reproduction.title}; seed {reproduction.seed}", *columns, "off print", "verdict", left=2)
    for row in reproduction.rows():
        differences = (_number_or_blank(row[key], ".2f") for key in ("from_theory", "from_printed"))
        table.add_row(
            row["label"], row["quantity"], _number_or_blank(row["theory"], f".{_THEORY_DIGITS}g"),
            row["printed_theory"] or "", _drawn_size(row), str(row["draws"] or ""),
            _simulated(row),
            " ± ".join(filter(None, (row["printed"], _number_or_blank(row["printed_half_width"], ".3g")))),
            *differences, _VERDICTS[row["passed"]] if row["not_judged"] is None else Text(row["not_judged"], "dim"),
        )
    notes = _REPRODUCTION_NOTE + (_REDUCED if reproduction.reduced else "")
    return (table, Text(f"Setting: {reproduction.setting}."), Text(" ".join(filter(None, (reproduction.note, notes)))))


def _number_or_blank(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def _drawn_size(row: Any) -> str:
    """The number of tokens, and what it comes from when it is reduced."""
    if row["n_tokens"] is None:
        return ""
    n, scale = row["n_tokens"], row["scale"]
    return str(n) if scale == 1 else f"{n} = {n * scale}/{scale}"


def _simulated(row: Any) -> str:
    """The mean with its interval, or how many draws have no value."""
    mean, half_width = row["simulated"], row["half_width"]
    if row["without_value"]:
        return f"none in {row['without_value']} of {row['draws']}"
    if mean is None:
        return ""
    return f"{mean:.4g}" if half_width is None else f"{mean:.4g} ± {half_width:.2g}"
