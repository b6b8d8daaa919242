"""The initial inverse temperature of published initializations, against numbers worked out by hand."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import mpmath
import pytest

from freeattn.errors import InputError, NotCoveredError
from freeattn.model.architectures import Preset, architecture, architectures
from freeattn.model.initialization import InitialBeta, initial_beta, squared, truncated_variance

PRESETS = {preset.name: preset for preset in architectures()}

EXACT = {
    "transformer-base": 1,  # σ² = 1/512 and d_model = 512
    "transformer-big": 1,  # σ = 1/32: σ² · 1024
    "transformer-base-dk16": Fraction(8, 5),  # σ² = 2/(512 + 8·16) = 1/320; 512/320
    "transformer-base-dk32": Fraction(4, 3),  # σ² = 2/(512 + 8·32) = 1/384; 512/384
    "t5-xxl": 1,  # σ_Q = 1/512, σ_K = 1/64, no scale: 4096/(512·64) = 1/8, times √64 = 8
    "palm-8b": 1,  # σ² = 1/fan_in
    "palm-62b": 1,
    "palm-540b": 1,
    "gpt2-small": Fraction(192, 625),  # 0.02² · 768 = 0.3072
    "opt-175b": Fraction(6912, 15625),  # 0.006² · 12288 = 0.442368
    "vit-ti16": 1,
    "vit-h14": 1,
    "dinov3-l16": Fraction(256, 625),  # 0.02² · 1024; truncation at 100 standard deviations changes nothing
    "kayyam-1.2b-kv": Fraction(512, 625),  # 0.02² · 2048
    "llama-2-7b": Fraction(1024, 625),  # 0.02² · 4096
    "qwen3-8b": 1,  # queries and keys of mean square one: √128/√128
    "gemma-3-1b": 1,
}

TRUNCATED_AT_TWO = 0.7737413035  # 1 − 4φ(2)/(2Φ(2) − 1), φ(2) = 0.0539909665, 2Φ(2) − 1 = 0.9544997361


@pytest.mark.parametrize(("name", "value"), EXACT.items())
def test_rational_betas_are_exact(name: str, value: Fraction) -> None:
    computed = initial_beta(PRESETS[name]).value
    assert computed == value
    assert isinstance(computed, (int, Fraction))


@pytest.mark.parametrize(("name", "value"), [
    ("bert-base", 0.02**2 * TRUNCATED_AT_TWO * 768),  # 0.2376933
    ("bert-large", 0.02**2 * TRUNCATED_AT_TWO * 1024),  # 0.3169244
    ("modernbert-base", 0.02**2 * TRUNCATED_AT_TWO * 768),
    ("gemma-2-27b", 0.02**2 * 4608 * (128 / 144) ** 0.5),  # score scale 1/√144 instead of 1/√128: 1.7377856
    ("gemma-3-27b", (128 / 168) ** 0.5),  # queries and keys of mean square one, score scale 1/√168: 0.8728716
])
def test_other_betas(name: str, value: float) -> None:
    computed = initial_beta(PRESETS[name]).value
    assert isinstance(computed, float)
    assert computed == pytest.approx(value, rel=1e-9)


def test_bert_base_in_digits() -> None:
    assert initial_beta(PRESETS["bert-base"]).value == pytest.approx(0.2376933, abs=5e-8)


@pytest.mark.parametrize("cutoff", [1e-12, 1e-6, 0.01, 0.5, 0.999, 1.0, 2.0, 3.0])
def test_truncated_variance_is_the_variance(cutoff: float) -> None:
    mass = mpmath.quad(mpmath.npdf, [-cutoff, 0, cutoff])
    second = mpmath.quad(lambda x: x * x * mpmath.npdf(x), [-cutoff, 0, cutoff])
    assert truncated_variance(cutoff) == pytest.approx(float(second / mass), rel=1e-12)


def test_no_truncation_keeps_the_variance() -> None:
    assert truncated_variance(None) == 1
    assert truncated_variance(100.0) == 1


@pytest.mark.parametrize(("name", "reason"), [
    ("gpt3-175b", "states no standard deviation (rule: as GPT-2"),
    ("llada-8b", "states no standard deviation (rule: mitchell"),
    ("thin-keys-7b", "states no initialization"),
    ("shazeer-wmt-mha", "states no initialization"),
    ("modernbert-large", "smaller model"),
    ("t5-xxl-gqa-8", "pooled"),
    ("deepseek-v3", "no one beta describes its scores"),
])
def test_unknown_initial_betas_say_why(name: str, reason: str) -> None:
    with pytest.raises(NotCoveredError) as caught:
        initial_beta(PRESETS[name])
    assert str(caught.value).startswith(f"the initial beta of {name} is not known: ")
    assert reason in str(caught.value)


@pytest.mark.parametrize("preset", PRESETS.values(), ids=lambda preset: preset.name)
def test_every_preset_has_a_beta_or_a_reason(preset: Preset) -> None:
    known = preset.init.std is not None and preset.mla is None
    if known:
        initial = initial_beta(preset)
        assert isinstance(initial, InitialBeta)
        assert 0 < initial.value < 10
        assert initial.basis == preset.init.basis
    else:
        with pytest.raises(NotCoveredError, match="the initial beta of"):
            initial_beta(preset)


def test_a_library_default_is_told_apart() -> None:
    initial = initial_beta(PRESETS["llama-2-7b"])
    assert initial.basis == "library-default"
    assert initial.note == "beta from a library default, not from the published training"
    spec = architecture("llama-2-7b", beta="init")
    assert spec.beta == Fraction(1024, 625)
    assert initial.note in spec.not_modelled
    assert initial.note not in architecture("llama-2-7b").not_modelled
    assert initial.note not in architecture("llama-2-7b", beta=1.5).not_modelled


def test_an_assumed_score_scale_is_told() -> None:
    assert initial_beta(PRESETS["palm-8b"]).note == "beta from an assumed score scale"
    assert initial_beta(PRESETS["bert-base"]).note == ""


def test_beta_init_in_a_specification() -> None:
    assert architecture("transformer-base", beta="init").beta == 1
    assert architecture("t5-xxl", beta="init").beta == 1
    spec = architecture("bert-base", beta="init", n_tokens=256, d_value=32, d_out=100)
    assert float(spec.beta) == initial_beta(PRESETS["bert-base"]).value  # a float is its exact binary value
    with pytest.raises(NotCoveredError, match="gpt3-175b is not known"):
        architecture("gpt3-175b", beta="init")


@pytest.mark.parametrize("changes", [{"d_model": 1024}, {"d_key": 32}, {"n_heads": 6}])
def test_beta_init_is_for_the_published_widths(changes: dict[str, int]) -> None:
    with pytest.raises(InputError, match=r"is not the published one.*beta = 0\.237693") as caught:
        architecture("bert-base", beta="init", **changes)
    assert caught.value.field == "beta"
    assert next(iter(changes)) in str(caught.value)


def test_beta_init_accepts_the_published_widths_given_again() -> None:
    assert architecture("transformer-base", beta="init", d_model=512, d_key=64, n_heads=8).beta == 1


def test_other_words_for_beta() -> None:
    with pytest.raises(InputError, match=r"beta = 'initial' is not allowed; .*init"):
        architecture("bert-base", beta="initial")


@pytest.mark.parametrize(("text", "value"), [
    ("1", 1), ("0.02", Fraction(1, 2500)), ("1/sqrt(144)", Fraction(1, 144)), ("0.5/sqrt(9)", Fraction(1, 36)),
    ("1/sqrt(d_key)", Fraction(1, 64)),
])
def test_forms_of_a_factor(text: str, value: Fraction) -> None:
    assert squared("score_scale", text, d_key=64) == value


@pytest.mark.parametrize("text", [
    "0", "-1", "", "1/sqrt(0)", "1/sqrt(-4)", "1/sqrt(d_model)", "1/d_key", "sqrt(2)", "2/sqrt(d_key)", "1e3",
    "1/8", "1/sqrt(d_key) ", "1/sqrt(d_key)*2", "__import__('os')", "d_key", "nan", "inf", "0/sqrt(4)", "1/sqrt(²)",
    "1\n", None, 1,
])
def test_other_forms_are_refused(text: object) -> None:
    with pytest.raises(InputError) as caught:
        squared("score_scale", text, d_key=64)  # type: ignore[arg-type]
    assert caught.value.field == "score_scale"


def test_d_key_is_refused_where_it_has_no_meaning() -> None:
    with pytest.raises(InputError, match=r"init\.std = '1/sqrt\(d_key\)' is not allowed"):
        squared("init.std", "1/sqrt(d_key)")


def test_an_unknown_score_scale_is_refused() -> None:
    strange = dataclasses.replace(PRESETS["bert-base"], score_scale="1/d_key")
    with pytest.raises(InputError, match="score_scale = '1/d_key'"):
        initial_beta(strange)


def test_q_std_is_used_for_queries_only() -> None:
    record = PRESETS["t5-xxl"]
    untied = dataclasses.replace(record, init=dataclasses.replace(record.init, q_std=None))
    assert initial_beta(untied).value == 8  # without the folded 1/√d_key
