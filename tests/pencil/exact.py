"""Exact matrices: expressions and pencils with rational matrices put in for their letters, copies written out."""

from __future__ import annotations

from hashlib import sha256
from itertools import product

from flint import fmpq, fmpq_mat

from freeattn.model.expression import Expression
from freeattn.model.letters import Diagonal, Inclusion
from freeattn.theory.pencil import Pencil, count_of, size_of


def matrix_of(letter, copy, seed):
    """A small integer matrix made from letter, copy and seed only; a deterministic letter is what it is."""
    rows, columns = int(size_of(letter.rows)), int(size_of(letter.columns))

    def entry(i, j):
        if letter.symmetric:
            i, j = min(i, j), max(i, j)
        text = f"{seed}/{letter.name}/{copy}/{i}/{j}".encode()
        return sha256(text).digest()[0] % 7 - 3

    if isinstance(letter, Diagonal):
        return diagonal_of(letter)
    if isinstance(letter, Inclusion):
        top = offset_of(letter, copy)
        return fmpq_mat(rows, columns, [int(i == top + j) for i in range(rows) for j in range(columns)])
    return fmpq_mat(rows, columns, [entry(i, j) for i in range(rows) for j in range(columns)])


def diagonal_of(letter):
    """A diagonal letter; its weights times the size of the space must be whole numbers."""
    size = int(size_of(letter.space))
    counts = [int(weight * size) for weight in letter.weights]
    assert sum(counts) == size
    values = [v for value, count in zip(letter.eigenvalues, counts, strict=True) for v in [value] * count]
    return fmpq_mat(size, size, [
        fmpq(int(values[i].numerator), int(values[i].denominator)) if i == j else 0
        for i in range(size) for j in range(size)
    ])


def offset_of(letter, copy):
    """The first row of the part in its direct sum."""
    top = 0
    for number, part in enumerate(letter.whole.parts):
        copies = [()] if part.per is None else indices(part.per.chain)
        for other in copies:
            if number == letter.number and other == copy:
                return top
            top += int(size_of(part.space))
    raise LookupError(letter.name)


def indices(chain):
    """All copies of a chain of nested families."""
    return list(product(*(range(int(count_of(family))) for family in chain)))


def value_of(expression: Expression, seed: int) -> fmpq_mat:
    """The matrix of an expression, every sum over copies written out."""
    total = fmpq_mat(int(size_of(expression.rows)), int(size_of(expression.columns)))
    for term in expression.terms:
        coefficient = fmpq(int(term.coefficient.numerator), int(term.coefficient.denominator))
        for choice in product(*(range(int(count_of(s.family))) for s in term.sums)):
            word = identity(int(size_of(expression.rows)))
            for place, factor in enumerate(term.word):
                copy = tuple(
                    next(c for s, c in zip(term.sums, choice, strict=True)
                         if s.family == family and s.start <= place < s.stop)
                    for family in factor.letter.chain
                )
                matrix = matrix_of(factor.letter, copy, seed)
                matrix = matrix.transpose() if factor.transposed else matrix
                word = word * matrix
            total += coefficient * word
    return total


def inverse_corner(pencil: Pencil, z: fmpq, seed: int) -> fmpq_mat:
    """The (x, x) block of the inverse of the pencil."""
    offsets, size = {}, 0
    for number, block in enumerate(pencil.blocks):
        for copy in indices(block.scope):
            offsets[number, copy] = size
            size += int(size_of(block.space))
    full = fmpq_mat(size, size)
    for number, partner in enumerate(pencil.partners):
        for copy in indices(pencil.blocks[number].scope):
            for i in range(int(size_of(pencil.blocks[number].space))):
                scale = fmpq(int(pencil.scales[number].p), int(pencil.scales[number].q))
                constant = -z if number < pencil.corners else -scale
                full[offsets[number, copy] + i, offsets[partner, copy] + i] = constant
    for letter, row, column, coefficient in (*pencil.positions, *pencil.fixed):
        letters = () if letter is None else letter.chain
        chain = max((letters, pencil.blocks[row].scope, pencil.blocks[column].scope), key=len)
        for copy in indices(chain):
            if letter is None:
                matrix = identity(int(size_of(pencil.blocks[row].space)))
            else:
                matrix = matrix_of(letter, copy[: len(letters)], seed)
            top = offsets[row, copy[: len(pencil.blocks[row].scope)]]
            left = offsets[column, copy[: len(pencil.blocks[column].scope)]]
            value = fmpq(int(coefficient.p), int(coefficient.q))
            for i in range(matrix.nrows()):
                for j in range(matrix.ncols()):
                    full[top + i, left + j] += value * matrix[i, j]
                    full[left + j, top + i] += value * matrix[i, j]
    corner = sum(
        int(size_of(block.space)) * len(indices(block.scope)) for block in pencil.blocks[: pencil.corners]
    )
    right = fmpq_mat(size, corner)
    for i in range(corner):
        right[i, i] = 1
    solution = full.solve(right)
    return fmpq_mat(corner, corner, [solution[i, j] for i in range(corner) for j in range(corner)])


def identity(size: int) -> fmpq_mat:
    """The identity matrix."""
    return fmpq_mat(size, size, [int(i == j) for i in range(size) for j in range(size)])


def resolvent(matrix: fmpq_mat, z: fmpq, of: str = "gram") -> fmpq_mat:
    """(M Mᵀ − z)⁻¹, (MᵀM − z)⁻¹ or (M − z)⁻¹."""
    if of == "self-adjoint":
        shifted = matrix * 1
    else:
        shifted = matrix.transpose() * matrix if of == "cogram" else matrix * matrix.transpose()
    for i in range(shifted.nrows()):
        shifted[i, i] -= z
    return shifted.inv()
