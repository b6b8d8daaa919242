"""How layers, words, letters, pencils and small matrices are written, in LaTeX and in plain text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import sympy as sp

from freeattn.model.attention import Attention
from freeattn.model.expression import Expression
from freeattn.model.inputs import FeatureCovariance, OrthogonalInput
from freeattn.model.latent import Latent
from freeattn.model.letters import Diagonal, Inclusion, Letter
from freeattn.model.scores import ScoreFunction
from freeattn.model.terms import Term
from freeattn.model.ties import KeyValueCorrelation
from freeattn.theory import symbols as sym
from freeattn.theory.breaking import width_of
from freeattn.theory.dyson import DysonSystem, Sector
from freeattn.theory.field import as_expression
from freeattn.theory.latex_words import latex_words
from freeattn.theory.layer import matrix_of as output_of
from freeattn.theory.letter_names import name_of, under
from freeattn.theory.notation import Notation, latex_of, text_of
from freeattn.theory.pencil import Fixed, Pencil, Position, count_of, size_of
from freeattn.theory.self_energy import Trace, common
from freeattn.theory.steps import Equation

__all__ = [
    "COLON", "block_matrix", "diagonal_row", "eigenvalue_symbols", "entry_name", "indexed", "layer_equations",
    "letter_name", "letter_row", "lowest_terms", "matrix_of", "name_of", "position_value", "score_density",
    "sector_equations", "shared_or_not", "transpose_of", "words",
]

COLON = Notation(r":\ ", ":")
_LINE = 56  # characters of formula that fit on a line, by `width_of`
_GAP = 2.2  # between columns of a matrix
_DISPLAYED, _SMALL = 4, 0.75  # a matrix of more rows is set small


def letter_name(letter: Letter | Diagonal | Inclusion | None, transposed: bool = False) -> Notation:
    """A letter, or its transpose; None is the identity, and parts of a direct sum are numbered."""
    if letter is None:
        return Notation("1", "1")
    name = Notation(f"J{under(str(letter.number + 1))}", f"J_{letter.number + 1}") if isinstance(letter, Inclusion) \
        else name_of(letter.name)
    return transpose_of(name) if transposed else name


def transpose_of(name: Notation) -> Notation:
    """Aᵀ."""
    return Notation(rf"{{{name.latex}}}^{{T}}", f"{name.text}ᵀ")


def words(expression: Expression) -> Notation:
    """The terms of an expression, Σ for a sum over copies."""
    pieces = [_term(term, number == 0) for number, term in enumerate(expression.terms)]
    return Notation(" ".join(p.latex for p in pieces), " ".join(p.text for p in pieces), tuple(p.latex for p in pieces))


def _term(term: Term, first: bool) -> Notation:
    sign, size = "+", as_expression(term.coefficient)
    if size.could_extract_minus_sign():
        sign, size = "-", -size
    lead = "" if first and sign == "+" else f"{sign} "
    latex, text = [], []
    if size != 1:
        latex.append(rf"\left({latex_of(size)}\right)" if size.is_Add else latex_of(size))
        text.append(f"({text_of(size)})·" if size.is_Add else f"{text_of(size)}·")
    for place, factor in enumerate(term.word):
        for stretch in term.sums:
            if stretch.start == place:
                latex.append(rf"\sum_{{\mathrm{{{stretch.family.name}}}}}")
                text.append(f"Σ_{stretch.family.name} ")
        name = letter_name(factor.letter, factor.transposed)
        latex.append(name.latex)
        text.append(name.text + " ")
    return Notation(lead + r"\,".join(latex), lead.replace("-", "−") + "".join(text).rstrip())


def letter_row(letter: Letter) -> Notation:
    """rows × columns, variance of the entries, one for each copy of a family."""
    rows, columns = (size_of(place) for place in (letter.rows, letter.columns))
    variance = as_expression(letter.variance)
    kind = "symmetric, " if letter.symmetric else ""
    pieces = [rf"{latex_of(rows)}\times {latex_of(columns)},\ ", rf"\text{{{kind}variance }}{latex_of(variance)}"]
    text = f"{text_of(rows)} × {text_of(columns)}, {kind}variance {text_of(variance)}"
    for family in reversed(letter.chain):
        count = count_of(family)
        pieces[-1] += r",\ "
        pieces.append(rf"\text{{in each of }}{latex_of(count)}\ \text{{{family.name}}}")
        text += f", in each of {text_of(count)} {family.name}"
    return Notation("".join(pieces), text, tuple(pieces))


def diagonal_row(letter: Diagonal) -> Notation:
    """The spectrum of a deterministic letter."""
    pairs = [(as_expression(w), as_expression(t)) for w, t in zip(letter.weights, letter.eigenvalues, strict=True)]
    pieces = tuple(rf"\text{{{'diagonal, ' if not k else ''}}}{latex_of(t)}\text{{ with weight }}{latex_of(w)},\ "
                   for k, (w, t) in enumerate(pairs))
    text = "diagonal, " + ", ".join(f"{text_of(t)} with weight {text_of(w)}" for w, t in pairs)
    return Notation("".join(pieces), text, (*pieces[:-1], pieces[-1].removesuffix(r",\ ")))


def lowest_terms(value: sp.Expr) -> sp.Expr:
    """A fraction without common powers of symbols above and below; symbols of all terms stand in front of the sum."""
    top, bottom = sp.fraction(value)
    if not top.is_Add:
        return value
    powers = [term.as_powers_dict() for term in top.args]
    common_powers = {s: min(p.get(s, sp.S.Zero) for p in powers) for s in powers[0] if s.is_Symbol}
    front = sp.Mul(*(s**power for s, power in common_powers.items()))
    return (front / bottom) * sp.Add(*(term / front for term in top.args))


def indexed(symbol: str, first: str, second: str, across: str = "") -> Notation:
    """L_{x,y₁} and the like."""
    names = [name_of(name) for name in (first, second)]
    below = rf"_{{\mathrm{{{across}}}}}" if across else ""
    latex = rf"{symbol}_{{{names[0].latex},{names[1].latex}}}" + (rf"{{}}^{{\mathrm{{{across}}}}}" if below else "")
    plain = {r"\Sigma": "Σ"}.get(symbol, symbol)
    return Notation(latex, f"{plain}_{first}_{second}" + (f"_across_{across}" if across else ""))


def entry_name(pencil: Pencil, entry: Trace) -> Notation:
    """The name of one entry of the self-energy, with `across` where it does not ask indices to agree."""
    first, second = pencil.blocks[entry.row], pencil.blocks[entry.column]
    shared = common(first.scope, second.scope)
    return indexed(r"\Sigma", first.name, second.name, first.scope[entry.level].name if entry.level < shared else "")


def position_value(coefficient: sp.Expr, name: Notation) -> Notation:
    """coefficient × letter."""
    if coefficient == 1:
        return name
    if coefficient == -1:
        return Notation(f"-{name.latex}", f"−{name.text}")
    if name.text == "1":
        return Notation(latex_of(coefficient), text_of(coefficient))
    inner = (latex_of(coefficient), text_of(coefficient))
    if coefficient.is_Add:
        inner = (rf"\left({inner[0]}\right)", f"({inner[1]})")
    return Notation(rf"{inner[0]}\,{name.latex}", f"{inner[1]}·{name.text}")


def block_matrix(pencil: Pencil, names: Sequence[Notation]) -> Notation:
    """The pencil as a matrix of blocks; `names` are what stands at each position, coefficients included."""
    size = len(pencil.blocks)
    cells: list[list[list[Notation]]] = [[[] for _ in range(size)] for _ in range(size)]
    for p, partner in enumerate(pencil.partners):
        scale = position_value(-pencil.scales[p], letter_name(None))
        cells[p][partner].append(Notation("-z", "−z") if p < pencil.corners else scale)
    places: list[Position | Fixed] = [*pencil.positions, *pencil.fixed]
    for place, name in zip(places, names, strict=True):
        cells[place.row][place.column].append(name)
        cells[place.column][place.row].append(name if place.letter is None else transpose_of(name))
    return matrix_of([[_cell(cell) for cell in row] for row in cells])


def _cell(parts: list[Notation]) -> Notation:
    if not parts:
        return Notation(r"\cdot", "0")
    return Notation("+".join(p.latex for p in parts).replace("+-", "-"), " + ".join(p.text for p in parts))


def matrix_of(rows: Sequence[Sequence[Notation]]) -> Notation:
    """A matrix; a single entry stands without brackets."""
    if len(rows) == 1:
        return rows[0][0]
    body = r" \\ ".join(" & ".join(cell.latex for cell in row) for row in rows)
    kind = "smallmatrix" if len(rows) > _DISPLAYED else "matrix"
    text = "[" + ", ".join("[" + ", ".join(cell.text for cell in row) + "]" for row in rows) + "]"
    return Notation(rf"\left(\begin{{{kind}}} {body} \end{{{kind}}}\right)", text)


def sector_equations(system: DysonSystem, sector: Sector, number: int) -> list[tuple[Notation, Notation]]:
    """(matrix of traces, inverse of C − Σ) of one sector, entries of Σ by name; a wide matrix entry by entry."""
    inverse, size = system.inverse(sector), len(sector.blocks)
    traces = [[Notation(latex_of(entry), text_of(entry)) for entry in inverse.row(i)] for i in range(size)]
    matrix = [[_energy(system, sector, p, q) for q in sector.blocks] for p in sector.blocks]
    if _width(traces) + _width(matrix) > _LINE:
        return _by_entries(system, sector, matrix, number)
    right = matrix_of(matrix)
    if size == 1:
        right = Notation(rf"\left({right.latex}\right)", f"({right.text})")
    return [(matrix_of(traces), Notation(rf"{right.latex}^{{-1}}", f"{right.text}⁻¹"))]


def _width(rows: Sequence[Sequence[Notation]]) -> float:
    columns = (max(width_of(cell.latex) for cell in column) + _GAP for column in zip(*rows, strict=True))
    return sum(columns) * (_SMALL if len(rows) > _DISPLAYED else 1)


def _by_entries(
    system: DysonSystem, sector: Sector, matrix: Sequence[Sequence[Notation]], number: int
) -> list[tuple[Notation, Notation]]:
    """G_k = A_k⁻¹ with the entries of both that are not zero, up to symmetry."""
    names = [system.pencil.blocks[p].name for p in sector.blocks]
    inverse = system.inverse(sector)
    found = [(Notation(f"G_{{{number}}}", f"G{number}"), Notation(f"A_{{{number}}}^{{-1}}", f"A{number}⁻¹"))]
    for letter, rows in (("G", None), ("A", matrix)):
        for i, first in enumerate(names):
            for j, second in enumerate(names[i:], i):
                value = rows[i][j] if rows else Notation(latex_of(inverse[i, j]), text_of(inverse[i, j]))
                if value.text != "0":
                    name = indexed(letter, first, second)
                    latex = name.latex.replace(f"{letter}_", f"({letter}_{{{number}}})_", 1)
                    found.append((Notation(latex, name.text.replace(letter, f"{letter}{number}", 1)), value))
    return found


def _energy(system: DysonSystem, sector: Sector, p: int, q: int) -> Notation:
    constant = system.constant(p, q) + system.fixed(sector, p, q)
    latex, text = ("", "") if constant == 0 else (latex_of(constant), text_of(constant))
    for entry in system.levels(sector, p, q):
        if entry in system.self_energy:
            value = position_value(system.copies_below(q, entry.level), entry_name(system.pencil, entry))
            latex, text = f"{latex} - {value.latex}", f"{text} − {value.text}"
    return Notation(latex.strip() or "0", text.strip() or "0")


def eigenvalue_symbols(system: DysonSystem) -> tuple[sp.Expr, ...]:
    """What stands for the eigenvalues of diagonal letters."""
    symbols = (symbol for sector in system.sectors for node in sector.nodes for symbol, _ in node.values)
    return tuple(dict.fromkeys(symbols))


def shared_or_not(system: DysonSystem) -> tuple[str, ...]:
    """Which of the small matrices with common blocks is for which part of vectors with a component for each copy."""
    found: list[str] = []
    for number, sector in enumerate(system.sectors, 1):
        others = [s for s in system.sectors if s is not sector and set(s.blocks) & set(sector.blocks)]
        if any(other.depth > sector.depth for other in others):
            family = next(o for o in others if o.depth > sector.depth).scope[sector.depth]
            found.append(f" Number {number} is for what all {family.name} share.")
        if any(other.depth < sector.depth for other in others):
            found.append(f" Number {number} is for what sums to zero over {sector.scope[-1].name}.")
    return tuple(found)


# The layer -------------------------------------------------------------------------------------------------------

_FUNCTIONS = {
    "softmax": Notation("e^{x}", "exp(x)"), "linear": Notation("x", "x"), "relu": Notation(r"\max(x,0)", "max(x, 0)"),
    "sigmoid": Notation(r"1/(1+e^{-x})", "1/(1 + exp(−x))"),
}


def layer_equations(spec: Attention) -> Iterator[Equation]:
    """Tokens, queries, keys, values, scores, attention weights, output map and M, by the fields of a specification."""
    rows = [("X", _tokens(spec), COLON), *((left, right, None) for left, right in _projections(spec))]
    if spec.has_output_map:
        rows.append(_output_map(spec))
    width = sym.D_KEY + (sym.D_POSITION if spec.position_width != 0 else 0)
    root = (latex_of(width), f"({text_of(width)})" if width.is_Add else text_of(width))
    rows.append(("S_r", Notation(rf"Q_r K_r^{{T}}/\sqrt{{{root[0]}}}", f"Q_r K_rᵀ/√{root[1]}"), None))
    rows += [(left, right, None) for left, right in _weights(spec.scores)]
    output = output_of(spec)
    output = Notation(output.latex.partition(r",\quad V_r")[0], output.text.partition(", V_r")[0])
    if spec.residual is not None:
        rows.append(("A^⊥", output, None))
        factor = _factor(spec.residual)
        output = Notation(rf"X/\sqrt d+{factor.latex}A^{{\perp}}", f"X/√d + {factor.text}A^⊥")
    for number, (left, right, sign) in enumerate(rows, 1):
        name = Notation(left.replace("⊥", r"{\perp}").replace("′", "'"), left)
        if sign is None:
            yield Equation(f"layer-{number}", name, right)
        else:
            yield Equation(f"layer-{number}", name, right, sign=sign)
    yield Equation("matrix", Notation("M", "M"), output)


def score_density(scores: ScoreFunction) -> Notation:
    """g, whose variance is θ₁, in terms of f."""
    if scores.normalized:
        return Notation(r"f(\beta x)/\mathrm{E}f(\beta\chi),\quad \chi\sim N(0,1)", "f(β·x)/E f(β·χ), χ ~ N(0, 1)")
    return Notation(r"f(\beta x),\quad \chi\sim N(0,1)", "f(β·x), χ ~ N(0, 1)")


def _mixed(*parts: str | sp.Expr | Notation) -> Notation:
    """Words and formulas in one line."""
    latex = "".join(rf"\text{{{part}}}" if isinstance(part, str) else latex_of(part) for part in parts)
    return Notation(latex, "".join(part if isinstance(part, str) else text_of(part) for part in parts))


def _tokens(spec: Attention) -> Notation:
    shape = Notation(r"n\times d,\ ", "n × d, ")
    if isinstance(spec.inputs, OrthogonalInput):
        return _mixed(shape, Notation("X X^{T}=d\\cdot I", "X Xᵀ = d·I"))
    if isinstance(spec.inputs, FeatureCovariance):
        return _mixed(shape, "rows iid ", Notation("N(0,C)", "N(0, C)"), ", the square root of ", Notation("C", "C"),
                      " as below")
    return _mixed(shape, "iid ", Notation("N(0,1)", "N(0, 1)"), " entries")


def _factor(value: object) -> Notation:
    """A factor in front of a matrix; nothing for 1."""
    size = as_expression(value)
    if size == 1:
        return Notation("", "")
    return Notation(rf"{latex_of(size)}\,", f"({text_of(size)})·" if size.is_Add else f"{text_of(size)}·")


def _projections(spec: Attention) -> Iterator[tuple[str, Notation]]:
    """Latents, Q_r, K_r and V_r."""
    position = spec.position_width != 0
    source, names = "X", ["W_r^Q", "W_r^{QP}"]
    if spec.query_latent is not None:
        source, names = _latent_name("D^Q", spec.query_latent), ["U_r^Q", "U_r^{QP}"]
        yield source, _latent(spec.query_latent, "DQ", sym.QUERY_RANK)
    yield "Q_r", _times(source, names if position else names[:1])
    source, weight = "X", "W"
    if spec.latent is not None:
        source, weight = _latent_name("D", spec.latent), "U"
        yield source, _latent(spec.latent, "D", sym.RANK)
    key = _times(source, [f"{weight}_r^K"])
    yield "K_r", Notation(rf"[{key.latex},\ X W^P]", f"[{key.text}, X W^P]") if position else key
    if not spec.has_values:
        return
    factor, tie = _factor(spec.value_scale), spec.tie.value
    columns = [f"{weight}_r^V", f"{weight}_r^{{VP}}"]
    fresh = _times(source, columns if position and spec.tie.equal_widths else columns[:1])
    if isinstance(tie, KeyValueCorrelation):
        yield "V_r′", fresh
        fresh = Notation(r"\rho K_r+\sqrt{1-\rho^2}\,V_r'", "ρ·K_r + √(1 − ρ²)·V_r′")
        if factor.text:
            fresh = Notation(rf"\bigl({fresh.latex}\bigr)", f"({fresh.text})")
    elif tie == "key":
        fresh = Notation("K_r", "K_r")
    yield "V_r", Notation(factor.latex + fresh.latex, factor.text + fresh.text)


def _latent_name(name: str, latent: Latent) -> str:
    return name if latent.shared else name.replace("D", "D_r", 1)


def _latent(latent: Latent, name: str, rank: sp.Symbol) -> Notation:
    """X W^D, and its width."""
    below = "" if latent.shared else "_r"
    norm = ", rows then scaled to norm " if latent.normalized else ""
    root = (Notation(rf"\sqrt{{{latex_of(rank)}}}", f"√{text_of(rank)}"),) if norm else ()
    above = name if len(name) == 1 else f"{{{name}}}"
    product = Notation(rf"X W{below}^{above},\ ", f"X W{below}^{name}, ")
    return _mixed(product, "of width ", rank, *((norm, *root) if norm else ()))


def _times(source: str, weights: Sequence[str]) -> Notation:
    """source · [weights side by side]."""
    inner = weights[0] if len(weights) == 1 else f"[{', '.join(weights)}]"
    return Notation(f"{source} {inner}", f"{source} {inner}".replace("{", "").replace("}", ""))


def _output_map(spec: Attention) -> tuple[str, Notation, Notation | None]:
    """The rows of W^O that belong to one head."""
    factor = _factor(spec.output_scale)
    if spec.tie.output == "key":
        weight = Notation(rf"{factor.latex}\sqrt{{d/w_V}}\,(W_r^K)^{{T}}", f"{factor.text}√(d/w_V)·(W_r^K)ᵀ")
        key = "" if spec.latent is None else ", all of the map from X to the keys"
        return "W^O", _mixed("in the rows of head r, ", weight, *((key,) if key else ())), COLON
    entries = Notation(r"N(0,1/w_V)", "N(0, 1/w_V)")
    return "W^O", _mixed(*((factor, "times ") if factor.text else ()), "iid ", entries, " entries"), COLON


def _weights(scores: ScoreFunction) -> Iterator[tuple[str, Notation]]:
    """f, A_r and what centers it."""
    yield "f(x)", _FUNCTIONS.get(scores.name) or Notation(rf"\text{{{latex_words(scores.name)}}}", scores.name)
    entry = Notation(r"f(\beta S_r)", "f(β·S_r)")
    if scores.normalized:
        yield "A_r", _mixed(entry, ", entry by entry, rows divided by their sums")
        yield "A_r^⊥", Notation(r"A_r-\mathbf{1}\mathbf{1}^{T}/n", "A_r − 1 1ᵀ/n")
        return
    yield "A_r", _mixed(Notation(entry.latex + "/n", entry.text + "/n"), ", entry by entry")
    yield "A_r^⊥", _mixed(Notation("A_r", "A_r"), " minus the mean of its entries")
