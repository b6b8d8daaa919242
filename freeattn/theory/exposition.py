"""The derivation in words and equations: from the stages to the steps that a reader sees."""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sp

from freeattn.theory import formulas
from freeattn.theory import symbols as sym
from freeattn.theory.equivalent import GaussianEquivalent
from freeattn.theory.formulas import say
from freeattn.theory.law_names import LawNames
from freeattn.theory.layer import definition_of, equivalent_equations, matrix_of
from freeattn.theory.mean_one import ScalarEquation
from freeattn.theory.notation import Notation, latex_of, text_of
from freeattn.theory.stages import Stages
from freeattn.theory.steps import Equation, Piece, Step, Term, Vanishing, reference
from freeattn.theory.system import Parametrization

__all__ = ["steps_of"]

N = Notation
_MOMENTS = 3  # shown; any number can be asked for
_SHOWN_DIGITS = 15
_THETAS = (sym.THETA_1, sym.THETA_2, sym.C)


def steps_of(stages: Stages) -> tuple[Step, ...]:
    """The steps of a derivation, in the order in which they are read."""
    return tuple(_steps(stages))


def _steps(stages: Stages) -> Iterator[Step]:
    equivalent, scalar, curve = stages.equivalent, stages.scalar, stages.system.parametrization
    names = LawNames(stages.law, tied=equivalent is not None and equivalent.spec.tie.value == "key")
    if equivalent is not None:
        yield _layer(stages, equivalent)
        yield _equivalent(equivalent)
    yield _law(names)
    yield _transforms(stages, names)
    if scalar is None:
        yield _eliminated(stages)
    else:
        yield _mean_one(stages, scalar, names)
        yield _scalar(scalar, names)
        yield _stieltjes(scalar)
    yield _branch(stages)
    if curve is not None:
        yield _curve(curve, stages.mean)
    yield _atoms(stages)
    yield _moments(stages)
    if equivalent is not None:
        yield from _values(stages, equivalent)


# The model -------------------------------------------------------------------------------------------------------


def _layer(stages: Stages, equivalent: GaussianEquivalent) -> Step:
    symbols = [symbol for symbol, _ in stages.expression.values]
    return Step(
        "layer", "The layer",
        say("The law describes the squared singular values of the matrix {M}, that is, the {n} eigenvalues of {gram} "
            "for {n} tokens, in terms of the total widths over tokens.", gram=N(r"M M^{T}", "M Mᵀ")),
        (Equation("matrix", N("M", "M"), matrix_of(equivalent.spec)),
         *(Equation(f"definition-{s}", s, definition_of(s, equivalent)) for s in symbols)),
    )


def _equivalent(equivalent: GaussianEquivalent) -> Step:
    replacement, *thetas = equivalent_equations(equivalent)
    return Step(
        "equivalent", "The Gaussian equivalent",
        say("The score function enters through two numbers: in the limit each centered attention matrix may be "
            "replaced by a linear function of its scores {scores} and independent noise {noise}.",
            scores=N("S_r", "S_r"), noise=N("W_r", "W_r")),
        (Equation("equivalent", *replacement, sign=N(r"\leftrightarrow", "↔")),
         *(Equation(f"equivalent-{k}", *pair) for k, pair in enumerate(thetas, 1))),
    )


def _law(names: LawNames) -> Step:
    return Step(
        "law", "The law", say("The limiting law {nu} is written in the algebra of free convolutions."),
        formulas.law_equations(names),
    )


def _transforms(stages: Stages, names: LawNames) -> Step:
    found = [formulas.transform_of(t, names, f"transform-{k}") for k, t in enumerate(stages.transforms)]
    link = N(r"S(w)\,R\bigl(wS(w)\bigr)=1", "S(w)·R(w·S(w)) = 1")
    return Step(
        "transforms", "Transforms",
        say("Under {times} the transforms {S} multiply, under {plus} the transforms {R} add, and {link}; "
            "the parts have", link=link),
        tuple(equation for equation in found if equation is not None),
    )


# The scalar equation ---------------------------------------------------------------------------------------------


def _mean_one(stages: Stages, scalar: ScalarEquation, names: LawNames) -> Step:
    sentence = say("Divide the law by its mean {mean}")
    if stages.mean.has(sym.THETA_1):
        sentence += say(" and write {unit}, so that {theta} cancels", theta=sym.THETA_1,
                        unit=N(r"\theta_2=c\,\theta_1", "θ₂ = c·θ₁"))
    if scalar.base:
        name = formulas.at("S", formulas.hat(scalar.base[0], scalar, names), "w")
        which = N(f"S={name.latex}", f"S = {name.text}") if len(scalar.base) == 1 else N("S", "S")
        sentence += say("; the transform {which} is the root with {start} of the relation below",
                        which=which, start=N("S(0)=1", "S(0) = 1"))
    mean = Equation("mean", N(r"\bar m", "m̄"), sp.factor(stages.mean), main=True)
    return Step("mean-one", "Mean one", (*sentence, "."), (mean, *formulas.base_equations(scalar, names)))


def _scalar(scalar: ScalarEquation, names: LawNames) -> Step:
    return Step(
        "scalar", "The scalar equation",
        say("With {w} for the law of mean one, the definition of {S} reads {rule}, and the explicit factors collect "
            "in {Pi}.", w=N(r"w=\int \frac{x}{x+\lambda}\,d\nu", "w = ∫ x/(x+λ) dν"),
            rule=N(r"\lambda w\,S(-w)=1-w", "λ·w·S(−w) = 1 − w")),
        (formulas.root(scalar, names), formulas.product("product", scalar), formulas.polynomial("polynomial", scalar)),
    )


def _stieltjes(scalar: ScalarEquation) -> Step:
    return Step(
        "stieltjes", "The Stieltjes transform",
        say("In {scalar} put {at}: then {w} with {transform}, and {split}.",
            scalar=reference("the scalar equation", "polynomial"), at=N(r"\lambda=-z", "λ = −z"),
            w=N(r"w=1+zm", "w = 1 + z·m"), transform=N(r"m(z)=\int \frac{\nu(dx)}{x-z}", "m(z) = ∫ ν(dx)/(x − z)"),
            split=N(r"\Pi(-w)=-zm\,\Pi_1(-w)", "Π(−w) = −z·m·Π₁(−w)")),
        (formulas.rest("rest", scalar), formulas.stieltjes("stieltjes", scalar)),
    )


def _eliminated(stages: Stages) -> Step:
    polynomial = sp.Poly(stages.polynomial(normalized=False, general=True), sym.M)
    terms = tuple(Term(sp.Integer(1), a, sym.M**k) for (k,), a in polynomial.terms())
    return Step(
        "stieltjes", "The Stieltjes transform",
        say("Eliminating the parameter of the curve below leaves a polynomial equation for {m}."),
        (Vanishing("stieltjes", terms),),
    )


# Branch, curve, point masses, moments ----------------------------------------------------------------------------


def _branch(stages: Stages) -> Step:
    start = N(r"m\sim -1/z", "m ~ −1/z"), N(r"z=\infty", "z = ∞")
    if stages.scalar is not None:
        start = N(r"w\sim 1/\lambda", "w ~ 1/λ"), N(r"\lambda=\infty", "λ = ∞")
    sentence = say(
        "The law is the root that continues {start} from {infinity} with {sign} in the upper half-plane; the real axis "
        "is reached as a limit from there", start=start[0], infinity=start[1],
        sign=N(r"\operatorname{Im} m>0", "Im m > 0"),
    )
    upper = stages.branch.upper
    if upper is not None and stages.scalar is not None:
        interval = N(rf"0<w<{latex_of(upper)}", f"0 < w < {text_of(upper)}")
        sentence += say(". For {axis} it is the root with {interval}", axis=N(r"\lambda>0", "λ > 0"), interval=interval)
    if stages.branch.local is not None:
        sentence += say(
            ". A local test at {half}: each transform at a leaf of the law is evaluated in its domain, {sign}, and the "
            "arguments of the factors of {point}, see {curve}, not reduced by {turn}, add up to that of {inverse}",
            curve=reference("below", "curve-point"),
            half=N(r"\operatorname{Im} z<0", "Im z < 0"), sign=N(r"\operatorname{Im}\psi>0", "Im ψ > 0"),
            point=N("1/x(q)", "1/x(q)"), turn=N(r"2\pi", "2π"), inverse=N("1/z", "1/z"),
        )
    return Step("branch", "Which root", (*sentence, "."))


def _curve(curve: Parametrization, mean: sp.Expr) -> Step:
    return Step(
        "curve", "A rational parametrization",
        say("The law itself (not divided by its mean) is a rational curve: with the parameter {q}, the spectral point "
            "{z} and the Stieltjes transform {m} are rational, and ends of the support are critical values, {fold}, or "
            "poles of {m}.", q=sym.Q, z=N("z=x(q)", "z = x(q)"), m=N("m(q)", "m(q)"), fold=N("x'(q)=0", "x′(q) = 0")),
        formulas.curve_equations(curve, mean),
    )


def _atoms(stages: Stages) -> Step:
    equations = []
    for k, (location, weight) in enumerate(stages.atoms):
        left = N(rf"\nu(\{{{latex_of(location)}\}})", f"ν({{{text_of(location)}}})")
        equations.append(Equation(f"atom-{k}", left, weight))
    words = "The possible point masses are" if equations else "There is no point mass."
    return Step("atoms", "Point masses", (words,), tuple(equations))


def _moments(stages: Stages) -> Step:
    if stages.scalar is None:
        sentence: tuple[Piece, ...] = ("The first moments of the law are",)
        values = list(enumerate(stages.moments(_MOMENTS, general=True), 1))
    else:
        sentence = say("The law of mean one has the moments below; those of the law itself are {own}, "
                       "with {mean} from {equation}.", equation=reference("step Mean one", "mean"),
                       own=N(r"\bar m^k m_k", "m̄^k·m_k"))
        values = list(enumerate(stages.normalized_moments(_MOMENTS, general=True), 1))[1:]
    return Step("moments", "Moments", sentence, tuple(
        Equation(f"moment-{k}", sp.Symbol(f"m_{k}"), value) for k, value in values
    ))


# Values ----------------------------------------------------------------------------------------------------------


def _values(stages: Stages, equivalent: GaussianEquivalent) -> Iterator[Step]:
    symbols = [symbol for symbol, _ in stages.expression.values] + list(_THETAS)
    found = [_value(symbol, stages, equivalent) for symbol in symbols]
    equations = tuple(equation for equation in found if equation is not None)
    if equations:
        yield Step("values", "Values", ("For this layer",), equations)
    scalar = stages.specialized()
    if scalar is not None and scalar != stages.scalar:
        both = (reference("the scalar equation", "polynomial"), reference("the equation of m", "stieltjes"))
        kept = say(", {c} kept as a symbol", c=sym.C) if scalar.compact.has(sym.C) else ()
        yield Step(
            "specialized", "The equation in numbers",
            ("With these values", *kept, ", ", both[0], " and ", both[1], " are"),
            (formulas.product("product-numbers", scalar), formulas.polynomial("polynomial-numbers", scalar),
             formulas.rest("rest-numbers", scalar), formulas.stieltjes("stieltjes-numbers", scalar)),
        )


def _value(symbol: sp.Symbol, stages: Stages, equivalent: GaussianEquivalent) -> Equation | None:
    """symbol = value ≈ number; None where the value is the definition again, or unknown."""
    value, number = stages.value_of(symbol), stages.approximate(symbol)
    rounded = None if number is None or value.is_Rational else sp.N(number, _SHOWN_DIGITS)
    if value == symbol:
        return None if rounded is None else Equation(f"value-{symbol}", symbol, rounded)
    if value == definition_of(symbol, equivalent):
        return None
    return Equation(f"value-{symbol}", symbol, value, numeric=rounded)
