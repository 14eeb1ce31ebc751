"""The tables that the wheel carries agree with versions.toml and with the pinned header."""

import re
import tomllib
from pathlib import Path

from tests.versions.files import HEADERS
from tools.version_sync import header, tables
from treadle.versions import history, known, library, tested
from treadle.versions.api_version import ApiVersion

TEXT = (HEADERS / "xla" / "pjrt" / "c" / "pjrt_c_api.h").read_text()


def test_the_table_of_slots_is_up_to_date():
    expected = tables.slots(header.read(HEADERS))
    assert Path(tables.SLOTS).read_text() == expected, "run ./bazelw run //tools/version_sync -- pins --fix"


def test_what_is_supported_is_what_versions_toml_says():
    """The file itself is compared by derived_test; this is how it is read."""
    pins = tomllib.loads(Path("versions.toml").read_text())
    known = tested.supported()
    assert list(known.pythons) == pins["python"]["versions"]
    assert set(known.tested["jaxlib"]) == {row["jaxlib"] for row in pins["jax"]["tested"]}
    assert known.pjrt == pins["xla_headers"]["pjrt_api"]
    for row in pins["jax"]["tested"]:
        assert row["jaxlib"] in known.accepted["jaxlib"]
        assert row["jax"] in known.accepted["jax"]
        assert known.is_tested("jaxlib", row["jaxlib"])
        for python in row["python"]:
            assert known.pair_for(python) is not None
    assert known.pair_for("3.11") == ("0.10.2", "0.10.2")
    assert known.pair_for("3.10") is None
    assert pins["llvmlite"]["version"] in known.accepted["llvmlite"]
    assert pins["llvmlite"]["below"] not in known.accepted["llvmlite"]
    assert not known.is_tested("jaxlib", pins["jax"]["below"])


def test_the_slots_are_those_of_the_header():
    # PJRT_Api's size is computed from its last function, which must be the table's last.
    last = re.search(r"PJRT_STRUCT_SIZE\(PJRT_Api, (\w+)\)", TEXT)
    slots = library.names()["slots"]
    assert last is not None
    assert slots[-1] == last[1]
    assert slots[0] == "PJRT_Error_Destroy"
    assert len(slots) == len(set(slots)) == TEXT.count("_PJRT_API_STRUCT_FIELD(") - 1  # one is the macro itself


def test_every_name_of_the_history_is_in_the_header():
    for names in history.ADDED.values():
        for name in names:
            struct, _, field = name.partition(".")
            assert re.search(rf"\b{struct}\b", TEXT), name
            if field:
                body = re.search(rf"struct {struct} \{{(.*?)\n\}}", TEXT, re.DOTALL)
                assert body is not None
                assert re.search(rf"\b{field};", body[1]), name


def test_the_history_ends_at_the_pinned_header():
    assert list(history.ADDED) == list(range(min(history.ADDED), max(history.ADDED) + 1))
    assert f"0.{max(history.ADDED)}" == tested.supported().pjrt
    added = history.between(ApiVersion(0, 115), ApiVersion(0, 112))
    assert added == {"0.113": history.ADDED[113], "0.114": history.ADDED[114], "0.115": None}
    assert history.between(ApiVersion(0, 115), ApiVersion(0, 115)) == {}


def test_slots_of_the_history_are_at_the_end_of_the_table():
    """Functions are only ever appended, so the newest ones are the last ones, in order."""
    slots = library.names()["slots"]
    added = [name for names in history.ADDED.values() for name in names if name in slots]
    # In one case two were added in one order and stand in the table in the other.
    assert set(slots[-len(added) :]) == set(added)


def test_every_tested_jaxlib_is_known():
    assert set(tested.supported().tested["jaxlib"]) <= set(known.table())
    assert known.release("0.12.0.1+local") == known.release("0.12.0.1")
    assert known.release("0.10.0") is None
