"""A user's own spectrum against a law: values, zeros and units, the verdict, and outliers."""

import json

import numpy as np
import pytest

import freeattn as fa
from freeattn.errors import InputError
from freeattn.evidence.band_outliers import outliers_of

SPEC = fa.Attention(n_tokens=192, d_model=256, n_heads=4, d_key=64, d_value=64, d_out=144)
NOISY = fa.Attention(n_tokens=192, d_model=256, n_heads=2, d_key=64, d_value=64, output="values")


@pytest.fixture(scope="module")
def values():
    return fa.sample(SPEC, seed=1).softmax


@pytest.fixture(scope="module")
def law():
    return fa.law(SPEC)


@pytest.fixture(scope="module")
def wishart():
    """X Xᵀ with 200 rows, 300 columns: Marchenko–Pastur on [0.0337, 3.2997]."""
    rows, columns = fa.space("rows", 200), fa.space("columns", 300)
    X = fa.gaussian("X", rows, columns, 1 / 300)
    return X, fa.law(X)


def by_name(result):
    return {found.name: found for found in result.findings}


def test_simulated_attention_passes(values):
    result = fa.verify_spectrum(values[::-1], SPEC)
    assert result.passed
    assert (result.n_tokens, result.padded, result.normalized) == (192, 0, False)
    assert result.mean_ratio == pytest.approx(values.mean() / result.law.mean)
    assert result.edges == (values[values > 0][0], values[-1])
    assert np.array_equal(result.spectrum, values)
    assert not result.warnings
    assert str(result).endswith("checks passed")


def test_statistics_are_those_of_evidence(values, law):
    own = by_name(fa.verify_spectrum(values, SPEC))
    reference = {one.name: one for one in fa.verify(SPEC, draws=2).statistics}
    assert set(own) == {name for name in reference if not name.endswith("_to_equivalent")}
    assert own["moment_1"].measured.mean == pytest.approx(values.mean() / law.mean - 1)
    assert own["moment_2"].passed is None


def test_another_law_fails(values):
    assert not fa.verify_spectrum(values, SPEC.replace(d_key=8)).passed


def test_singular_values_are_squared(values):
    one, other = (
        fa.verify_spectrum(v, SPEC, singular_values=s) for v, s in ((np.sqrt(values), True), (values, False))
    )
    np.testing.assert_allclose(one.spectrum, other.spectrum, rtol=1e-12, atol=1e-12)
    assert one.passed


def test_other_units_are_hinted_at_and_can_be_divided_out(values):
    scaled = fa.verify_spectrum(9 * values, SPEC)
    assert not scaled.passed
    assert scaled.mean_ratio == pytest.approx(9, rel=0.1)
    (hint,) = scaled.warnings
    assert "other units" in hint
    normalized = fa.verify_spectrum(9 * values, SPEC, normalized=True)
    assert normalized.passed
    assert normalized.law.mean == pytest.approx(1)
    assert normalized.spectrum.mean() == pytest.approx(1)
    assert normalized.mean_ratio == scaled.mean_ratio


def test_omitted_zeros_are_added(values):
    """144 columns: the matrix has 48 zeros, and a library returns 144 singular values."""
    result = fa.verify_spectrum(values[48:], SPEC)
    assert result.padded == 48
    assert result.passed
    assert np.array_equal(result.spectrum, values)
    assert "48 of 192 eigenvalues were not given" in result.warnings[0]
    lost = fa.verify_spectrum(values[60:], SPEC)
    assert by_name(lost)["mass_at_zero"].passed is False


def test_a_law_without_a_layer_allows_noise_alone(wishart):
    X, law = wishart
    result = fa.verify_spectrum(fa.sample(X, seed=0), law)
    assert result.passed
    assert "noise alone" in result.warnings[0]
    assert result.to_dict()["spec"] is None
    assert not fa.verify_spectrum(1.05 * fa.sample(X, seed=0), law).passed
    wide = fa.verify_spectrum(fa.sample(X, seed=0)[50:], law, n_tokens=200)
    assert wide.padded == 50


def test_expressions_and_layers_by_ratios(values, wishart):
    X, _ = wishart
    assert fa.verify_spectrum(fa.sample(X, seed=0), X).passed
    ratios = fa.Attention.from_ratios(
        gamma_key=SPEC.gamma_key, gamma_value=SPEC.gamma_value, gamma_out=SPEC.gamma_out, n_heads=4,
        tokens_per_width=SPEC.tokens_per_width,
    )
    assert fa.verify_spectrum(values, ratios).n_tokens == 192


def test_json(values):
    record = json.loads(json.dumps(fa.verify_spectrum(values, SPEC).to_dict()))
    assert record["passed"] is True
    assert record["outliers"]["count"] >= len(record["outliers"]["furthest"])
    assert record["spec"]["n_tokens"] == 192


# Outliers -----------------------------------------------------------------------------------------------------


def test_gaussian_matrices_have_none(wishart):
    """0.25 % of matrices put their largest eigenvalue further out than δ, fewer their smallest: 1 of 40 is plenty."""
    X, law = wishart
    counts = [len(outliers_of(fa.sample(X, seed=seed), law)) for seed in range(40)]
    assert sum(counts) <= 1


def test_reach_is_that_of_the_tracy_widom_law(wishart):
    """(3π/2)^{2/3} units σ_n = μ_n/n·…: for N × M Wishart of variance 1/M, (√M+√N)(1/√M + 1/√N)^{1/3}/M."""
    _, law = wishart
    n, m = 200, 300
    unit = (m**0.5 + n**0.5) * (m**-0.5 + n**-0.5) ** (1 / 3) / m
    edge = law.edges[0][1]
    spectrum = np.full(n, 1.0)
    for distance, count in ((0.93, 0), (1.07, 1)):  # the density leaves the square root within δ by some per cent
        spectrum[-1] = edge + distance * (1.5 * np.pi) ** (2 / 3) * unit
        assert len(outliers_of(spectrum, law)) == count


def test_both_sides_and_gaps_count():
    two_bands = fa.law(fa.Attention(n_tokens=512, d_model=512, n_heads=4, d_key=32, output="attention"))
    (_, left), (right, last) = two_bands.edges
    spectrum = np.sort(np.concatenate([np.full(508, 1.0), [0.0, (left + right) / 2, 2 * last, 0.05]]))
    found = outliers_of(spectrum, two_bands)
    assert {one.value for one in found} == {(left + right) / 2, 2 * last, 0.05}
    assert [one.distance for one in found] == sorted((one.distance for one in found), reverse=True)
    assert {one.edge for one in found} <= {end for band in two_bands.edges for end in band}
    assert all(one.distance > 1 for one in found)


def test_spikes_are_listed(values):
    spiked = np.append(values[:-1], 5 * values[-1])
    result = fa.verify_spectrum(spiked, SPEC)
    assert result.outliers[0].value == spiked[-1]
    assert result.to_dict()["outliers"]["furthest"][0]["value"] == spiked[-1]


# Bad input ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "text"),
    [
        ([], "1 to"),
        ([[1.0, 2.0]], "one dimension"),
        ([1.0, float("nan")], "nan at position 1"),
        ([float("inf"), 1.0], "inf at position 0"),
        ([-1.0, 2.0], "-1 at position 0"),
        ([1j, 2], "real numbers"),
        ([True, False], "real numbers"),
        (["1", "2"], "real numbers"),
        (np.array([1, None]), "real numbers"),
        ([[1], [1, 2]], "one-dimensional"),
        (3.0, "one dimension"),
        (None, "real numbers"),
        ([0.0] * 5, "above 0"),
        ([1.0] * 193, "at most n_tokens = 192"),
        (np.broadcast_to(np.float64(1), (1_000_001,)), "1 to 1000000"),
    ],
)
@pytest.mark.parametrize("singular_values", [False, True])
def test_bad_values(bad, text, singular_values, law):
    with pytest.raises(fa.InputError) as error:
        fa.verify_spectrum(bad, SPEC, law=law, singular_values=singular_values)
    assert text in str(error.value)
    assert error.value.field == "values"
    assert len(str(error.value).splitlines()) == 1


def test_small_values_at_a_hard_edge_are_no_zeros():
    """Quantiles of a law whose density grows like x^(−8/9): the smallest of 3000 is 1e-14 of the largest or so."""
    hard = fa.law(fa.Attention.from_ratios(gamma_key=1, gamma_value=1, gamma_out=1, n_heads=1))
    quantiles = hard.quantile((np.arange(3000) + 0.5) / 3000)
    assert quantiles[0] < 1e-12 * quantiles[-1]
    by_singular_values = fa.verify_spectrum(np.sqrt(quantiles), hard, singular_values=True)
    assert by_singular_values.passed
    assert by_name(by_singular_values)["mass_at_zero"].measured.mean == 0
    assert len(by_singular_values.warnings) == 1  # noise alone
    assert "singular values of M resolve them" in fa.verify_spectrum(quantiles, hard).warnings[1]
    assert by_name(fa.verify_spectrum(quantiles, hard, zero_below=0))["mass_at_zero"].measured.mean == 0
    assert by_name(fa.verify_spectrum(quantiles, hard, zero_below=1e-3))["mass_at_zero"].passed is False


def test_zeros_of_single_precision(values):
    """What float32 leaves of a zero is a zero for an array of that type, and where zero_below says so."""
    single = values.astype(np.float32)
    single[:48] = np.float32(values[-1]) * np.linspace(-1, 1, 48, dtype=np.float32) * 1e-6
    assert fa.verify_spectrum(single, SPEC).passed
    assert not fa.verify_spectrum(single.astype(float), SPEC).passed
    assert fa.verify_spectrum(single.astype(float), SPEC, zero_below=1e-5).passed
    with pytest.raises(fa.InputError, match="zero_below"):
        fa.verify_spectrum(single, SPEC, zero_below=2)


@pytest.mark.parametrize("values", [[1.0], [0.0, 2.0], [1e-300, 2.0], [3.0, 1e70]])
def test_few_or_extreme_values_have_a_verdict(values, wishart):
    record = fa.verify_spectrum(values, wishart[1]).to_dict()
    json.dumps(record, allow_nan=False)
    if values[-1] == 1e70:
        assert record["passed"] is False


def test_rounding_below_zero_is_zero(law):
    values = np.concatenate([[-1e-13], np.ones(191)])
    assert fa.verify_spectrum(values, SPEC, law=law).spectrum[0] == 0


@pytest.mark.parametrize("source", ["layer", "law", "expression"])
def test_swapped_arguments_are_told(values, law, source):
    space = fa.space("n", 64)
    swapped = {"layer": SPEC, "law": law, "expression": fa.gaussian("X", space, space)}[source]
    with pytest.raises(InputError) as caught:
        fa.verify_spectrum(swapped, values)
    assert caught.value.field == "values"
    assert caught.value.allowed == (
        "the eigenvalues, an array, before the layer: verify_spectrum(values, source); the two are swapped"
    )
    with pytest.raises(InputError, match=r"^values = .*verify_spectrum\(values, source\)$"):
        fa.verify_spectrum(swapped, swapped)


@pytest.mark.parametrize(("source", "shown"), [(np.ones(3), "ndarray"), ([1, 2], "list"), ("bert", "'bert'"), (3, "3")])
def test_what_has_no_law_is_refused_as_the_source(values, source, shown):
    with pytest.raises(InputError) as caught:
        fa.verify_spectrum(values, source)
    expected = "is not allowed; expected a layer (Attention), an expression in letters, or a law"
    assert str(caught.value) == f"source = {shown!r} {expected}"


def test_other_bad_arguments(values, law):
    with pytest.raises(fa.InputError, match="n_tokens"):
        fa.verify_spectrum(values, SPEC, law=law, n_tokens=200)
    with pytest.raises(fa.InputError, match="n_tokens"):
        fa.verify_spectrum(values, law.normalized(), n_tokens=1.5)
    with pytest.raises(fa.InputError):
        fa.verify_spectrum(values, "bert-base")
    space = fa.space("n", 192)
    with pytest.raises(fa.InputError, match="below 0"):
        fa.verify_spectrum(values, fa.law(fa.wigner("W", space, 1 / 192), of="self-adjoint"))


@pytest.mark.parametrize(("size", "singular"), [(1e308, False), (1e-320, False), (1e40, True), (1e-200, True)])
def test_values_whose_powers_leave_the_doubles_are_refused(law, size, singular):
    for normalized in (False, True):
        with pytest.raises(fa.InputError, match="take another unit"):
            fa.verify_spectrum([size] * 192, SPEC, law=law, singular_values=singular, normalized=normalized)


def test_a_mean_that_is_far_off_is_explained_by_its_likeliest_cause():
    spec = fa.Attention(n_tokens=128, d_model=192, n_heads=3, d_key=64, d_value=64)
    values = fa.sample(spec, seed=0).softmax
    leading = np.append(np.sort(values)[1:], 60 * values.mean())
    for given, cause in ((leading, "is M centered"), (np.sqrt(values), "singular values"), (4 * values, "other units")):
        (first, *_) = fa.verify_spectrum(given, spec).warnings
        assert cause in first


def test_a_factor_that_is_a_width_is_named():
    spec = fa.Attention(n_tokens=128, d_model=256, n_heads=3, d_key=32, d_value=64)
    values = fa.sample(spec, seed=0).softmax
    for factor, name in ((192, "n_heads·d_value"), (1 / 128, "1/n_tokens"), (256, "d_model or d_out")):
        (first, *_) = fa.verify_spectrum(factor * values, spec).warnings
        assert f"; near {name})" in first
    assert "near" not in fa.verify_spectrum(7 * values, spec).warnings[0]


def test_mean_one_forms_say_what_they_do_not_test():
    """Scores without 1/√d_key: mean-one forms hardly differ, so that a verdict on them alone would mislead."""
    spec = fa.Attention(n_tokens=128, d_model=192, n_heads=3, d_key=64, d_value=64)
    values = fa.sample(spec, seed=0).softmax
    assert not any("mean-one" in told for told in fa.verify_spectrum(values, spec, normalized=True).warnings)
    (told, *_) = fa.verify_spectrum(140 * values, spec, normalized=True).warnings
    assert told.startswith("mean-one forms test neither the scale of M")
    assert "1/√d_key" in told
