"""Route S: a small algebra of laws whose transforms, equations, moments and atoms follow by rule."""

from freeattn.theory.transforms.convolutions import FreeProduct, FreeSum
from freeattn.theory.transforms.law import Law
from freeattn.theory.transforms.nodes import Discrete, FreePoisson, MarchenkoPastur, PointMass, Semicircle
from freeattn.theory.transforms.operations import CompoundFreePoisson, Dilation, Image

__all__ = [
    "CompoundFreePoisson",
    "Dilation",
    "Discrete",
    "FreePoisson",
    "FreeProduct",
    "FreeSum",
    "Image",
    "Law",
    "MarchenkoPastur",
    "PointMass",
    "Semicircle",
]
