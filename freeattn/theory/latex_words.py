"""Plain words with formulas in Unicode, such as the statement of an assumption, as LaTeX text."""

from __future__ import annotations

import re

__all__ = ["latex_name", "latex_words"]

_MATH = {
    "α": r"\alpha", "β": r"\beta", "γ": r"\gamma", "δ": r"\delta", "η": r"\eta", "θ": r"\theta", "κ": r"\kappa",
    "λ": r"\lambda", "μ": r"\mu", "ν": r"\nu", "π": r"\pi", "ρ": r"\rho", "σ": r"\sigma", "φ": r"\varphi", "χ": r"\chi",
    "ψ": r"\psi", "ζ": r"\zeta", "Π": r"\Pi", "Σ": r"\Sigma", "∞": r"\infty", "≤": r"\le", "≥": r"\ge", "→": r"\to",
    "↔": r"\leftrightarrow", "⊠": r"\boxtimes", "⊞": r"\boxplus", "√": r"\surd", "∫": r"\int", "·": r"\cdot", "−": "-",
    "⊥": r"\perp", "ᵀ": "^{T}", "∼": r"\sim", "~": r"\sim", "<": "<", ">": ">", "=": "=", "…": r"\dots",
    "×": r"\times", "°": r"^{\circ}", "‖": r"\|",
    **{character: f"^{{{k}}}" for k, character in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
    **{character: f"_{{{k}}}" for k, character in enumerate("₀₁₂₃₄₅₆₇₈₉")},
}
_ESCAPED = {**{character: rf"\{character}" for character in "&%$#_{}"}, "^": r"\^{}", "\\": r"\textbackslash{}"}
_IN_NAMES = {  # in math mode; signs that a name must not turn into operations, scripts or nothing
    "_": r"\_", "\\": r"\backslash ", "^": r"\wedge ", "~": r"\sim ", "-": r"\text{-}", " ": r"\ ",
    **{character: rf"\{character}" for character in "&%$#{}"},
}
_SCRIPTS = re.compile(r"\^(?:\{\w+\}|\{\\circ\})")  # what stands above; below would look like an index
_LETTER = re.compile(r"\\\w+")
_NAME = re.compile(r"[a-z]+(?:_[a-z]+)+")  # n_tokens, d_model, n_kv_heads
_SINGLE = re.compile(r"(?<== )(I)\b|(?<![A-Za-z0-9_'])[A-Z](?:_[A-Za-z])?(?=[\s,;)ᵀ/]|$)")  # X, W_r; = I
_WORDS = ("A", "I")  # capital letters that are words


def latex_words(words: str) -> str:
    """The words with names in typewriter type, single capital letters and Unicode symbols in math mode."""
    pieces, at = [], 0
    while at < len(words):
        name = _NAME.match(words, at)
        single = _SINGLE.match(words, at)
        if name:
            pieces.append(rf"\texttt{{{name[0].replace('_', chr(92) + '_')}}}")
            at = name.end()
        elif single and (single[0] not in _WORDS or single[1]):
            pieces.append(f"${single[0]}$")
            at = single.end()
        else:
            pieces.append(_character(words[at]))
            at += 1
    return "".join(pieces).replace("$$", "")


def latex_name(name: str) -> str:
    """A name letter for letter in math mode, such that different names look different.

    A character that LaTeX has no command for is its number, [U+4E2D]; so are signs that look like others, such as x₂.
    """
    pieces: list[str] = []
    for piece in map(_in_name, name):
        bare = piece.startswith("^") and (not pieces or pieces[-1].startswith("^"))  # on nothing, or on a script
        pieces.append("{}" + piece if bare else piece)
    return "".join(pieces)


def _in_name(character: str) -> str:
    if character in _IN_NAMES:
        return _IN_NAMES[character]
    if character.isascii() and character.isprintable():
        return character
    written = _MATH.get(character, "")
    usual = _SCRIPTS.fullmatch(written) or (_LETTER.fullmatch(written) and character != "∼")
    return f"{written} " if usual else f"[U+{ord(character):04X}]"


def _character(character: str) -> str:
    if character in _MATH:
        return f"${_MATH[character]}$"
    if character in _ESCAPED:
        return _ESCAPED[character]
    return character if character.isascii() else f"[U+{ord(character):04X}]"
