"""The checked-in support matrix: the page is made from the answer, and the answer covers versions.toml."""

from __future__ import annotations

import tomllib
from pathlib import Path

from tools.version_sync import support_matrix

ROOT = Path.cwd()
PINS = tomllib.loads((ROOT / "versions.toml").read_text())


def test_the_page_is_made_from_the_answer():
    answer = support_matrix.load(ROOT)
    assert answer is not None
    assert (ROOT / support_matrix.PAGE).read_text() == support_matrix.page(answer)
    for row in answer["rows"]:
        assert f"| {row['jaxlib']} | {row['jax']} | {row['python']} |" in support_matrix.page(answer)


def test_every_supported_jaxlib_was_tried():
    answer = support_matrix.load(ROOT)
    assert answer is not None
    assert support_matrix.gaps(answer, PINS) == []
    pins = PINS | {"jax": PINS["jax"] | {"matrix": [*PINS["jax"]["matrix"], "0.99"]}}
    (problem,) = support_matrix.gaps(answer, pins)
    assert problem.startswith("docs/support_matrix.json has no row for jaxlib 0.99; run ")
    pins = PINS | {"xla_headers": PINS["xla_headers"] | {"pjrt_api": "0.200"}}
    (problem,) = support_matrix.gaps(answer, pins)
    assert "is not about the pinned headers, PJRT 0.200" in problem


def test_a_page_says_what_fails_and_what_was_not_run():
    row = {
        "header": {"pjrt_api": "0.115", "ffi_api": "0.4", "origin": "given"},
        "jaxlib": "9.9",
        "jax": "9.9",
        "python": "3.13",
        "pjrt": None,
        "pjrt_source": None,
        "verdict": None,
        "private": None,
        "programs": [{"name": "scan", "ok": False, "problem": "wrong", "seconds": 1}],
        "problems": ["scan: wrong"],
        "seconds": 3,
    }
    answer = {
        "treadle": "0.1.0",
        "date": "2026-01-01",
        "machine": "Linux",
        "rows": [row],
        "not_run": ["jaxlib 9.8: no Python for it"],
        "nightly": "not run: no index",
    }
    page = support_matrix.page(answer)
    assert "| 0.115* | 9.9 | 9.9 | 3.13 | ? | ? | ? | 0 of 1 | - | FAILS |" in page
    assert "- headers 0.115, jaxlib 9.9: scan: wrong" in page
    assert "- not run: jaxlib 9.8: no Python for it" in page
    assert "\\* headers 0.115: given" in page
    text = support_matrix.to_text(answer)
    assert "FAILS" in text
    assert "headers 0.115, jaxlib 9.9: scan: wrong" in text
