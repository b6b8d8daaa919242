"""How laws are written: a letter for every image, everything else in the algebra of free convolutions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import sympy as sp

from freeattn.theory.notation import Notation, latex_of, text_of
from freeattn.theory.transforms import (
    CompoundFreePoisson,
    Dilation,
    Discrete,
    FreePoisson,
    FreeProduct,
    FreeSum,
    Image,
    Law,
    MarchenkoPastur,
    PointMass,
    Semicircle,
)

__all__ = ["LawNames", "nodes_of"]


def nodes_of(law: Law) -> Iterator[Law]:
    """Every node of a law expression once, leaves first."""
    seen: set[Law] = set()

    def walk(node: Law) -> Iterator[Law]:
        for child in node.children:
            yield from walk(child)
        if node not in seen:
            seen.add(node)
            yield node

    yield from walk(law)


@dataclass(frozen=True)
class LawNames:
    """Names for the nodes of one law expression; images get a letter, everything else is written out.

    ρ_γ is the affine image of MP_{1/γ}; μ (μ_KV in an attention layer) is any other image. Letters are numbered when
    an expression needs the same one twice. A hat marks the law divided by its mean.
    """

    law: Law
    tied: bool = False

    @cached_property
    def images(self) -> dict[Law, Notation]:
        """The letter of every image in the expression."""
        found: dict[Law, Notation] = {}
        for node in nodes_of(self.law):
            if isinstance(node, Image):
                plain = self._letter(node)
                taken = sum(plain.latex in other.latex for other in found.values())
                mark = "'" * taken
                found[node] = Notation(_primed(plain.latex, mark), plain.text + mark)
        return found

    def _letter(self, image: Image) -> Notation:
        if len(image.coefficients) == 2 and isinstance(image.law, MarchenkoPastur):
            gamma = 1 / image.law.ratio
            return Notation(rf"\rho_{{{latex_of(gamma)}}}", f"ρ_{_index(gamma)}")
        return Notation(r"\mu_{\mathrm{KV}}", "μ_KV") if self.tied else Notation(r"\mu", "μ")

    def hat(self, image: Law) -> Notation:
        """The name of an image divided by its mean."""
        plain = self.images[image]
        letter, _, index = plain.latex.partition("_")
        return Notation(rf"\hat{{{letter}}}" + (f"_{index}" if index else ""), plain.text[0] + "̂" + plain.text[1:])

    def of(self, node: Law) -> Notation:
        """The law as it is written."""
        if isinstance(node, Image):
            return self.images.get(node) or self._letter(node)
        if isinstance(node, MarchenkoPastur):
            y = node.ratio
            return Notation(rf"\mathrm{{MP}}_{{{_flat(y)}}}", f"MP_{_index(y)}")
        if isinstance(node, FreePoisson):
            return Notation(rf"\pi_{{{_flat(node.rate)}}}", f"π_{_index(node.rate)}")
        if isinstance(node, Dilation):
            inner = self.of(node.law)
            head = rf"D_{{{_flat(node.factor)}}}", f"D_{_index(node.factor)}"
            return Notation(rf"{head[0]}\bigl({inner.latex}\bigr)", f"{head[1]}({inner.text})")
        if isinstance(node, CompoundFreePoisson):
            inner = self.of(node.law)
            return Notation(
                rf"\pi\bigl({inner.latex},{latex_of(node.rate)}\bigr)", f"π({inner.text}, {text_of(node.rate)})"
            )
        if isinstance(node, FreeProduct):
            return self._joined(node.factors, r" \boxtimes ", " ⊠ ")
        if isinstance(node, FreeSum):
            return self._joined(node.terms, r" \boxplus ", " ⊞ ")
        return _leaf(node)

    def _joined(self, parts: tuple[Law, ...], latex: str, text: str) -> Notation:
        names = [self.of(part) for part in parts]
        inner = [isinstance(part, (FreeProduct, FreeSum)) for part in parts]
        return Notation(
            latex.join(rf"\bigl({n.latex}\bigr)" if p else n.latex for n, p in zip(names, inner, strict=True)),
            text.join(f"({n.text})" if p else n.text for n, p in zip(names, inner, strict=True)),
        )


def _leaf(node: Law) -> Notation:
    if isinstance(node, PointMass):
        return Notation(rf"\delta_{{{latex_of(node.location)}}}", f"δ_{_index(node.location)}")
    if isinstance(node, Semicircle):
        return Notation(rf"\mathrm{{SC}}_{{{_flat(node.variance)}}}", f"SC_{_index(node.variance)}")
    if isinstance(node, Discrete):
        pairs = [(w, _leaf(PointMass(a))) for a, w in node.atoms()]
        return Notation(
            " + ".join(f"{latex_of(w)}\\,{d.latex}" for w, d in pairs),
            " + ".join(f"{text_of(w)}·{d.text}" for w, d in pairs),
        )
    name = type(node).__name__
    return Notation(rf"\mathrm{{{name}}}", name)


def _primed(latex: str, mark: str) -> str:
    return f"{{{latex}}}{mark}" if mark else latex


def _flat(value: sp.Expr) -> str:
    """A subscript on one line: 1/h instead of a fraction."""
    top, bottom = sp.fraction(value)
    if bottom == 1:
        return latex_of(value)
    name = latex_of(bottom)
    return f"{latex_of(top)}/{name}" if bottom.is_Symbol or bottom.is_Integer else f"{latex_of(top)}/({name})"


def _index(value: sp.Expr) -> str:
    text = text_of(value)
    return text if re.fullmatch(r"\w+", text) and "_" not in text else f"{{{text}}}"
