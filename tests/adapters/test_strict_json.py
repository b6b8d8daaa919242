"""Files from strangers: what is read, and one line for everything else."""

from __future__ import annotations

import json
import os
import sys
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from freeattn.adapters.config import from_config, read_config
from freeattn.adapters.families import families
from freeattn.adapters.fields import Fields, decimal_text
from freeattn.adapters.strict_json import MOST_BYTES, read_object, shown
from freeattn.errors import FreeattnError, InputError, NotCoveredError
from freeattn.model.attention import Attention

GOOD = {
    "model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2,
    "max_position_embeddings": 32, "initializer_range": 0.02,
}
SIZES = ("hidden_size", "num_attention_heads", "num_hidden_layers", "max_position_embeddings")


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "config.json"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_numbers_are_exact(tmp_path: Path) -> None:
    read = read_object(written(tmp_path, '{"a": 0.1, "b": 12.0, "c": 1e-3, "d": [true, null, "é"]}'))
    assert read == {"a": Decimal("0.1"), "b": 12, "c": Decimal("0.001"), "d": [True, None, "é"]}
    assert read_object(written(tmp_path, b"\xef\xbb\xbf{}")) == {}


@pytest.mark.parametrize(("text", "reason"), [
    ("", "line 1, column 1"),
    ("{", "line 1, column 2"),
    ("[1]", "it has no object at the top"),
    ("3", "it has no object at the top"),
    ('{"a": NaN}', "NaN is not a number of JSON"),
    ('{"a": -Infinity}', "-Infinity is not a number of JSON"),
    ('{"a": 1, "a": 2}', "the key a stands twice"),
    ('{"b": {"a\\u001b": 1, "a\\u001b": 1}}', r"the key a\\x1b stands twice"),
    ('{"a": ' + "1" * 41 + "}", "has more than 40 characters"),
    ('{"a": 1' + "0" * 5000 + "}", "has more than 40 characters"),
    ('{"a": 1e99999999999999999999}', "is out of range"),
    ('{"a": ' + "[" * 200_000 + "]" * 200_000 + "}", "nested too deep"),
    ("{'a': 1}", "line 1, column 2"),
    ('{"a": 1,}', "line 1, column"),
    ('{"a": 1} # comment', "line 1, column"),
    ('{"a": "\t"}', "line 1, column"),
    (b'{"a": "\xff"}', "not UTF-8"),
    (b"\x00\x01\x02\x7fELF", "line 1, column 1"),
    ('{"a": 1}'.encode("utf-16"), "not UTF-8"),
])
def test_what_is_no_strict_json_is_refused(tmp_path: Path, text: str | bytes, reason: str) -> None:
    with pytest.raises(InputError, match=reason) as caught:
        read_object(written(tmp_path, text))
    assert caught.value.field == "config"
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a file, not a folder; often config\.json inside it"):
        read_object(tmp_path)
    with pytest.raises(InputError, match="No such file"):
        read_object(tmp_path / "none.json")
    with pytest.raises(InputError, match=r"a file that can be read \(.*null"):
        read_object("a\0b.json")
    with pytest.raises(InputError, match="File name too long"):
        read_object("x" * 5000 + ".json")
    with pytest.raises(InputError, match=r"Not a directory"):
        read_object(written(tmp_path, "{}") / "config.json")


def test_size_is_limited(tmp_path: Path) -> None:
    fits = json.dumps(GOOD) + " " * (MOST_BYTES - len(json.dumps(GOOD)))
    assert read_object(written(tmp_path, fits))["hidden_size"] == 64
    with pytest.raises(InputError, match="a file of at most 1000000 bytes"):
        read_object(written(tmp_path, fits + " "))


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="no such device here")
def test_endless_files_are_refused_too() -> None:
    with pytest.raises(InputError, match="at most 1000000 bytes"):
        read_object("/dev/zero")


def test_shown_is_short_and_printable() -> None:
    assert shown("a" * 100) == "a" * 60 + "…"
    assert shown("\x1b[31mred\u202e\n") == r"\x1b[31mred\u202e\n"
    assert [shown(value) for value in (None, True, False, [1, 2], {"a": 1}, Decimal("1.50"))] == [
        "null", "true", "false", "a list of 2", "an object with 1 keys", "1.50",
    ]


@pytest.mark.parametrize("field", SIZES)
@pytest.mark.parametrize("value", [
    0, -1, 1.5, True, False, "64", "", [64], {"a": 1}, 10**10, 10**30, -(10**30), 1e300, float("nan"),
    float("inf"), Decimal("1e999999"), Decimal("-0.5"), Decimal("nan"),
])
def test_odd_sizes_are_refused(field: str, value: Any) -> None:
    with pytest.raises(InputError, match=rf"{field} = .* is not allowed; expected an integer from 1 to") as caught:
        read_config({**GOOD, field: value})
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("field", [size for size in SIZES if size != "max_position_embeddings"])
def test_null_is_no_size(field: str) -> None:
    with pytest.raises(InputError, match=rf"{field} = 'null' .*an integer from 1 to"):
        read_config({**GOOD, field: None})
    assert read_config({**GOOD, "max_position_embeddings": None}).n_tokens is None


@pytest.mark.parametrize("field", SIZES)
@pytest.mark.parametrize("value", [8, 8.0, Decimal("8.0"), Decimal("0.8e1"), Fraction(8)])
def test_whole_numbers_are_sizes(field: str, value: Any) -> None:
    assert read_config({**GOOD, field: value}) == read_config({**GOOD, field: 8})


@pytest.mark.parametrize(("field", "value", "allowed"), [
    ("initializer_range", 0, "a number from 1e-12 to 1e+12"),
    ("initializer_range", -0.02, "a number from"),
    ("initializer_range", "0.02", "a number from"),
    ("initializer_range", True, "a number from"),
    ("initializer_range", 1e-300, "a number from"),
    ("initializer_range", 1e300, "a number from"),
    ("initializer_range", None, "a positive number"),
    ("attention_dropout", -0.1, "a number from 0 to"),
    ("attention_bias", "yes", "true or false"),
    ("attention_bias", 1, "true or false"),
    ("rope_scaling", 3, "an object, or null"),
    ("rope_scaling", {"rope_type": "magic"}, "one of default, linear"),
    ("rope_scaling", {"rope_type": 3}, "a text"),
    ("rope_scaling", {"rope_type": "yarn"}, "a positive number next to yarn"),
    ("rope_scaling", {"rope_type": "yarn", "factor": "4"}, "a number from"),
    ("rope_scaling", {"rope_type": "longrope"}, "a positive number next to longrope"),
    ("partial_rotary_factor", 1.5, "a number up to 1"),
    ("num_attention_heads", 5, "a divisor of hidden_size = 64"),
    ("num_key_value_heads", 3, "a divisor of num_attention_heads = 4"),
    ("model_type", 7, "a text"),
    ("model_type", ["llama"], "a text"),
])
def test_odd_fields_are_refused(field: str, value: Any, allowed: str) -> None:
    with pytest.raises(InputError) as caught:
        read_config({**GOOD, field: value})
    assert caught.value.allowed.startswith(allowed)
    assert caught.value.field.split(".")[0] == field


def test_names_of_one_field_must_agree() -> None:
    gpt2 = {"model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_layer": 2, "n_positions": 32}
    assert read_config({**gpt2, "hidden_size": 64}).d_model == 64
    with pytest.raises(InputError, match=r"hidden_size = '65' .*equal to n_embd = 64"):
        read_config({**gpt2, "hidden_size": 65})


def test_odd_images_are_refused() -> None:
    image = {
        "model_type": "vit", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2, "image_size": 32,
        "patch_size": 16,
    }
    assert read_config({**image, "image_size": [32, 64]}).n_tokens == 9
    for field, value in (("image_size", [32, 64, 3]), ("image_size", "32"), ("patch_size", 0), ("patch_size", None)):
        with pytest.raises(InputError) as caught:
            read_config({**image, field: value})
        assert caught.value.field == field
    with pytest.raises(InputError, match=r"patch_size = '33' .*at most image_size = 32"):
        read_config({**image, "patch_size": 33})


def test_decimal_texts_are_exact_where_they_end() -> None:
    assert decimal_text(Fraction(1, 50)) == "0.02"
    assert decimal_text(Fraction(10**12)) == "1000000000000"
    assert decimal_text(Fraction(1, 10**12)) == "0.000000000001"
    assert Fraction(decimal_text(Fraction(1, 3))) == pytest.approx(Fraction(1, 3), rel=1e-16)


def test_a_decimal_context_of_the_caller_changes_nothing() -> None:
    plain = from_config({**GOOD, "initializer_range": Decimal("0.0123456789")})
    with localcontext() as context:
        context.prec = 2
        assert from_config({**GOOD, "initializer_range": Decimal("0.0123456789")}) == plain


# Anything at all ---------------------------------------------------------------------------------------------

NAMES = sorted(
    {name for family in families().values() for names in family.names.values() for name in names}
    | {name for family in families().values() for name in family.defaults}
    | {"rope_scaling", "rope_parameters", "partial_rotary_factor", "position_embedding_type", "is_decoder"}
)
NUMBERS = st.one_of(
    st.integers(), st.integers(1, 64), st.sampled_from([12.0, 0.02, 0.5, 1e-12, 1e12]), st.floats(),
    st.decimals(),
)
TEXTS = st.one_of(st.text(max_size=8), st.sampled_from([*families(), "yarn", "su"]))
SCALARS = st.one_of(NUMBERS, st.none(), st.booleans(), TEXTS)
INNER = st.dictionaries(
    st.sampled_from(["rope_type", "type", "factor", "attention_factor", "mscale", "mscale_all_dim", "model_type",
                     "original_max_position_embeddings", "full_attention", "hidden_size"]), SCALARS, max_size=5,
)
VALUES = st.one_of(SCALARS, INNER, st.lists(SCALARS, max_size=3))
CONFIGS = st.dictionaries(st.one_of(st.sampled_from(NAMES), st.text(max_size=6)), VALUES, max_size=12)


def outcome(config: Any, **arguments: Any) -> str:
    """Asserts a specification, or an error of ours on one line; returns which."""
    message = ""
    try:
        spec = from_config(config, **arguments)
    except (InputError, NotCoveredError) as error:
        message = str(error)
    assert message or isinstance(spec, Attention)
    assert "\n" not in message
    assert len(message) < 2000
    return message


@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(sorted(families())), CONFIGS, st.booleans())
@example("llama", {"initializer_range": 1e-12}, True)
@example("phi3", {"rope_scaling": {"type": "su", "factor": 1}, "max_position_embeddings": 1}, True)
@example("modernbert", {"initializer_cutoff_factor": 1e-12, "initializer_range": 1}, True)
@example("vit", {"initializer_range": 1e12}, True)
@example("t5", {"initializer_factor": 1e-12}, True)
@example("distilbert", {"dim": 0, "hidden_size": Decimal("sNaN")}, False)
def test_any_fields_give_a_specification_or_an_error(model_type: str, config: dict[str, Any], sized: bool) -> None:
    if sized:
        config = {**{name: 8 for name in families()[model_type].defaults if "size" in name or "head" in name}, **config}
    config.setdefault("model_type", model_type)
    outcome(config)
    outcome(config, n_tokens=4)
    outcome({"model_type": "several", "one_config": config}, part="one", n_tokens=4, beta=1)


@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.one_of(
    st.binary(max_size=200),
    st.text(max_size=200).map(str.encode),
    st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8).map(
        lambda value: json.dumps(value, default=str).encode()
    ),
    st.tuples(st.integers(0, 150), st.binary(max_size=4)).map(
        lambda cut: json.dumps(GOOD).encode()[: cut[0]] + cut[1] + json.dumps(GOOD).encode()[cut[0] + len(cut[1]):]
    ),
))
def test_any_bytes_give_a_specification_or_an_error(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    outcome(written(tmp_path_factory.getbasetemp(), data), n_tokens=4)


def test_deep_mappings_are_refused_without_a_crash() -> None:
    deep: dict[str, Any] = {}
    for _ in range(sys.getrecursionlimit() * 2):
        deep = {"full_attention": deep}
    outcome({**GOOD, "rope_scaling": deep})
    assert Fields({"a": deep}, {}).inner("a") is not None
    assert issubclass(InputError, FreeattnError)
