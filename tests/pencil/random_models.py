"""Random expressions for hypothesis: words with repeated and transposed letters, shared ends, nested copies."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise

from hypothesis import strategies as st

from freeattn.model.expression import gaussian, wigner
from freeattn.model.letters import copies, space

SPACES = (space("a", 2), space("b", 3), space("c", 2))
GROUPS = copies("groups", 2)
HEADS = copies("heads", 2, within=GROUPS)
OTHERS = copies("others", 3)


@st.composite
def words(draw, start, stop, per, longest=4):
    """A random word from `start` to `stop`: plain, repeated and transposed letters, some per copy."""
    length = draw(st.integers(1, longest))
    path = [start, *(draw(st.sampled_from(SPACES)) for _ in range(length - 1)), stop]
    factors = []
    for left, right in pairwise(path):
        family = draw(st.sampled_from(per))
        mark = "" if family is None else family.name
        if left == right and draw(st.booleans()):
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
