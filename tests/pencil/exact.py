"""Exact matrices: expressions and pencils with rational matrices put in for their letters, copies written out."""

from __future__ import annotations

from itertools import product

from flint import fmpq, fmpq_mat

from freeattn.model.expression import Expression
from freeattn.theory.pencil import Pencil, count_of, size_of


def matrix_of(letter, copy, seed):
    """A small integer matrix that depends on the letter, its copy and the seed only."""
    rows, columns = int(size_of(letter.rows)), int(size_of(letter.columns))

    def entry(i, j):
        if letter.symmetric:
            i, j = min(i, j), max(i, j)
        text = f"{seed}/{letter.name}/{copy}/{i}/{j}".encode()
        return sum(byte * 31**k for k, byte in enumerate(text)) % 7 - 3

    return fmpq_mat(rows, columns, [entry(i, j) for i in range(rows) for j in range(columns)])


def indices(chain):
    """All copies of a chain of nested families."""
    return list(product(*(range(int(count_of(family))) for family in chain)))


def value_of(expression: Expression, seed: int) -> fmpq_mat:
    """The matrix of an expression, every sum over copies written out."""
    total = fmpq_mat(int(size_of(expression.rows)), int(size_of(expression.columns)))
    for term in expression.terms:
        coefficient = fmpq(int(term.coefficient.numerator), int(term.coefficient.denominator))
        for choice in product(*(range(int(count_of(s.family))) for s in term.sums)):
            word = None
            for place, factor in enumerate(term.word):
                copy = tuple(
                    next(c for s, c in zip(term.sums, choice, strict=True)
                         if s.family == family and s.start <= place < s.stop)
                    for family in factor.letter.chain
                )
                matrix = matrix_of(factor.letter, copy, seed)
                matrix = matrix.transpose() if factor.transposed else matrix
                word = matrix if word is None else word * matrix
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
                full[offsets[number, copy] + i, offsets[partner, copy] + i] = -z if number == 0 else -1
    for letter, row, column, coefficient in pencil.positions:
        chain = max((letter.chain, pencil.blocks[row].scope, pencil.blocks[column].scope), key=len)
        for copy in indices(chain):
            matrix = matrix_of(letter, copy[: len(letter.chain)], seed)
            top = offsets[row, copy[: len(pencil.blocks[row].scope)]]
            left = offsets[column, copy[: len(pencil.blocks[column].scope)]]
            value = fmpq(int(coefficient.p), int(coefficient.q))
            for i in range(matrix.nrows()):
                for j in range(matrix.ncols()):
                    full[top + i, left + j] += value * matrix[i, j]
                    full[left + j, top + i] += value * matrix[i, j]
    corner = int(size_of(pencil.blocks[0].space))
    right = fmpq_mat(size, corner)
    for i in range(corner):
        right[i, i] = 1
    solution = full.solve(right)
    return fmpq_mat(corner, corner, [solution[i, j] for i in range(corner) for j in range(corner)])


def resolvent(matrix: fmpq_mat, z: fmpq) -> fmpq_mat:
    """(M Mᵀ − z)⁻¹."""
    gram = matrix * matrix.transpose()
    for i in range(gram.nrows()):
        gram[i, i] -= z
    return gram.inv()
