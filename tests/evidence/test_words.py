"""Random matrices for expressions: what is drawn, against linear algebra, and verification against a law."""

from __future__ import annotations

import json

import numpy as np
import pytest
import sympy as sp
from variants import numbers_of

from freeattn.errors import InputError
from freeattn.evidence.simulate import sample, verify
from freeattn.evidence.word_verification import verify_words
from freeattn.evidence.words import sample_words
from freeattn.model.attention import Attention
from freeattn.model.expression import concatenate, diagonal, gaussian, identity, wigner
from freeattn.model.heads import Heads
from freeattn.model.inputs import FeatureCovariance
from freeattn.model.latent import Latent
from freeattn.model.letters import copies, space
from freeattn.model.word_sizes import spaces_of, symbols_of
from freeattn.theory import symbols as sym
from freeattn.theory.attention_words import words_of

n, p, h = sp.symbols("n p h", positive=True)
ROWS, COLUMNS = space("rows", n), space("columns", p)
HEADS = copies("heads", h)
X = gaussian("X", ROWS, COLUMNS, 1 / p)
S = wigner("S", ROWS, 1 / n)
SIZES = {n: 80, p: 120, h: 3}


class MarchenkoPastur:
    """The law of X Xᵀ, X n × p with N(0, 1/p) entries, by quadrature."""

    def __init__(self, t: float, scale: float = 1.0) -> None:
        low, high = (1 - t**0.5) ** 2, (1 + t**0.5) ** 2
        angle = (np.arange(4000) + 0.5) / 4000 * np.pi
        self._x = (low + high) / 2 - (high - low) / 2 * np.cos(angle)
        density = np.sqrt((self._x - low) * (high - self._x)) / (2 * np.pi * t * self._x)
        self._mass = density * (high - low) / 2 * np.sin(angle) * np.pi / 4000
        self._x = self._x * scale
        self.edges = ((low * scale, high * scale),)
        self.atoms: tuple = ()

    def moments(self, k):
        return [float(np.sum(self._mass * self._x**j)) for j in range(1, k + 1)]

    def cdf(self, x):
        return np.interp(x, self._x, np.cumsum(self._mass))

    def quantile(self, q):
        return np.interp(q, np.cumsum(self._mass), self._x)

    def stieltjes(self, z):
        return np.sum(self._mass / (self._x - np.asarray(z)[..., None]), axis=-1)


def drawn(expression, sizes, *args, **options):
    """`sample_words` with the numbers that the expression asks for."""
    needed = symbols_of(expression)
    names = {place.name for place in spaces_of(expression)}
    kept = {key: value for key, value in sizes.items() if str(key) in needed or str(key) in names}
    return sample_words(expression, kept, *args, **options)


def test_gram_and_cogram_differ_by_zeros():
    gram, cogram = (drawn(X, SIZES, seed=1, of=of) for of in ("gram", "cogram"))
    assert gram.shape == (80,)
    assert cogram.shape == (120,)
    np.testing.assert_allclose(cogram[-80:], gram, rtol=1e-9)
    assert not cogram[:40].any()


def test_sizes_by_object_name_or_symbol():
    expected = drawn(X, SIZES, seed=1)
    for sizes in ({"n": 80, "p": 120}, {ROWS: 80, COLUMNS: 120, p: 120}, {"rows": 80, "columns": 120, "p": 120}):
        np.testing.assert_array_equal(sample_words(X, sizes, seed=1), expected)
    whole = gaussian("X", space("rows", 80), space("columns", 120), sp.Rational(1, 120))
    np.testing.assert_allclose(sample_words(whole, seed=1), expected, rtol=1e-12)


def test_the_same_letter_is_the_same_matrix():
    assert np.abs(drawn(X @ X.T - X @ X.T + S, SIZES) - drawn(S, SIZES)).max() < 1e-12
    square = drawn(X @ X.T, SIZES, of="self-adjoint")
    np.testing.assert_allclose(drawn(X @ X.T, SIZES), square**2, rtol=1e-9)
    np.testing.assert_allclose(drawn(X, SIZES), square, rtol=1e-9)
    np.testing.assert_allclose(drawn(2 * X, SIZES), 4 * square, rtol=1e-9)


def test_identity_shifts():
    values = drawn(S, SIZES, of="self-adjoint")
    np.testing.assert_allclose(drawn(S + identity(ROWS), SIZES, of="self-adjoint"), values + 1, atol=1e-12)


def test_copies_are_independent_and_add_up():
    """h copies of variance 1/h have the law of one; a copy that is repeated adds coherently."""
    letter = gaussian("A", ROWS, COLUMNS, 1 / p, per=HEADS)
    total = [drawn(HEADS.sum(letter), SIZES, seed).mean() for seed in range(20)]
    assert abs(np.mean(total) / 3 - 1) < 0.03
    same = [drawn(HEADS.sum(X), SIZES, seed).mean() for seed in range(20)]
    assert abs(np.mean(same) / 9 - 1) < 0.03


def test_nested_copies_share_the_letters_of_their_group():
    groups = copies("groups", 2)
    heads = copies("heads", 3, within=groups)
    shared, own = gaussian("B", ROWS, COLUMNS, 1 / p, per=groups), gaussian("A", ROWS, ROWS, 1 / n, per=heads)
    total = groups.sum(heads.sum(own @ shared))
    means = [drawn(total, SIZES, seed).mean() for seed in range(20)]
    assert abs(np.mean(means) / 6 - 1) < 0.03


def test_side_by_side_is_the_sum_of_gram_matrices():
    letter = gaussian("A", ROWS, COLUMNS, 1 / p, per=HEADS)
    wide = drawn(HEADS.concatenate(letter), SIZES, seed=2)
    assert abs(wide.mean() / 3 - 1) < 0.05
    assert wide[0] > 0.1  # of a wide matrix: not the sum of three, which would come near 0
    both = concatenate(X, 2 * X)
    np.testing.assert_allclose(drawn(both, SIZES, seed=2), 5 * drawn(X, SIZES, seed=2), rtol=1e-9)
    assert drawn(both, SIZES, seed=2, of="cogram").shape == (240,)


def test_diagonal_letters_have_their_spectrum():
    spectrum = drawn(diagonal("D", ROWS, (1, -2, 5), (1, 1, 2)), SIZES, of="self-adjoint")
    np.testing.assert_array_equal(spectrum, [-2] * 20 + [1] * 20 + [5] * 40)


SMALL = {"n_tokens": 96, "d_model": 128, "d_out": 80, "n_heads": 2, "d_key": 32, "d_value": 24}
SQUARE = {**SMALL, "d_out": 128, "d_value": 32}


@pytest.mark.parametrize(
    "fields",
    [
        {**SQUARE, "tie": "output-key"},
        {**SQUARE, "residual": 2},
        {**SMALL, "latent": Latent(40), "query_latent": Latent(30), "position_width": 8},
        {**SMALL, "output": "values", "inputs": FeatureCovariance((1, 4, 10), (5, 3, 2))},
        {"n_tokens": 96, "d_model": 128, "output": "attention", "heads": [Heads(1, 32), Heads(2, 16, beta=2)]},
    ],
    ids=["output-key", "residual", "latents and positions", "values, feature covariance", "attention, unequal heads"],
)
def test_words_of_a_layer_are_its_gaussian_equivalent(fields):
    """Simulated words and simulated layers agree in law, by two ways that share no step."""
    spec = Attention(**{**fields, "beta": sp.Rational(1, 2)})
    words = words_of(spec)
    sizes = {sym.TOKENS, sym.D_MODEL, sym.D_OUT, sym.D_POSITION, sym.RANK, sym.QUERY_RANK}
    numbers = {
        symbol: value * spec.n_tokens if symbol in sizes or str(symbol).startswith(("d_K", "d_V")) else value
        for symbol, value in numbers_of(words).items()
    }
    simulated = [drawn(words.expression, numbers, seed) for seed in range(20)]
    layers = [sample(spec, seed).equivalent for seed in range(20)]
    for power in (1, 2):
        one, other = ([np.mean(values**power) for values in spectra] for spectra in (simulated, layers))
        error = np.hypot(np.std(one, ddof=1), np.std(other, ddof=1)) / np.sqrt(20)
        assert abs(np.mean(one) - np.mean(other)) < 4 * error
        assert error < 0.08 * power * np.mean(one)


@pytest.mark.parametrize(
    ("expression", "changes", "text"),
    [
        (X, {"sizes": {n: 80}}, "number for p"),
        (gaussian("Y", space("free"), COLUMNS), {"sizes": {p: 120}}, "size for space free"),
        (X, {"sizes": {n: 80.5, p: 120}}, r"size of space rows = Fraction\(161, 2\) .* positive integer"),
        (X, {"sizes": {n: 0, p: 120}}, "positive number"),
        (HEADS.sum(gaussian("A", ROWS, COLUMNS, per=HEADS)), {"sizes": {**SIZES, h: 2.5}}, "count of copies heads"),
        (gaussian("A", ROWS, COLUMNS, per=HEADS), {"sizes": {**SIZES}}, "heads.sum"),
        (X, {"sizes": {n: 80, p: 120}, "of": "self-adjoint"}, "of = 'self-adjoint' .* M = Mᵀ"),
        (X, {"sizes": {n: 80, p: 120}, "of": "grams"}, '"gram", "cogram", "self-adjoint"'),
        (X, {"sizes": 80}, "mapping"),
        (X, {"sizes": {n: 80, p: 120}, "seed": -1}, "seed"),
    ],
)
def test_what_cannot_be_drawn_is_refused(expression, changes, text):
    with pytest.raises(InputError, match=text):
        sample_words(expression, **changes)


def test_one_name_for_layers_and_expressions():
    np.testing.assert_array_equal(sample(X, 3, sizes={n: 80, p: 120}), drawn(X, SIZES, 3))
    spec = Attention(n_tokens=40, d_model=60, n_heads=2, d_key=10, output="attention")
    assert sample(spec, 3).softmax.shape == (40,)
    for model, changes in ((spec, {"sizes": SIZES}), (spec, {"of": "cogram"}), ("bert-base", {})):
        with pytest.raises(InputError):
            sample(model, **changes)
        with pytest.raises(InputError):
            verify(model, **changes)


@pytest.fixture(scope="module")
def report():
    return verify(X, draws=8, seed=1, law=MarchenkoPastur(2 / 3), sizes={n: 200, p: 300})


def test_the_right_law_passes(report):
    assert report.passed
    assert [s.name for s in report.statistics if not s.passed] == []
    assert len(report.samples) == 8


@pytest.mark.parametrize(("t", "scale"), [(2 / 3, 1.06), (0.6, 1.0), (0.75, 1.0)])
def test_a_wrong_law_fails(t, scale):
    assert not verify(X, draws=8, seed=1, law=MarchenkoPastur(t, scale), sizes={n: 200, p: 300}).passed


def test_the_report_is_plain_data(report):
    record = json.loads(json.dumps(report.to_dict()))
    assert record["passed"] is True
    assert record["sizes"] == {"n": 200, "p": 300}
    assert len(report.rows()) == len(record["statistics"]) == 9
    low, high = record["statistics"][0]["simulated"]["interval"]
    assert low < record["statistics"][0]["simulated"]["mean"] < high


def test_progress_and_reproducibility(report):
    seen = []
    again = verify_words(
        X, {n: 200, p: 300}, 8, 1, law=MarchenkoPastur(2 / 3), progress=lambda *step: seen.append(step)
    )
    assert seen == [(done, 8) for done in range(1, 9)]
    assert again.to_dict() == report.to_dict()


@pytest.mark.parametrize("changes", [{"draws": 1}, {"draws": True}, {"seed": np.random.SeedSequence(1)}])
def test_verification_refuses(changes):
    with pytest.raises(InputError):
        verify_words(X, {n: 80, p: 120}, law=MarchenkoPastur(2 / 3), **changes)


def test_the_law_of_the_expression_is_the_default():
    assert verify(X, draws=4, seed=1, sizes={"n": 160, "p": 240}).passed
    assert verify(S + X @ X.T, draws=4, seed=1, sizes={"n": 160, "p": 240}, of="self-adjoint").passed
