"""Which PJRT a jaxlib speaks: measured, else from the table, else unknown, and why."""

import functools
from importlib import metadata
from pathlib import Path

import pytest

from tests.versions.files import MAJOR_1, PROBE, hostile
from treadle.versions import children, known, measure

JAXLIB = metadata.version("jaxlib")


def test_measured_is_what_the_table_says():
    found = measure.framework(JAXLIB)
    row = known.release(JAXLIB)
    assert row is not None
    assert (found.pjrt, found.source, found.note) == (row.pjrt, "measured", "")


def test_the_environments_row():
    environment = measure.environment()
    row = known.release(JAXLIB)
    assert row is not None
    assert environment.ffi == row.ffi
    assert environment.stablehlo == (row.stablehlo_current, row.stablehlo_minimum)


def test_a_plugin_that_jaxlib_refuses_measures_it_too():
    """jaxlib logs the versions before it judges them."""
    assert measure.framework(JAXLIB, probe=MAJOR_1).source == "measured"


@pytest.mark.parametrize(
    ("probe", "note"),
    [
        (hostile("crashing"), "crashed (SIGILL)"),
        (hostile("leaving"), "ended with code 0 and no answer"),
        (Path("/nonexistent/probe.so"), "/nonexistent/probe.so"),
    ],
)
def test_what_cannot_be_measured_is_in_the_table(probe, note):
    found = measure.framework(JAXLIB, probe=probe)
    row = known.release(JAXLIB)
    assert row is not None
    assert (found.pjrt, found.source) == (row.pjrt, "table")
    assert note in found.note


def test_a_child_that_hangs():
    found = measure.framework("0.10.2", probe=hostile("hanging"), timeout=3)
    assert (str(found.pjrt), found.source) == ("0.112", "table")
    assert "did not end within 3 s" in found.note


def test_neither_measured_nor_known(monkeypatch):
    monkeypatch.setattr(measure, "probe_path", functools.partial(Path, "/nonexistent/probe.so"))
    found = measure.framework("99.0")
    assert (found.pjrt, found.source) == (None, "unknown")


def test_without_a_probe_the_table_answers(monkeypatch):
    monkeypatch.setattr(measure, "probe_path", lambda: None)
    found = measure.framework("0.11.2")
    assert (str(found.pjrt), found.source) == ("0.115", "table")
    assert "treadle_probe.so is not there" in found.note


def test_no_jaxlib():
    assert measure.framework(None).note == "jaxlib is not installed"


def test_the_probe_is_found_where_it_was_built():
    assert measure.probe_path() == PROBE


def test_a_caller_that_silences_jaxlib_is_not_heard(monkeypatch):
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "3")
    assert measure.framework(JAXLIB).source == "measured"


def test_an_answer_that_is_no_object():
    # json's own command line: it fails, says so on stderr, and answers nothing.
    with pytest.raises(children.ChildError, match="no answer; its last words"):
        children.run("treadle.versions.no_such_module")
