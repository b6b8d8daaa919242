"""A reader of LaTeX formulas that shares nothing with what writes them: by the rules of mathematical print.

It reads sums, products by juxtaposition, fractions, roots, powers, minima, matrices, and functions at an argument. A
symbol directly before a plain parenthesis is a function; before \\left( or \\bigl( it is a factor.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import sympy as sp

TOKEN = re.compile(
    r"\s+|\\[,;!:]|\\\s|\\(?:left|right|bigl|bigr|Bigl|Bigr|displaystyle)(?![a-zA-Z])"  # spacing, sizes (dropped below)
    r"|(?P<number>\d+(?:\.\d+)?)|(?P<command>\\[a-zA-Z]+|\\[{}])|(?P<letter>[a-zA-Z])|(?P<sign>[-+*/^_(){}=,\[\]|<>:'&])"
)
SIZED = re.compile(r"\\(?:left|bigl|Bigl)\s*\(")
GREEK = {"gamma", "theta", "lambda", "beta", "psi", "Pi", "rho", "mu", "nu", "Sigma", "sigma", "eta", "pi", "alpha"}

SIGNS = {r"\surd": "√", r"\circ": "°"}  # in names
SUPERSCRIPTS, SUBSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹", "₀₁₂₃₄₅₆₇₈₉"
LETTERS = {
    "β": "beta", "γ": "gamma", "θ": "theta", "λ": "lambda_", "ψ": "psi", "Π": "Pi", "ρ": "rho", "σ": "sigma",
}


class ReadError(ValueError):
    """Not a formula."""


def displays(document: str) -> list[str]:
    """Every displayed formula of a document, in order, on one line each."""
    found = []
    environment = r"\\begin\{equation\*?\}(?:\\label\{[^}]*\})?\s*(.*?)\s*\\end\{equation\*?\}"
    for body in re.findall(environment, document, re.DOTALL):
        whole = re.sub(r"\\(?:begin|end)\{split\}", "", body)
        if body.startswith(r"\begin{split}"):
            whole = re.sub(r"\\\\\s*&\\quad|&", " ", whole)
        found += [" ".join(part.split()) for part in re.split(r",\\qquad ", whole)]
    return found


def sides(formula: str) -> list[str]:
    """A chain of equalities at its = and ≈ outside braces and brackets."""
    parts, depth, current, at = [], 0, "", 0
    while at < len(formula):
        if formula.startswith(r"\approx", at) and depth == 0:
            parts.append(current)
            current, at = "", at + len(r"\approx")
            continue
        character = formula[at]
        depth += {"{": 1, "}": -1, "(": 1, ")": -1}.get(character, 0)
        if character == "=" and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += character
        at += 1
    return [part.strip() for part in [*parts, current]]


class Reader:
    """Recursive descent over the tokens of one formula."""

    def __init__(self, latex: str) -> None:
        marked = SIZED.sub("@", latex)  # a parenthesis of its own size is never an argument
        self.tokens: list[str] = []
        at = 0
        while at < len(marked):
            if marked[at] == "@":
                self.tokens.append("@")
                at += 1
                continue
            match = TOKEN.match(marked, at)
            if not match:
                raise ReadError(f"{marked[at:at + 20]!r} in {latex!r}")
            if match.lastgroup:
                self.tokens.append(match[0])
            at = match.end()
        self.at = 0

    def read(self) -> sp.Expr:
        value = self.sum()
        if self.at != len(self.tokens):
            raise ReadError(f"left over: {self.tokens[self.at:]}")
        return value

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, expected: str = "") -> str:
        token = self.peek()
        if not token or (expected and token != expected):
            raise ReadError(f"expected {expected!r}, found {token!r} at {self.at} of {self.tokens}")
        self.at += 1
        return token

    def sum(self) -> sp.Expr:
        total = sp.S.Zero
        sign = 1
        if self.peek() in "+-" and self.peek():
            sign = -1 if self.take() == "-" else 1
        total += sign * self.product()
        while self.peek() and self.peek() in "+-":
            sign = -1 if self.take() == "-" else 1
            total += sign * self.product()
        return total

    def product(self) -> sp.Expr:
        value = self.power()
        while self.peek() not in ("", "+", "-", ")", "}", r"\}", ",", "=", "&", "]", r"\end", "\\\\"):
            if self.peek() == "/":
                self.take()
                value = value / self.power()
                continue
            if self.peek() in (r"\cdot", r"\times"):
                self.take()
            value = value * self.power()
        return value

    def power(self) -> sp.Expr:
        base = self.atom()
        if self.peek() == "^":
            self.take()
            exponent = self.group()
            return sp.exp(exponent) if base == sp.E else base**exponent
        return base

    def group(self) -> sp.Expr:
        """An argument of a command: braces, or one token."""
        if self.peek() != "{":
            return self.atom()
        self.take("{")
        value = self.sum()
        self.take("}")
        return value

    def atom(self) -> sp.Expr:
        token = self.take()
        if token[0].isdigit():
            return sp.Rational(token)
        if token in ("(", "@", "{"):
            value = self.sum()
            self.take("}" if token == "{" else ")")
            return value
        if token == r"\frac":
            top = self.group()
            return top / self.group()
        if token == r"\sqrt":
            return sp.sqrt(self.group())
        if token == r"\min":
            self.take(r"\{")
            arguments = [self.sum()]
            while self.peek() == ",":
                self.take()
                arguments.append(self.sum())
            self.take(r"\}")
            return sp.Min(*arguments)
        if token == r"\mathrm":
            return self.symbol("".join(self.letters()))
        if token == r"\pi" and self.peek() != "_":
            return sp.pi
        name = token[1:] if token.startswith("\\") else token
        if not (len(name) == 1 and name.isalpha()) and name not in GREEK:
            raise ReadError(f"unknown {token!r}")
        if token == "e" and self.peek() != "_":
            return sp.E
        return self.symbol(name)

    def letters(self) -> list[str]:
        """The letters of a name in roman type."""
        self.take("{")
        found = []
        while self.peek() != "}":
            found.append(self.take())
        self.take("}")
        return found

    def symbol(self, name: str) -> sp.Expr:
        if self.peek() == "_":
            self.take()
            name += "_" + self.index()
        if self.tokens[self.at : self.at + 3] == ["{", "}", "^"]:  # a mark above the index
            self.at += 3
            name += "_across_" + self.index()
        if self.peek() == "(":  # a function at an argument
            self.take("(")
            argument = self.sum()
            self.take(")")
            return sp.Function(name)(argument)
        return sp.Symbol(name)

    def index(self) -> str:
        """A subscript as a name: parts joined by underscores, roman type and spacing ignored."""
        if self.peek() != "{":
            return self.take().lstrip("\\")
        depth, parts = 0, []
        while True:
            token = self.take()
            depth += {"{": 1, "}": -1}.get(token, 0)
            if token == ",":
                parts.append("_")
            elif token in SIGNS:
                parts.append(SIGNS[token])
            elif token not in ("{", "}", r"\mathrm", "_", "^"):
                parts.append(token.lstrip("\\"))
            if depth == 0:
                return "".join(parts)


def read(latex: str) -> sp.Expr:
    """The expression that a formula without = stands for, in symbols without assumptions."""
    return Reader(latex).read()


def read_matrix(latex: str) -> sp.Matrix:
    """A matrix in parentheses, or a single entry."""
    match = re.fullmatch(
        r"\\left\(\\begin\{(?:small)?matrix\}(.*)\\end\{(?:small)?matrix\}\\right\)", latex.strip(), re.DOTALL
    )
    if not match:
        return sp.Matrix([[read(latex)]])
    return sp.Matrix([[read(cell) for cell in row.split("&")] for row in match[1].split(r"\\")])


def read_text(text: str) -> sp.Expr:
    """The same for plain text: · is a product, −, superscripts, √ and Greek letters as they stand."""
    code = text.replace("·", "*").replace("−", "-").replace("^", "**")
    code = re.sub(rf"[{SUPERSCRIPTS}]+", lambda m: "**" + "".join(str(SUPERSCRIPTS.index(c)) for c in m[0]), code)
    code = re.sub(rf"[{SUBSCRIPTS}]+", lambda m: "_" + "".join(str(SUBSCRIPTS.index(c)) for c in m[0]), code)
    code = re.sub(r"Π(_1)?\(-w\)|(ψ|x_0|x|m)\(q\)", lambda m: (f"Π{m[1] or ''}" if m[0][0] == "Π" else m[2]), code)
    code = re.sub(r"√(?=\()", "sqrt", code)
    code = re.sub(r"min\{(.*?)\}", r"Min(\1)", code)
    code = re.sub(r"\)(\*\*\d+)?\(", lambda m: f"){m[1] or ''}*(", code)
    names: dict[str, sp.Basic] = {"sqrt": sp.sqrt, "Min": sp.Min, "exp": sp.exp, "e": sp.E, "π": sp.pi}

    def named(match: re.Match[str]) -> str:
        if match[0] in names:
            return match[0]
        key, name = f"v{len(names)}", re.sub("[α-ωΠ]", lambda m: LETTERS[m[0]], match[0]).replace("lambda__", "lambda_")
        names[key] = sp.Symbol(name.removesuffix("_"))
        return key

    code = re.sub(r"[^\W\d][\w°√]*|√\w+", named, code)
    code = re.sub(r"(?<![\w.])(\d+)(?![\w.])", r"Integer(\1)", code)
    return eval(code, {"Integer": sp.Integer, "__builtins__": {}}, names)


def plain(expression: sp.Expr) -> sp.Expr:
    """The expression in symbols without assumptions, as the reader makes them."""
    return expression.xreplace({s: sp.Symbol(s.name) for s in expression.free_symbols})


@dataclass(frozen=True)
class ReadTerm:
    """One term of a polynomial in letters: coefficient, and in order ("sum", family) or (letter, transposed)."""

    coefficient: sp.Expr
    pieces: tuple[tuple[str, str | bool], ...]


def letter_of(latex: str) -> tuple[str, bool] | None:
    """(name, transposed) of a letter: one capital, with marks above or below; None for what is none."""
    transposed = re.fullmatch(r"\{(.*)\}\^\{T\}", latex)
    inner = (transposed[1] if transposed else latex).replace(r"\circ", "°").replace(r"\surd ", "√")
    name = re.sub(r"[{}^_]", "", inner)
    return (name, bool(transposed)) if re.fullmatch(r"√?[A-Z][A-Z]*°?\d*°?", name) else None


def read_words(latex: str) -> list[ReadTerm]:
    """A sum of products of letters; factors stand between thin spaces, a sum over copies binds all that follows."""
    terms = []
    for sign, body in re.findall(r"(?:^|(?<= ))([+-]?) ?((?:(?! [+-] ).)+)", latex):
        coefficient, pieces = sp.Integer(-1 if sign == "-" else 1), []
        for piece in body.strip().split(r"\,"):
            family = re.fullmatch(r"\\sum_\{\\mathrm\{(.*)\}\}", piece)
            letter = letter_of(piece)
            if family:
                pieces.append(("sum", family[1]))
            elif letter:
                pieces.append(letter)
            else:
                coefficient *= read(piece)
        terms.append(ReadTerm(coefficient, tuple(pieces)))
    return terms


def read_blocks(latex: str) -> list[list[tuple[sp.Expr, tuple[str, bool] | None]]]:
    """A matrix of blocks: (factor, letter), the letter None for multiples of the identity; dots are zero."""
    match = re.fullmatch(r"\\left\(\\begin\{(?:small)?matrix\}(.*)\\end\{(?:small)?matrix\}\\right\)", latex, re.DOTALL)
    if not match:
        raise ReadError(f"no matrix: {latex!r}")
    return [[_block(cell.strip()) for cell in row.split("&")] for row in match[1].split(r"\\")]


def _block(cell: str) -> tuple[sp.Expr, tuple[str, bool] | None]:
    if cell == r"\cdot":
        return sp.S.Zero, None
    transposed = re.fullmatch(r"\{(.*)\}\^\{T\}", cell)
    parts = re.fullmatch(r"(-?)(c_\{\d+\})?(.*)", transposed[1] if transposed else cell)
    assert parts is not None  # every part is optional
    name = parts[3] if not transposed else rf"{{{parts[3]}}}^{{T}}"
    letter = letter_of(name)
    if letter is None:
        return read(cell), None
    return (-1 if parts[1] else 1) * (read(parts[2]) if parts[2] else sp.S.One), letter
