"""Versions of C interfaces and of Python packages as numbers."""

import pytest

from tests.versions.files import HEADERS
from treadle.versions import releases
from treadle.versions.api_version import ApiVersion


def test_minor_versions_are_numbers_not_decimals():
    assert ApiVersion.parse("0.99") < ApiVersion.parse("0.114") < ApiVersion.parse("1.0")
    assert str(ApiVersion.parse("0.114")) == "0.114"


@pytest.mark.parametrize("text", ["", "0", "0.1.2", "0.x", "v0.1", "-1.2", "0.114 "])
def test_what_is_no_version_is_refused(text):
    with pytest.raises(ValueError, match="is no version"):
        ApiVersion.parse(text)


def test_a_headers_version():
    text = (HEADERS / "xla" / "pjrt" / "c" / "pjrt_c_api.h").read_text()
    # Found in another way: the line's last word.
    major, minor = (
        next(line.split()[-1] for line in text.splitlines() if line.startswith(f"#define PJRT_API_{part} "))
        for part in ("MAJOR", "MINOR")
    )
    assert str(ApiVersion.from_header(text, "PJRT_API")) == f"{major}.{minor}"


@pytest.mark.parametrize(
    "text",
    [
        "#define X_MAJOR 1",
        "#define X_MAJOR 1\n// #define X_MINOR 2",
        "#define X_MAJOR 1\n#define X_MINOR 2\n#define X_MINOR 3",
        "#define XX_MAJOR 1\n#define XX_MINOR 2",
    ],
)
def test_a_header_must_say_its_version_once(text):
    with pytest.raises(ValueError, match="not once"):
        ApiVersion.from_header(text, "X")


def test_the_order_of_releases():
    ordered = [
        "0.9.2",
        "0.10.2.dev5",
        "0.10.2rc1",
        "0.10.2",
        "0.10.10",
        "0.12.0",
        "0.12.0.1",
        "0.13.0.dev20260901",
        "1",
    ]
    keys = [releases.order(version) for version in ordered]
    assert keys == sorted(keys)
    assert releases.order("0.13") == releases.order("0.13.0")
    assert releases.order("0.12.0.1+cuda12") == releases.order("0.12.0.1")


@pytest.mark.parametrize(
    ("version", "is_within"),
    [
        ("0.10.2", True),
        ("0.12.99", True),
        ("0.10.1", False),
        ("0.10.2rc1", False),
        ("0.13", False),
        ("0.13.0", False),
        # pip does not take a pre-release of the bound either.
        ("0.13.0.dev20260901", False),
        ("0.13rc1", False),
    ],
)
def test_ranges(version, is_within):
    assert releases.is_within(version, "0.10.2", "0.13") is is_within


def test_an_open_range():
    assert releases.is_within("99", "2.0")
    assert not releases.is_within("1.26", "2.0")


def test_no_number():
    with pytest.raises(ValueError, match="no version of a Python package"):
        releases.order("unknown")
