"""How words, letters, pencils and small matrices are written, in LaTeX and in plain text."""

from __future__ import annotations

import re
from collections.abc import Sequence

import sympy as sp

from freeattn.model.expression import Expression, Term
from freeattn.model.letters import Diagonal, Inclusion, Letter
from freeattn.theory.breaking import width_of
from freeattn.theory.dyson import DysonSystem, Sector
from freeattn.theory.field import as_expression
from freeattn.theory.latex_words import latex_words
from freeattn.theory.notation import Notation, latex_of, text_of
from freeattn.theory.pencil import Fixed, Pencil, Position, count_of, size_of
from freeattn.theory.self_energy import Trace, common

__all__ = [
    "block_matrix", "diagonal_row", "entry_name", "indexed", "letter_name", "letter_row", "matrix_of", "name_of",
    "position_value", "sector_equations", "transpose_of", "words",
]

_LINE = 56  # characters of formula that fit on a line, by `width_of`
_GAP = 2.2  # between columns of a matrix
_DISPLAYED, _SMALL = 4, 0.75  # a matrix of more rows is set small
_CAPITALS = re.compile(r"([A-Z])([A-Z]*)(°?)(\d*)(°?)")  # K, O°, WQ, UK2: no product of letters


def name_of(name: str) -> Notation:
    """A name of a letter, space or block: what follows an underscore or is a number stands below, greek as such.

    Of a name in capitals the first is the matrix and the rest stands above, W^{Q} for WQ: WQ would be a product.
    """
    capitals = _CAPITALS.fullmatch(name)
    if capitals and (capitals[2] or "°" in name):
        letter, above, ring, number, last = capitals.groups()
        above += r"\circ" if ring or last else ""
        return Notation(f"{letter}^{{{above}}}" + (f"_{{{number}}}" if number else ""), name)
    if not name.isascii():
        return Notation(" ".join(latex_words(character).strip("$") for character in name), name)
    head = name.rstrip("0123456789")
    symbol = sp.Symbol(name if "_" in name or not head or head == name else f"{head}_{name[len(head):]}")
    return Notation(latex_of(symbol), name)


def letter_name(letter: Letter | Diagonal | Inclusion | None, transposed: bool = False) -> Notation:
    """A letter, or its transpose; None is the identity, and parts of a direct sum are numbered."""
    if letter is None:
        return Notation("1", "1")
    name = name_of(f"J_{letter.number + 1}" if isinstance(letter, Inclusion) else letter.name)
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
