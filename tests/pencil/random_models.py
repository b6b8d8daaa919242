"""Random expressions for hypothesis: words with repeated and transposed letters, shared ends, nested copies."""

from __future__ import annotations

from fractions import Fraction
from functools import reduce
from itertools import pairwise

from hypothesis import strategies as st

from freeattn.model.expression import concatenate, diagonal, gaussian, identity, wigner
from freeattn.model.letters import copies, space

SPACES = (space("a", 2), space("b", 3), space("c", 2))
GROUPS = copies("groups", 2)
HEADS = copies("heads", 2, within=GROUPS)
OTHERS = copies("others", 3)
DIAGONALS = {
    place: [diagonal(f"{kind}{place}", place, values[:2], (1, place.size - 1))
            for kind, values in (("D", (-1, 2)), ("E", (Fraction(1, 2), 0)))]
    for place in SPACES
}


@st.composite
def words(draw, start, stop, per, longest=4, fixed=False):
    """A random word from `start` to `stop`: plain, repeated and transposed letters, some per copy, some `fixed`."""
    length = draw(st.integers(1, longest))
    path = [start, *(draw(st.sampled_from(SPACES)) for _ in range(length - 1)), stop]
    factors = []
    for left, right in pairwise(path):
        family = draw(st.sampled_from(per))
        mark = "" if family is None else family.name
        if fixed and left == right and draw(st.booleans()):
            factors.append(draw(st.sampled_from(DIAGONALS[left])))
        elif left == right and draw(st.booleans()):
            factors.append(wigner(f"S{left.name}{mark}", left, per=family))
        elif draw(st.booleans()):
            factors.append(gaussian(f"{left.name}{right.name}{mark}", left, right, per=family))
        else:
            factors.append(gaussian(f"{right.name}{left.name}{mark}", right, left, per=family).T)
    return reduce(lambda x, y: x @ y, factors)


@st.composite
def polynomials(draw, summed):
    """A random sum of words, with shared prefixes and suffixes, over copies when `summed`."""
    start, stop, middle = (draw(st.sampled_from(SPACES)) for _ in range(3))
    number = st.fractions(min_value=-2, max_value=2, max_denominator=3).filter(bool)
    total = draw(number) * draw(words(start, stop, (None,)))
    for _ in range(draw(st.integers(1, 2))):
        kind = draw(st.sampled_from(("plain", "nested", "others", "product"))) if summed else "plain"
        if kind == "plain":
            tail = draw(words(middle, stop, (None,), 2))
            for _ in range(2):
                total += draw(number) * draw(words(start, middle, (None,), 2)) @ tail
        elif kind == "nested":
            inner = HEADS.sum(draw(words(start, middle, (None, HEADS, GROUPS), 3)))
            total += draw(number) * GROUPS.sum(inner @ draw(words(middle, stop, (None, GROUPS), 2)))
        elif kind == "others":
            total += OTHERS.sum(draw(number) * draw(words(start, stop, (None, OTHERS))))
        else:
            left, right = draw(words(start, middle, (None, OTHERS), 2)), draw(words(middle, stop, (OTHERS,), 2))
            total += OTHERS.sum(left) @ OTHERS.sum(right)
    return total


NUMBERS = st.fractions(min_value=-2, max_value=2, max_denominator=3).filter(bool)


@st.composite
def squares(draw):
    """A random expression from one space to itself, with deterministic letters and a multiple of the identity."""
    place = draw(st.sampled_from(SPACES))
    total = draw(NUMBERS) * draw(words(place, place, (None,), 3, fixed=True))
    total += draw(st.integers(-1, 2)) * identity(place)
    if draw(st.booleans()):
        total += OTHERS.sum(draw(NUMBERS) * draw(words(place, place, (None, OTHERS), 3, fixed=True)))
    if draw(st.booleans()):
        total += draw(NUMBERS) * draw(words(place, place, (None,), 2, fixed=True)) @ total
    return total


@st.composite
def blocks(draw):
    """A random expression whose columns are a direct sum: parts side by side, of copies, or both; then perhaps more."""
    start, stop = draw(st.sampled_from(SPACES)), draw(st.sampled_from(SPACES))
    tail = (OTHERS, None)
    kind = draw(st.sampled_from(("two", "copies", "nested", "both")))
    if kind == "two":
        square = draw(words(start, start, (None,), 2)) + identity(start)
        total = concatenate(draw(words(start, stop, (None,), 3)), square)
        total += 2 * concatenate(draw(words(start, stop, (None,), 2)), draw(NUMBERS) * square)
    elif kind == "copies":
        total = OTHERS.concatenate(draw(words(start, stop, tail, 3)))
        total += draw(NUMBERS) * OTHERS.concatenate(draw(words(start, stop, tail, 2)))
    elif kind == "nested":
        total = HEADS.concatenate(draw(words(start, stop, (HEADS, GROUPS), 3)))
    else:
        inner = OTHERS.concatenate(draw(words(start, stop, tail, 2)))
        total = concatenate(inner, draw(words(start, stop, (None,), 3)))
    if draw(st.booleans()):
        total = total @ gaussian("Y", total.columns, draw(st.sampled_from((start, stop))))
    return draw(words(stop, start, (None,), 1)) @ total if draw(st.booleans()) else total
