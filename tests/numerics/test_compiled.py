"""The compiled backend of Dyson equations against the numpy reference: every primitive, whole laws, which is chosen."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import freeattn as fa
from freeattn.errors import InputError
from freeattn.numerics.backends import VARIABLE, backend, trace_equation
from freeattn.numerics.descent import Descent
from freeattn.numerics.dyson_tables import tables_of
from freeattn.numerics.exact_words import words_law
from freeattn.numerics.small_inverse import inverses
from freeattn.numerics.trace_equation import TOLERANCE, TraceEquation
from freeattn.theory.dyson import dyson_of

pytest.importorskip("numba")
ROOT = Path(__file__).resolve().parents[2]
R, C = fa.space("r", 2), fa.space("c", 1)
Y, X = fa.gaussian("Y", R, R), fa.gaussian("X", R, C)


def chained(count):
    """A sum of products that share blocks: sectors of more than four rows."""
    letters = [fa.gaussian(f"A{i}", R, R) for i in range(count)]
    total = letters[0]
    for letter in letters[1:]:
        total = total @ letter + letter
    return total


BERT = fa.architecture("bert-base", n_tokens=512)
SPECS = {
    "gaussian": BERT.replace(inputs="gaussian"),
    "correlated": BERT.replace(tie=fa.KeyValueCorrelation(0.5)),
    "latent": fa.architecture("deepseek-v3", n_tokens=2048),
}
MODELS = {
    "product": Y @ X,
    "diagonal": fa.diagonal("D", R, [1, 3]) @ X,
    "chained": chained(4),
}


@pytest.fixture(scope="module", params=[*SPECS, *MODELS])
def pair(request):
    """One equation on both backends."""
    if request.param in SPECS:
        tables = words_law(SPECS[request.param], "gram", None).tables(0)
    else:
        tables = tables_of(dyson_of(MODELS[request.param]))
    module = import_module("freeattn.numerics.compiled.equation")
    return TraceEquation(tables), module.CompiledEquation(tables)


def points(equation, number, real, seed=0):
    """Random unknowns over four decades, and random z."""
    rng = np.random.default_rng(seed)
    shape = (number, equation.count)
    u = rng.standard_normal(shape) * 10 ** rng.uniform(-2, 2, shape)
    z = rng.standard_normal(number) * 10 ** rng.uniform(-2, 2, number)
    return (u, z) if real else (u * np.exp(1j * rng.uniform(0, 3, shape)), z + 1j * np.abs(z[::-1]))


def close(found, wanted, scale=None, tolerance=1e-11):
    """Entry by entry, relative to the entry or to `scale`."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.shape == wanted.shape
    assert found.dtype == wanted.dtype
    scale = np.abs(wanted) if scale is None else scale
    assert np.all(np.abs(found - wanted) <= tolerance * scale)


def rounding(equation, u, z):
    """Condition of the entries of inverses: |G|·|A|·|G| over |G|, the largest of each point."""
    worst = np.ones(len(z))
    for sector, g in zip(equation.tables.sectors, equation.matrices(u, z), strict=True):
        sums = np.abs(sector.constant) + np.abs(z)[:, None, None] * sector.point
        sums = sums + np.tensordot(np.abs(u[:, sector.sources]), np.abs(sector.energy), 1)
        with np.errstate(all="ignore"):
            share = np.abs(g) @ sums @ np.abs(g) / np.abs(g)
        worst = np.maximum(worst, np.nanmax(np.where(g != 0, share, 0), axis=(1, 2)))
    return worst


@pytest.mark.parametrize("real", [True, False])
def test_primitives(pair, real):
    numpy, compiled = pair
    u, z = points(numpy, 60, real)
    keep = rounding(numpy, u, z) < 1e3
    u, z = u[keep], z[keep]
    assert len(z) > 20
    first, second = numpy.evaluate(u, z), compiled.evaluate(u, z)
    for mine, theirs in zip(second.matrices, first.matrices, strict=True):
        close(mine, theirs)
    close(second.phi, first.phi, first.residual[:, None] * 0 + np.abs(first.phi).max(axis=1, keepdims=True))
    close(second.residual, first.residual)
    assert np.array_equal(np.asarray(compiled.matrices(u, z)[0]), second.matrices[0])
    close(compiled.output(second.matrices), numpy.output(first.matrices), np.abs(first.matrices[0]).max())
    close(compiled.sizes(second.matrices), numpy.sizes(first.matrices))
    sizes = numpy.sizes(first.matrices)
    units = sizes[:, :, None] / sizes[:, None, :]
    jacobian = numpy.jacobian(first.matrices)
    largest = np.abs(jacobian / units).max(axis=(1, 2), keepdims=True)
    close(compiled.jacobian(second.matrices), jacobian, largest * units)
    condition = np.linalg.cond(jacobian / units)
    usable = condition < 1e6
    assert usable.sum() > 10
    tangent = numpy.tangent(first.matrices)
    scale = condition[:, None] * sizes * np.abs(tangent / sizes).max(axis=1, keepdims=True)
    close(compiled.tangent(second.matrices)[usable], tangent[usable], scale[usable])
    rates = zip(compiled.rates(second.matrices), numpy.rates(first.matrices), strict=True)
    for (mine, theirs), g, sector in zip(rates, first.matrices, numpy.tables.sectors, strict=True):
        change = sector.point + np.tensordot(scale[:, sector.sources], np.abs(sector.energy), 1)
        close(mine[usable], theirs[usable], (np.abs(g) @ change @ np.abs(g))[usable])
    errors = [equation.output_error(u, z, first.matrices) for equation in (compiled, numpy)]
    close(errors[0][usable], errors[1][usable], tolerance=1e-8)


def test_roots_and_their_tests(pair):
    """Descent, Newton's method and the test of the cone find the same roots and the same verdicts."""
    numpy, compiled = pair
    z = np.concatenate([np.linspace(-3, 40, 30) + 1j * 10.0 ** np.linspace(-3, 1, 30)])
    wanted, reached = Descent(numpy, 5.0).attempt(z)
    found, also = Descent(compiled, 5.0).attempt(z)
    assert reached.all()
    assert also.all()
    close(found, wanted, np.abs(wanted).max(axis=1, keepdims=True), 1e-10)
    assert compiled.in_cone(found, z).all()
    assert compiled.evaluate(found, z).residual.max() <= TOLERANCE
    start, there = wanted * (1 + 1e-3j), z
    (mine, good), (theirs, also) = compiled.newton(start, there), numpy.newton(start, there)
    assert np.array_equal(good, also)
    assert good.all()
    close(mine, theirs, np.abs(wanted).max(axis=1, keepdims=True), 1e-10)
    for seed in range(3):
        u, at = points(numpy, 60, False, seed)
        assert np.array_equal(compiled.in_cone(u, at), numpy.in_cone(u, at))
    away = np.array([-0.5, -2.0, 1e3])
    above, good = numpy.newton(Descent(numpy, 5.0).solve(away + 1e-3j).real, away)
    assert good.all()
    assert numpy.increasing(above, away).all()
    for u in (above, -above, above[:, ::-1].copy()):
        assert np.array_equal(compiled.increasing(u, away), numpy.increasing(u, away))


def test_not_finite(pair):
    """Singular matrices and numbers that are not finite give not-a-number and an infinite residual on both."""
    numpy, compiled = pair
    u, z = points(numpy, 4, False)
    u[1], z[2], u[3] = np.nan, np.inf, 0.0
    z[3] = 0.0
    for equation in (numpy, compiled):
        with np.errstate(all="ignore"):
            value = equation.evaluate(u, z)
        assert np.isnan(value.residual).sum() == 0
        assert np.isinf(value.residual[1:3]).all()
        assert np.isnan(value.matrices[0][2]).all() or not np.isfinite(value.phi[2]).all()
    u, z = u[[0, 0, 0, 3]], z[[0, 0, 0, 3]]
    finite = [[np.isfinite(g[3]).all() for g in equation.matrices(u, z)] for equation in pair]
    assert finite[0] == finite[1]


@pytest.mark.parametrize("size", range(1, 8))
@pytest.mark.parametrize("real", [True, False])
def test_inverses(size, real):
    """Sizes far apart: every entry is as good as that of the reference."""
    invert = import_module("freeattn.numerics.compiled.algebra").invert
    rng = np.random.default_rng(size)
    for _ in range(20):
        scale = 10 ** rng.uniform(-12, 12, (2, size))
        matrix = rng.standard_normal((size, size)) + (0 if real else 1j * rng.standard_normal((size, size)))
        matrix = scale[0][:, None] * matrix * scale[1]
        flat = np.empty(size * size, dtype=np.complex128)
        invert(np.ascontiguousarray(matrix, dtype=np.complex128).ravel(), flat, size)
        wanted = inverses(matrix[None])[0]
        share = np.abs(wanted) @ np.abs(matrix) @ np.abs(wanted)
        assert np.all(np.abs(flat.reshape(size, size) - wanted) <= 1e-14 * share)
    singular, flat = np.ones((size, size), dtype=np.complex128) * (size > 1), np.empty(size * size, dtype=np.complex128)
    invert(singular.ravel(), flat, size)
    assert np.isnan(flat).all()


@pytest.mark.parametrize("entry", [0.0, np.nan, np.inf])
def test_a_failed_decomposition_names_rows_that_exist(entry):
    """Compiled loops check no index: an order left unset would let `substituted` write anywhere."""
    decomposed = import_module("freeattn.numerics.compiled.algebra").decomposed
    matrix, order = np.full((4, 4), entry, dtype=np.complex128), np.full(4, 2**40)
    assert not decomposed(matrix, order) or np.isinf(entry)
    assert ((order >= 0) & (order < 4)).all()


def test_derivatives_of_what_is_not_finite(pair):
    """Not-a-number in gives not-a-number out, on both."""
    for equation in pair:
        u, z = points(pair[0], 2, False)
        with np.errstate(all="ignore"):
            matrices = [np.where(np.arange(len(g))[:, None, None] == 0, np.nan, g) for g in equation.matrices(u, z)]
            found = equation.rates(matrices)
        assert all(np.isnan(g[0]).all() and np.isfinite(g[1]).all() for g in found)


@pytest.mark.parametrize("name", SPECS)
def test_laws(name, monkeypatch):
    """A law is the same on both backends: edges, masses, densities over ten decades, the Stieltjes transform."""
    monkeypatch.setenv(VARIABLE, "numpy")
    numpy = fa.law(SPECS[name])
    monkeypatch.setenv(VARIABLE, "compiled")
    compiled = fa.law(SPECS[name])
    assert compiled.edges == pytest.approx(np.array(numpy.edges), rel=1e-12)
    assert compiled.band_masses == pytest.approx(numpy.band_masses, rel=1e-11)
    right = numpy.edges[-1][1]
    near = numpy.edges[-1][0] * (1 + np.geomspace(1e-12, 1, 50))  # nearer, the edges' last bits are seen
    x = np.concatenate([np.geomspace(1e-10 * right, right, 2000), near])
    wanted = numpy.density(x)
    assert (wanted > 0).sum() > 300
    away = x > numpy.edges[-1][0] * (1 + 1e-6)
    assert compiled.density(x)[away] == pytest.approx(wanted[away], rel=1e-9, abs=1e-11 * wanted.max())
    assert compiled.density(x) == pytest.approx(wanted, abs=1e-7 * wanted.max())
    z = np.array([0.7 * right + 0.1j, -1 + 0.3j, 0.5 * right - 1e-6j])
    assert compiled.stieltjes(z) == pytest.approx(numpy.stieltjes(z), rel=1e-11)


def test_chords_leave_what_they_cannot_do(monkeypatch):
    """A point that fails a test is left to the full method: none passes when no error is small enough."""
    monkeypatch.setenv(VARIABLE, "compiled")
    engine = fa.law(SPECS["gaussian"])._engine
    panel = engine.panels[0]
    x = np.linspace(panel.map.left, panel.map.right, 102)[1:-1]
    chords = engine._equation.chords(panel)
    m, good = chords.stieltjes(x, panel.map.angle(x), 1e-6)
    assert good.mean() > 0.95
    assert m.imag[good] / np.pi == pytest.approx(panel.density_series(x)[good], rel=1e-8)
    assert not chords.stieltjes(x, panel.map.angle(x), 1e-18)[1].any()
    shifted = panel.map.angle(x) + 0.02  # starts that belong to other points: only roots may pass
    m, good = chords.stieltjes(x, shifted, 1e-6)
    assert m.imag[good] / np.pi == pytest.approx(engine.density(x)[good], rel=1e-9)


def test_bordered_systems_of_folds(pair):
    """The system of an edge and its derivatives, at any real point."""
    numpy = pair[0]
    u, z = points(numpy, 12, True)
    phi, gauge = points(numpy, 12, True, seed=1)[0], points(numpy, 12, True, seed=2)[0]
    keep = rounding(numpy, u, z) < 1e3
    assert keep.sum() > 2
    for k in np.flatnonzero(keep):
        both = [equation.bordered(u[k], z[k], phi[k], gauge[k]) for equation in pair]
        for mine, theirs in zip(both[1], both[0], strict=True):
            close(mine, theirs, np.abs(theirs).max(), 1e-9)


@pytest.mark.parametrize("name", SPECS)
def test_points_in_gaps(name, monkeypatch):
    """One pass gives m, its rounding and the test of a gap as the reference does; other roots do not pass."""
    monkeypatch.setenv(VARIABLE, "compiled")
    engine = fa.law(SPECS[name])._engine
    left, right = engine.panels[0].map.left, engine.panels[-1].map.right
    x = np.concatenate([-np.geomspace(1e-6, 1e3, 30), np.geomspace(1e-6, 0.99, 30) * left,
                        right * (1 + np.geomspace(1e-3, 1e3, 30))])
    u, good = engine._gaps.solve(x)
    assert good.all()
    compiled, numpy = engine.equation, TraceEquation(engine.equation.tables)
    mine, theirs = compiled.gap_values(u, x), numpy.gap_values(u, x)
    assert mine.good.all()
    assert theirs.good.all()
    assert mine.m == pytest.approx(theirs.m, rel=1e-11)
    close(mine.error, theirs.error, tolerance=1e-6)
    assert mine.m == pytest.approx(engine.stieltjes(x.astype(complex)).real, rel=1e-11)
    for start in (-u, u[::-1] * 1.5):
        assert np.array_equal(compiled.gap_values(start, x).good, numpy.gap_values(start, x).good)


@pytest.mark.parametrize("size", [1, 2, 5, 16])
def test_inverses_of_jacobians(size):
    """`inverted` and `real_inverse` against numpy; singular matrices are told."""
    algebra = import_module("freeattn.numerics.compiled.algebra")
    rng = np.random.default_rng(size)
    matrix = rng.standard_normal((size, size)) + 1j * rng.standard_normal((size, size))
    factors, order, inverse = matrix.copy(), np.empty(size, dtype=np.int64), np.empty_like(matrix)
    assert algebra.decomposed(factors, order)
    algebra.inverted(factors, order, inverse)
    assert inverse @ matrix == pytest.approx(np.eye(size), abs=1e-11)
    real, found = matrix.real.copy(), np.empty((size, size))
    assert algebra.real_inverse(real, found)
    assert found @ matrix.real == pytest.approx(np.eye(size), abs=1e-11)
    assert not algebra.real_inverse(np.ones((size, size)) * (size > 1), found)
    assert not algebra.real_inverse(np.full((size, size), np.nan), found)


def test_choice(monkeypatch):
    tables = tables_of(dyson_of(Y))
    for name, kind in (("numpy", "TraceEquation"), ("compiled", "CompiledEquation"), ("", "CompiledEquation")):
        monkeypatch.setenv(VARIABLE, name)
        assert backend() == (name or "compiled")
        assert type(trace_equation(tables)).__name__ == kind
    monkeypatch.setenv(VARIABLE, "fortran")
    with pytest.raises(InputError, match="numpy"):
        backend()


def test_without_numba(monkeypatch):
    monkeypatch.setattr("freeattn.numerics.backends.find_spec", lambda _: None)
    monkeypatch.delenv(VARIABLE, raising=False)
    assert backend() == "numpy"
    monkeypatch.setenv(VARIABLE, "compiled")
    with pytest.raises(InputError, match=r"freeattn\[fast\]"):
        backend()


@pytest.mark.parametrize(("name", "statement", "loaded"), [
    ("", "import freeattn.numerics.network", False),
    ("", "import freeattn as fa; fa.law(fa.architecture('bert-base', n_tokens=512)).density(1.0)", False),
    ("numpy", "import freeattn as fa; fa.law(fa.gaussian('X', fa.space('r', 2), fa.space('c', 1)))", False),
    ("compiled", "import freeattn as fa; fa.law(fa.gaussian('X', fa.space('r', 2), fa.space('c', 1)))", True),
])
def test_numba_is_loaded_by_compiled_equations_only(name, statement, loaded):
    run = subprocess.run(
        [sys.executable, "-c", f"{statement}\nimport sys\nprint('numba' in sys.modules)"],
        capture_output=True, text=True, check=True, cwd=ROOT, env=os.environ | {VARIABLE: name},
    )
    assert run.stdout.split() == [str(loaded)]
