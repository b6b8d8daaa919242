"""The derivation by a pencil in words and equations: from the Dyson equation to the steps that a reader sees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import sympy as sp

from freeattn.model.attention import Attention
from freeattn.model.inputs import FeatureCovariance, OrthogonalInput
from freeattn.theory import symbols as sym
from freeattn.theory.attention_words import words_of
from freeattn.theory.dyson import DysonSystem
from freeattn.theory.equivalent import equivalent_of
from freeattn.theory.field import as_expression
from freeattn.theory.layer import equivalent_equations, theta_definitions
from freeattn.theory.notation import Notation, latex_of, text_of
from freeattn.theory.pencil import Fixed, Pencil, Position
from freeattn.theory.pencil_writing import (
    COLON,
    block_matrix,
    diagonal_row,
    eigenvalue_symbols,
    entry_name,
    indexed,
    layer_equations,
    letter_name,
    letter_row,
    lowest_terms,
    name_of,
    position_value,
    score_density,
    sector_equations,
    shared_or_not,
    words,
)
from freeattn.theory.reduced_exposition import definitions_step, reduced_step
from freeattn.theory.steps import Equation, Piece, Step, reference
from freeattn.theory.system import ScalarSystem

__all__ = ["pencil_steps"]

N = Notation
_MOST_BLOCKS = 12  # of a pencil that is shown as a matrix
_MOST_TRACES = 20  # that are listed in a sentence
_MOMENTS = 2  # shown; any number can be asked for
_LAWS = {
    "gram": ("M M^{T}", "M Mᵀ"), "cogram": ("M^{T} M", "MᵀM"), "self-adjoint": ("M", "M"),
}


class Stages(Protocol):
    """What the steps are made from."""

    @property
    def source(self) -> object: ...

    @property
    def dyson(self) -> DysonSystem: ...

    @property
    def system(self) -> ScalarSystem: ...

    @property
    def values(self) -> tuple[tuple[sp.Symbol, sp.Expr], ...]: ...

    def moments(self, order: int, general: bool = False) -> tuple[sp.Expr, ...]:
        """m_1 … m_order."""


def pencil_steps(stages: Stages) -> tuple[Step, ...]:
    """The steps of a derivation by a pencil, in the order in which they are read."""
    return tuple(_steps(stages))


def _steps(stages: Stages) -> Iterator[Step]:
    system, spec = stages.dyson, stages.source if isinstance(stages.source, Attention) else None
    if spec is not None:
        yield _layer(spec)
        yield _equivalent(spec)
    yield _model(system, spec)
    yield _pencil(system)
    yield _pattern(system)
    yield _self_energy(system)
    yield _dyson(system)
    yield reduced_step(stages.system, system)
    yield definitions_step(stages.system, system)
    yield _branch(stages.system)
    yield _moments(stages)
    if stages.values:
        yield Step("values", "Values", (
            "For this layer, sizes in units of n_tokens (", N("n=1", "n = 1"), "), as the law depends on ratios only,",
        ), tuple(
            Equation(f"value-{symbol}", symbol, value) for symbol, value in stages.values if value != symbol
        ))


def _listed(names: Sequence[Notation | sp.Expr]) -> tuple[Piece, ...]:
    pieces: list[Piece] = []
    for number, name in enumerate(names):
        pieces += [", ", name] if number else [name]
    return tuple(pieces)


def _layer(spec: Attention) -> Step:
    sentence: list[Piece] = [
        "The law describes the squared singular values of the matrix ", N("M", "M"), " below, that is, the ",
        sym.TOKENS, " eigenvalues of ", N("M M^{T}", "M Mᵀ"), " for ", sym.TOKENS, " tokens of width ", sym.D_MODEL,
        ". Each of ", sym.HEADS, " heads ", N("r", "r"), " has queries and keys of width ", sym.D_KEY,
        *((" + ", sym.D_POSITION) if spec.position_width != 0 else ()),
        *((" and values of width ", sym.D_VALUE) if spec.has_values and not spec.tie.equal_widths else ()),
        "; weights that act on tokens have iid ", N("N(0,1/d)", "N(0, 1/d)"), " entries",
    ]
    ranks = [rank for rank, latent in ((sym.RANK, spec.latent), (sym.QUERY_RANK, spec.query_latent)) if latent]
    for rank in ranks:
        sentence += [", those that act on a latent of width ", rank, " have iid ",
                     N(f"N(0,1/{latex_of(rank)})", f"N(0, 1/{text_of(rank)})"), " entries"]
    if sym.RANK in ranks:
        sentence += [" (", sym.RANK, " counts heads only where it is an index)"]
    if spec.n_kv_heads != spec.n_heads:
        sentence += ["; the heads of each of ", sym.KV_HEADS, " groups share ", N("K_r", "K_r")]
        sentence += [" and ", N("V_r", "V_r")] if spec.has_values else []
    if spec.has_output_map:
        sentence += ["; ", N("w_V", "w_V"), " is the width of the values of all heads together"]
    if spec.heads is not None:
        sentence += ["; heads fall into families of unequal widths or temperatures, number 1, 2, … at their symbols, ",
                     "and ", sym.HEADS, ", ", sym.D_KEY, " and ", sym.BETA, " stand for the sum of their numbers and "
                     "for the values of the family"]
    return Step("layer", "The layer", (*sentence, "."), tuple(layer_equations(spec)))


def _equivalent(spec: Attention) -> Step:
    """As in the closed laws; θ₁ and θ₂ by their definition, their value in β where it is known, and β."""
    replacement, *pairs = equivalent_equations(equivalent_of(spec))
    first, second = ((symbol, value) for symbol, value in pairs if symbol in (sym.THETA_1, sym.THETA_2))
    defined = theta_definitions(spec)
    equations = [Equation("equivalent", *replacement, sign=N(r"\leftrightarrow", "↔")),
                 Equation("equivalent-g", N("g(x)", "g(x)"), score_density(spec.scores))]
    for number, ((symbol, value), known) in enumerate(zip((first, second), defined, strict=True), 1):
        right = known if isinstance(value, N) else N(f"{known.latex}={latex_of(value)}",
                                                     f"{known.text} = {text_of(value)}")
        equations.append(Equation(f"equivalent-{number}", symbol, right))
    thetas = words_of(spec).thetas
    for number, pair in enumerate(thetas, 1):
        beta = as_expression(pair.beta)
        if len(thetas) > 1:
            at = N(rf"\theta_1,\theta_2\text{{ at }}\beta={latex_of(beta)}", f"θ₁, θ₂ at β = {text_of(beta)}")
            both = N(f"{latex_of(pair.theta_1)},{latex_of(pair.theta_2)}",
                     f"{text_of(pair.theta_1)}, {text_of(pair.theta_2)}")
            equations.append(Equation(f"equivalent-at-{number}", both, at))
        elif beta != sym.BETA:
            equations.append(Equation("beta", sym.BETA, beta))
    return Step(
        "equivalent", "The Gaussian equivalent",
        ("The score function enters through two numbers: in the limit each centered attention matrix may be replaced "
         "by a linear function of its scores ", N("S_r", "S_r"), " and independent noise ", N("W_r", "W_r"),
         " with iid ", N("N(0,1)", "N(0, 1)"), " entries.", *_no_closed(first[1])),
        tuple(equations),
    )


def _no_closed(value: sp.Expr | Notation) -> tuple[Piece, ...]:
    return (" No closed form of them is known for this score function.",) if isinstance(value, N) else ()


def _letters_of(spec: Attention, system: DysonSystem) -> tuple[Piece, ...]:
    """How the letters of the model come from the layer."""
    letters = [letter.name for letter in system.pencil.letters]
    over_root = (" stands for ", N(r"X/\sqrt d", "X/√d"))
    found: list[Piece] = [" Its law is that of the layer: "]
    if isinstance(spec.inputs, OrthogonalInput):
        found += ["as tokens are orthogonal, products of ", N("X", "X"), " with weights are Gaussian letters"]
        if any("°" in name for name in letters):
            found += [", ", N(r"{}^{\circ}", "°"), " marks what a weight has on the features that tokens do not reach"]
    else:
        covariance = isinstance(spec.inputs, FeatureCovariance)
        found += ["the letter " if not covariance else "", N(r"G\sqrt C", "G √C") if covariance else N("X", "X")]
        found += over_root
    found += [", and all scales are in variances: letters of queries carry ", sym.THETA_2]
    if any(name.rstrip("0123456789") == "W" for name in letters):
        found += [", and the letter ", N("W", "W"), " is the noise ", N("W_r", "W_r"), " of the equivalent, with iid ",
                  N("N(0,1)", "N(0, 1)"), " entries, scaled into its variance"]
    return (*found, ".")


def _model(system: DysonSystem, spec: Attention | None) -> Step:
    law = N(*_LAWS[system.pencil.of])
    letters = tuple(
        Equation(f"letter-{letter.name}", letter_name(letter), letter_row(letter), sign=COLON)
        for letter in system.pencil.letters
    )
    diagonal = dict.fromkeys(entry.letter for entry in system.pencil.fixed if entry.letter is not None)
    letters += tuple(Equation(f"letter-{a.name}", letter_name(a), diagonal_row(a), sign=COLON) for a in diagonal)
    return Step(
        "model", "The model",
        ("The law is that of the eigenvalues of ", law, " for the matrix ", N("M", "M"), " below, a polynomial in "
         "independent Gaussian letters with the shapes and variances that follow.",
         *(() if spec is None else _letters_of(spec, system))),
        (Equation("model", N("M", "M"), words(system.expression), main=True), *letters),
    )


def _pencil(system: DysonSystem) -> Step:
    sentence: tuple[Piece, ...] = (
        "The resolvent is the first block of the inverse of a self-adjoint block matrix ", N("L", "L"),
        " that is linear in the letters of ", reference("the model", "model"), ". Its blocks are ",
        *_listed([name_of(block.name) for block in system.pencil.blocks]), ". ",
    )
    if len(system.pencil.blocks) <= _MOST_BLOCKS:
        return Step("pencil", "The pencil", (*sentence, "In this order"), tuple(_as_matrix(system.pencil)))
    constant = ("The constant part has ", N("-z", "−z"), " at ", name_of("x"), " and ", N("-1", "−1"), " between ",
                name_of("y_j"), " and ", name_of("w_j"), " and at the last blocks; the other blocks that are not zero, "
                "up to transposition, are")
    return Step("pencil", "The pencil", (*sentence, *constant), tuple(_as_list(system.pencil)))


def _as_matrix(pencil: Pencil) -> Iterator[Equation]:
    """L as a matrix of blocks, with names for coefficients that are not 1."""
    places: list[Position | Fixed] = [*pencil.positions, *pencil.fixed]
    shown: list[Notation] = []
    coefficients: dict[sp.Expr, Notation] = {}
    for place in places:
        name = letter_name(place.letter)
        if place.coefficient not in (1, -1):
            number = len(coefficients) + 1
            c = coefficients.setdefault(place.coefficient, N(f"c_{{{number}}}", f"c{number}"))
            name = N(f"{c.latex}{name.latex}", f"{c.text}·{name.text}") if name.text != "1" else c
        elif place.coefficient == -1:
            name = position_value(place.coefficient, name)
        shown.append(name)
    yield Equation("pencil", N("L", "L"), block_matrix(pencil, shown), main=True)
    for number, (value, name) in enumerate(coefficients.items(), 1):
        yield Equation(f"coefficient-{number}", name, value)


def _as_list(pencil: Pencil) -> Iterator[Equation]:
    places: list[Position | Fixed] = [*pencil.positions, *pencil.fixed]
    for number, place in enumerate(places, 1):
        left = indexed("L", pencil.blocks[place.row].name, pencil.blocks[place.column].name)
        yield Equation(f"pencil-{number}", left, position_value(place.coefficient, letter_name(place.letter)))


def _pattern(system: DysonSystem) -> Step:
    count, entering = len(system.pencil.blocks), [system.symbol(trace) for trace in system.entering]
    shown = (", ", *_listed(entering))
    return Step(
        "pattern", "The zero pattern",
        (f"Of the {count * (count + 1) // 2} normalized traces of blocks of the inverse, those between different "
         f"spaces vanish, and so do all that no pairing of equal letters creates: {len(system.traces)} are left, and "
         f"{len(entering)} of them enter{'s' if len(entering) == 1 else ''} the self-energy",
         *(shown if len(entering) <= _MOST_TRACES else ()), ". ", N("g_{p,q}", "g_p_q"), " is that of block ",
         N("(p,q)", "(p, q)"), *_copies_of(system), "."),
    )


def _copies_of(system: DysonSystem) -> tuple[Piece, ...]:
    """What a trace is where blocks have copies."""
    if not any(block.scope for block in system.pencil.blocks):
        return ()
    if not any("_across_" in symbol.name for symbol in system.unknowns):
        return (", within one copy where blocks have copies",)
    return (", within one copy where blocks have copies; with the word across it is that between different copies, and "
            "the one without is what the trace within one copy has beyond it",)


def _self_energy(system: DysonSystem) -> Step:
    return Step(
        "self-energy", "The self-energy",
        ("Each pair of positions of a letter contributes its coefficients, the variance and the dimension that is "
         "summed over, times the trace of the blocks on the other side. ",
         N(r"\Sigma", "Σ"), " is symmetric, and entries that are not listed are zero:"),
        tuple(Equation(f"self-energy-{k}", entry_name(system.pencil, entry), value)
              for k, (entry, value) in enumerate(sorted(system.self_energy.items()), 1)),
    )


def _dyson(system: DysonSystem) -> Step:
    equations = []
    for k, sector in enumerate(system.sectors, 1):
        pairs = sector_equations(system, sector, k)
        equations += [Equation(f"dyson-{k}-{i}", left, right) for i, (left, right) in enumerate(pairs, 1)]
    averaged = any(len(sector.nodes) > 1 for sector in system.sectors)
    note: list[Piece] = [" All are symmetric, and entries that are not shown are zero."]
    if averaged:
        note += [" Inverses are averaged over the eigenvalues of the diagonal letters, for which ",
                 *_listed(eigenvalue_symbols(system)), " is written."]
    count = len(system.sectors)
    pieces = f"falls apart into {count} small ones" if count > 1 else "stays in one piece"
    return Step("dyson", "The matrix Dyson equation",
                (f"The matrix {pieces}.", *note, *shared_or_not(system)), tuple(equations))


def _branch(system: ScalarSystem) -> Step:
    last = f"reduced-{len(system.equations)}"
    return Step(
        "branch", "Which root",
        ("The solution of ", reference("the reduced system", "reduced-1", last), " is the one that continues ",
         N(r"m\sim -1/z", "m ~ −1/z"), " from ", N(r"z=\infty", "z = ∞"),
         " through the upper half-plane. It has ", N(r"\operatorname{Im} m>0", "Im m > 0"), " there, and every matrix "
         "of traces of the Dyson equation has positive definite imaginary part, as compressions of a resolvent do; no "
         "other solution with this property is known. The real axis is reached as a limit from there."),
    )


def _moments(stages: Stages) -> Step:
    values = stages.moments(_MOMENTS, general=True)
    return Step("moments", "Moments", ("The first moments of the law are",), tuple(
        Equation(f"moment-{k}", sp.Symbol(f"m_{k}"), lowest_terms(value)) for k, value in enumerate(values, 1)
    ))
