"""A law as a module of Python that needs numpy only: `stieltjes(z)` and `density(x)`."""

from __future__ import annotations

from freeattn.theory.exports.code import Python
from freeattn.theory.exports.heading import heading_text
from freeattn.theory.exports.program import CurveProgram, DysonProgram, Inputs
from freeattn.theory.exports.source import assigned, curve_parts, dyson_parts, filled, joined, needed

__all__ = ["python_source"]

_EXAMPLE = {  # sizes that fit each other and the conditions of every law
    "n_tokens": "512", "d_model": "768", "n_heads": "12", "n_kv_heads": "12", "d_key": "64", "d_value": "64",
    "d_out": "768",
}
_OTHERWISE = "0.5"  # of β, ratios, correlations and sizes in any unit


def python_source(program: CurveProgram | DysonProgram) -> str:
    """The source of a module: newton's method and continuation from infinity, every root tested."""
    language = Python()
    keywords = [language.name(symbol) for symbol in program.inputs.parameters]
    signature = "".join([", *", *(f", {name}" for name in keywords)]) if keywords else ""
    if isinstance(program, CurveProgram):
        body = _curve(program, language, signature)
    else:
        body = _dyson(program, language, signature)
    units = "Arguments besides z or x are numbers: " + ", ".join(keywords) + "." if keywords else ""
    notes = "\n\n".join(filter(None, (units, _usage(keywords))))
    return "\n".join([
        '"""' + heading_text(program.heading, notes).replace("\\", "\\\\") + '\n"""\n',
        "import cmath\nimport math\n\nimport numpy as np\n\n__all__ = [\"density\", \"stieltjes\"]\n",
        body,
        filled("python_follow", KEYWORDS=signature, ARGUMENTS=", ".join(f"{name}={name}" for name in keywords)),
    ])


def _usage(keywords: list[str]) -> str:
    """How the module is used, as lines to copy; what is asked for has numbers of an example."""
    listed = ", ".join(f"{name}={_EXAMPLE.get(name, _OTHERWISE)}" for name in keywords)
    given = f"    numbers = dict({listed})  # an example: put in those of your own\n" if keywords else ""
    numbers = ", **numbers" if keywords else ""
    return (
        f"Usage, with this file as law.py:\n\n    from law import density, stieltjes\n{given}"
        f"    density([1.0, 2.0]{numbers}), stieltjes(1 + 1j{numbers})"
    )


def _assignments(inputs: Inputs, language: Python) -> str:
    return assigned(inputs, language, " " * 8)


def _curve(program: CurveProgram, language: Python, signature: str) -> str:
    parts = curve_parts(program, language)
    symbols = [language.code(symbol) for symbol in needed(program.inputs)]
    kept = f"({', '.join(symbols)}{',' if len(symbols) == 1 else ''})"
    return filled(
        "python_curve", LOCAL=str(program.tested), KEYWORDS=signature,
        ASSIGNMENTS=f"{_assignments(program.inputs, language)}\n        self._values = {kept}".lstrip("\n"),
        UNPACK=f"        {kept} = self._values" if symbols else "",
        FACTORS=joined(parts["factors"], " " * 12), STIELTJES=language.code(program.stieltjes),
        RESIDUE=language.code(program.residue), PSI=language.code(program.psi), START=language.code(program.start),
        LEAVES=", ".join(parts["leaves"]), PAIRS=", ".join(parts["pairs"]), SHARES=", ".join(parts["shares"]),
    )


def _dyson(program: DysonProgram, language: Python, signature: str) -> str:
    return filled(
        "python_dyson", KEYWORDS=signature, ASSIGNMENTS=_assignments(program.inputs, language),
        **dyson_parts(program, language, " " * 12, 0),
    )
