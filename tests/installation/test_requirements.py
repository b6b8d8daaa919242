"""Requirements as the metadata of a package state them, and the versions that they allow."""

import pytest

from freeattn.installation.requirements import Requirement, declared_requirements, extra_names, parsed_requirements

LINES = [
    "numpy>=2.0", "mpmath<1.5,>=1.3", "scipy (>=1.13)", "click", 'matplotlib>=3.10; extra == "plot"',
    "dask[distributed]>=2024.8; extra == 'dask'", 'freeattn[plot]; extra == "docs"', 'sphinx>=8.1; extra == "docs"',
    'freeattn[docs,dask]; extra == "all"',
]


def test_the_package_itself():
    assert parsed_requirements(LINES) == [
        Requirement("numpy", ">=2.0", None), Requirement("mpmath", "<1.5,>=1.3", None),
        Requirement("scipy", ">=1.13", None), Requirement("click", "", None),
    ]


def test_extras_follow_one_another():
    assert [one.name for one in parsed_requirements(LINES, "docs")] == ["matplotlib", "sphinx"]
    assert [one.name for one in parsed_requirements(LINES, "all")] == ["matplotlib", "sphinx", "dask"]
    assert {one.extra for one in parsed_requirements(LINES, "all")} == {"all"}


@pytest.mark.parametrize(
    ("versions", "version", "allowed"),
    [
        (">=2.0", "2.0", True), (">=2.0", "2", True), (">=2.0", "1.26.4", False), (">=2.0", "10.1", True),
        ("<1.5,>=1.3", "1.3.0", True), ("<1.5,>=1.3", "1.5.0", False), (">=2.1", "2.13.0+cpu", True), ("", "0.1", True),
        ("!=3.6.0,>=3.6", "3.6", False), (">=2025.7", "2025.12.19", True),
    ],
)
def test_versions(versions, version, allowed):
    assert Requirement("library", versions, None).allows(version) is allowed


def test_the_declared_ones_are_read():
    assert "numpy" in [one.name for one in declared_requirements()]
    for extra in extra_names():
        assert declared_requirements(extra), extra
