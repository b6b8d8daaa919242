"""The eigenvalues of X Xᵀ + S, a Wishart matrix plus a Wigner matrix, on either side of 0."""

from fractions import Fraction

import freeattn as fa

rows, columns = fa.space("rows", 400), fa.space("columns", 800)
X = fa.gaussian("X", rows, columns, Fraction(1, 800))
S = fa.wigner("S", rows, Fraction(1, 1600))
law = fa.law(X @ X.T + S, of="self-adjoint")
eigenvalues = fa.sample(X @ X.T + S, seed=0, of="self-adjoint")
fa.save_figure(law.plot(sample=eigenvalues), "polynomial.svg")
print(law)
