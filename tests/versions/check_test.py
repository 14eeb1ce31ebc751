"""`treadle versions` and `version_sync check`: facts, verdicts and exit codes.

What the environment holds is asked once; whatever else is foreign is loaded in a process of its own, as always.
"""

import dataclasses
import functools
import json
import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import jaxlib
import pytest

from tests.versions.files import HEADERS, MAJOR_1, MINOR_28, PLUGIN, command, hostile
from tools.version_sync import cli
from treadle.__main__ import main
from treadle.versions import check, children, known, library, measure, rules
from treadle.versions.api_version import ApiVersion

JAXLIB = metadata.version("jaxlib")
# Measured once with each release; the test holds what is installed here against its row.
SPEAKS = {
    "0.10.2": ("0.112", "0.3"),
    "0.11.0": ("0.114", "0.3"),
    "0.11.2": ("0.115", "0.4"),
    "0.12.0.1": ("0.116", "0.5"),
}


@pytest.fixture(scope="module")
def said():
    """What `treadle versions --json` says here."""
    return json.loads(command("treadle", "versions", "--json").stdout)


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs `treadle versions` in this process; the facts about the environment are kept from one call to the next."""
    monkeypatch.setattr(measure, "environment", kept_environment)
    monkeypatch.setattr(measure, "framework", kept_framework)

    def call(*arguments):
        code = main(["versions", *map(str, arguments)])
        return code, capsys.readouterr().out

    return call


kept_environment = functools.cache(measure.environment)
kept_framework = functools.cache(measure.framework)


def test_the_facts(said):
    facts = said
    pjrt, ffi = SPEAKS[JAXLIB]
    assert facts["schema"] == "treadle-check-1"
    assert known.table()[JAXLIB].pjrt == ApiVersion.parse(pjrt)
    assert facts["jaxlib"]["version"] == JAXLIB
    assert facts["jaxlib"]["pjrt"] == pjrt
    assert facts["jaxlib"]["pjrt_source"] == "measured"
    assert facts["jaxlib"]["ffi"] == ffi
    assert facts["plugin"]["path"] == str(PLUGIN)
    assert facts["python"]["version"] == ".".join(map(str, sys.version_info[:3]))
    for package in ("jax", "jaxlib", "llvmlite", "numpy", "ml_dtypes"):
        assert facts["packages"][package]["version"] == metadata.version(package)
        assert facts["packages"][package]["is_tested"]
    if pjrt == facts["plugin"]["pjrt"]:
        assert facts["between"] == {}
        assert (facts["verdict"], facts["findings"]) == ("compatible", [])
    else:
        assert facts["verdict"] == "skew"
        lower, upper = sorted(int(version.split(".")[1]) for version in (pjrt, facts["plugin"]["pjrt"]))
        assert list(facts["between"]) == [f"0.{minor}" for minor in range(lower + 1, upper + 1)]
        assert [finding["verdict"] for finding in facts["findings"]] == ["skew"]
        assert "is one of those that this Treadle is tested with" in facts["findings"][0]["action"]


def test_the_ffi_version_is_that_of_jaxlibs_header(said):
    header = Path(jaxlib.__file__).parent / "include" / "xla" / "ffi" / "api" / "c_api.h"
    words = header.read_text().split()
    numbers = [words[words.index(f"XLA_FFI_API_{part}") + 1] for part in ("MAJOR", "MINOR")]
    assert said["jaxlib"]["ffi"] == ".".join(numbers)


def test_the_plugin_is_read_whole(said):
    plugin = said["plugin"]
    text = (HEADERS / "xla" / "pjrt" / "c" / "pjrt_c_api.h").read_text()
    slots = text.count("_PJRT_API_STRUCT_FIELD(") - 1
    assert plugin["num_slots"] == slots
    assert plugin["struct_size"] == 40 + 8 * slots  # the head holds size, extensions and version
    assert plugin["missing"] == []
    assert "Shardings" in plugin["extensions"]
    assert plugin["attributes"]["xla_version"] == 2
    assert plugin["attributes"]["stablehlo_minimum_version"] == [0, 9, 0]


def test_the_checkouts_command_knows_the_pinned_headers():
    done = command("tools.version_sync", "check", "--json")
    facts = json.loads(done.stdout)
    assert done.returncode == facts["exit_code"] in (0, 3)
    assert facts["treadle"] == tomllib.loads(Path("versions.toml").read_text())["treadle"]["version"]
    assert facts["headers"]["folder"] == str(HEADERS)
    assert facts["headers"]["pjrt"] == facts["plugin"]["pjrt"] == facts["built_for"]["pjrt"]
    assert facts["headers"]["ffi"] == facts["built_for"]["ffi"]


def headers(folder: Path, minor: int) -> Path:
    for name, prefix in (("pjrt/c/pjrt_c_api.h", "PJRT_API"), ("ffi/api/c_api.h", "XLA_FFI_API")):
        path = folder / "xla" / name
        path.parent.mkdir(parents=True)
        path.write_text(f"#define {prefix}_MAJOR 0\n#define {prefix}_MINOR {minor}\n")
    return folder


def test_a_plugin_of_other_headers_is_stale(tmp_path):
    done = command("tools.version_sync", "check", "--headers", headers(tmp_path, 200))
    assert done.returncode == 3
    assert "was built with headers of PJRT 0.114, the pinned ones are 0.200" in done.stdout
    assert "do: build the plugin with `./bazelw build" in done.stdout


def test_headers_that_are_not_there(tmp_path):
    done = command("tools.version_sync", "check", "--json", "--headers", tmp_path)
    assert done.returncode == json.loads(done.stdout)["exit_code"] == 5
    assert str(tmp_path) in done.stderr
    assert "Traceback" not in done.stderr


def test_another_major_version(run):
    code, printed = run("--json", "--plugin", MAJOR_1)
    facts = json.loads(printed)
    assert code == facts["exit_code"] == 4
    assert facts["plugin"]["pjrt"] == "1.0"
    first = facts["findings"][0]
    assert first["verdict"] == "incompatible"
    assert "another major version, which jaxlib refuses" in first["text"]
    assert "pip install --force-reinstall treadle" in first["action"]


def test_a_minor_version_that_jaxlib_refuses(run):
    code, printed = run("--plugin", MINOR_28)
    assert code == 4
    assert "jaxlib refuses what is below 0.29" in printed


@pytest.mark.parametrize(("probe", "words"), [(MAJOR_1, "Mismatched PJRT plugin"), (MINOR_28, "minimum supported")])
def test_jaxlib_does_refuse_these(probe, words):
    """What the verdicts above say of jaxlib, asked of jaxlib itself."""
    code = f"""
from jaxlib import xla_client
xla_client.load_pjrt_plugin_dynamically("probe", {str(probe)!r})
xla_client.initialize_pjrt_plugin("probe")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert words in done.stderr


def test_functions_that_are_null_are_listed():
    missing = library.read(MAJOR_1).missing
    assert "PJRT_Client_Compile" in missing
    assert "PJRT_Client_Create" not in missing


@pytest.mark.parametrize(
    ("path", "code", "words"),
    [
        (Path("tests/versions/files.py"), 4, "cannot be loaded: "),
        (hostile("null"), 4, "its GetPjrtApi gives a null pointer"),
        (hostile("crashing"), 4, "crashed (SIGILL)"),
        (hostile("leaving"), 4, "ended with code 0 and no answer"),
        (Path("/nonexistent/plugin.so"), 5, "there is no file /nonexistent/plugin.so"),
    ],
)
def test_what_is_no_plugin(run, path, code, words):
    returned, printed = run("--plugin", path)
    assert returned == code
    assert words in printed
    assert str(path) in printed
    assert "do: build the plugin with" in printed


def test_a_library_without_the_symbol(run):
    library_file = Path(jaxlib.__file__).parent / "utils.so"
    code, printed = run("--json", "--plugin", library_file)
    assert code == 4
    assert json.loads(printed)["plugin"] == {"problem": f"{library_file} is a library without GetPjrtApi"}


def test_a_plugin_that_hangs():
    with pytest.raises(library.NoPluginError, match=re.escape("did not end within 1 s")):
        library.read(hostile("hanging"), timeout=1)


def test_the_default_plugin_is_missing(run, monkeypatch):
    monkeypatch.setenv("TREADLE_PLUGIN_PATH", "/nonexistent/plugin.so")
    code, printed = run()
    assert code == 5
    assert "TREADLE_PLUGIN_PATH is '/nonexistent/plugin.so', and there is no such file" in printed


def test_the_version_alone_is_read_in_this_process():
    assert library.api_version(MAJOR_1) == ApiVersion(1, 0)
    assert library.api_version(MINOR_28) == ApiVersion(0, 28)
    with pytest.raises(OSError, match=r"files\.py"):
        library.api_version(Path("tests/versions/files.py"))


def test_the_text(run):
    code, printed = run()
    lines = printed.splitlines()
    jaxlib_line = next(line for line in lines if line.startswith("jaxlib "))
    assert jaxlib_line.split()[:3] == ["jaxlib", JAXLIB, SPEAKS[JAXLIB][0]]
    assert jaxlib_line.endswith("measured")
    assert re.search(r"^(compatible|works with skew) \(exit code [03]\)$", printed, re.MULTILINE)
    assert code in (0, 3)


@pytest.mark.parametrize("main_function, name", [(main, "versions"), (cli.main, "check")])
def test_help_tells_the_exit_codes(capsys, main_function, name):
    with pytest.raises(SystemExit) as left:
        main_function([name, "--help"])
    assert left.value.code == 0
    printed = capsys.readouterr().out
    for line in ("0  compatible", "3  works with skew", "4  incompatible", "5  cannot tell"):
        assert line in printed


@pytest.mark.parametrize("arguments", [[], ["versions", "--no-such-option"]])
def test_wrong_usage(arguments):
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2


@pytest.mark.parametrize(
    ("python", "words"),
    [("/nonexistent/python", "cannot be started"), ("/bin/false", "ended with code 1 and no answer")],
)
def test_an_interpreter_that_does_not_answer(capsys, python, words):
    code = main(["versions", "--json", "--python", python])
    printed = capsys.readouterr()
    assert code == json.loads(printed.out)["exit_code"] == 5
    assert words in printed.err


def test_a_child_does_not_import_the_callers_folder(tmp_path, monkeypatch):
    (tmp_path / "json.py").write_text("raise SystemExit('the wrong json')")
    monkeypatch.chdir(tmp_path)
    assert children.run("treadle.versions.measure", "environment")[0]["python"].startswith("3.")


def test_an_environment_without_the_packages(tmp_path):
    """A bare virtual environment: nothing is installed, and each missing package comes with its pip command."""
    base = getattr(sys, "_base_executable", sys.executable)
    subprocess.run([base, "-m", "venv", "--without-pip", tmp_path], check=True)
    facts = json.loads(command("treadle", "versions", "--json", "--python", tmp_path / "bin" / "python").stdout)
    assert facts["exit_code"] == 5
    assert facts["jaxlib"] | {"pjrt_note": ""} == dict.fromkeys(facts["jaxlib"]) | {
        "pjrt_source": "unknown",
        "pjrt_note": "",
    }
    actions = {finding["action"] for finding in facts["findings"] if "is not installed" in finding["text"]}
    assert "pip install 'jaxlib>=0.10.2,<0.13'" in actions
    assert os.fspath(tmp_path) in facts["python"]["executable"]
    assert len([finding for finding in facts["findings"] if "jaxlib" in finding["text"]]) == 1
    names = command("treadle", "versions", "--private", "--json", "--python", tmp_path / "bin" / "python")
    (broken,) = json.loads(names.stdout)["broken"]
    assert (names.returncode, broken["problem"]) == (5, "jax and jaxlib are not installed")


def test_a_jaxlib_that_cannot_be_imported(tmp_path, monkeypatch):
    """The table knows its version's PJRT, and it works with nothing all the same."""
    package, metadata = tmp_path / "jaxlib", tmp_path / "jaxlib-0.12.0.1.dist-info"
    package.mkdir()
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: jaxlib\nVersion: 0.12.0.1\n")
    monkeypatch.setenv("PYTHONPATH", os.fspath(tmp_path))
    for error in ("ImportError", "RuntimeError"):
        (package / "__init__.py").write_text(f"raise {error}('half of it is missing')")
        found = measure.environment()
        assert (found.jaxlib, found.jaxlib_problem) == ("0.12.0.1", f"{error}: half of it is missing")
    ((code, text, action),) = findings(plugin(), dataclasses.replace(environment("0.11.0"), jaxlib_problem="E: no"))
    assert (code, text) == (4, "jaxlib 0.11.0 is installed and cannot be imported: E: no")
    assert action == "pip install --force-reinstall jaxlib==0.11.0"


def environment(jaxlib="0.12.0.1", python="3.13.0", **packages):
    installed = {"jax": jaxlib, "jaxlib": jaxlib, "llvmlite": "0.50.0", "numpy": "2.4", "ml_dtypes": "0.6.0"}
    return measure.Environment("python", python, installed | packages, ApiVersion(0, 5), ("1.22.0", "0.9.0"))


def plugin(pjrt="0.114", extensions=(), minimum=(0, 9, 0), current=(1, 17, 0)):
    attributes = {"stablehlo_minimum_version": [*minimum], "stablehlo_current_version": [*current]}
    return library.Plugin("plugin.so", ApiVersion.parse(pjrt), 1144, 138, (), extensions, attributes)


def findings(plugin, environment, pjrt="0.114"):
    """Code, text and action of each finding."""
    framework = measure.Framework(ApiVersion.parse(pjrt) if pjrt else None, "measured")
    found = [*rules.plugin_pairing(plugin, environment, framework, None), *rules.packages(environment)]
    return [(int(finding.verdict), finding.text, finding.action) for finding in found]


def test_all_is_well():
    assert findings(plugin(), environment("0.11.0")) == []


def test_an_older_jaxlib_lacks_what_the_plugin_has():
    ((code, text, action),) = findings(plugin(), environment("0.10.2", "3.11.7"), "0.113")
    assert code == 3
    assert "0.114 added PJRT_Buffer_Type_F6E2M3FN, PJRT_Buffer_Type_F6E3M2FN; jaxlib uses none of it" in text
    assert action == "nothing: jaxlib 0.10.2 is one of those that this Treadle is tested with"


def test_a_newer_jaxlib_that_nobody_tested():
    first, *others = findings(plugin(), environment("0.13.1"), "0.118")
    assert "what 0.115, 0.116, 0.117 and 0.118 added is unknown" in first[1]
    assert first[2].startswith("build with headers of PJRT 0.118")
    assert [(code, action) for code, _, action in others] == [
        (3, "pip install 'jax>=0.10.2,<0.13'"),
        (3, "pip install 'jaxlib>=0.10.2,<0.13'"),
    ]


def test_within_the_range_but_not_tested():
    for code, text, action in findings(plugin(), environment("0.11.1", "3.12.1")):
        assert code == 3
        assert "0.11.1 is within >=0.10.2,<0.13, but was not tested; 0.10.2, 0.11.0 and 0.12.0.1 were" in text
        assert action == "nothing, or pip install jax==0.12.0.1 jaxlib==0.12.0.1"


def test_other_packages_and_pythons():
    found = findings(plugin(), environment("0.11.0", "3.14.0", llvmlite="0.44.0", numpy=None))
    assert [(code, text) for code, text, _ in found] == [
        (3, "Python 3.14.0 is outside 3.11 - 3.13"),
        (3, "llvmlite 0.44.0 is outside >=0.45,<0.51"),
        (5, "numpy is not installed"),
    ]


def test_the_other_side_has_another_major_version():
    first, *_ = findings(plugin(), environment("0.12.0.1"), "1.3")
    assert first[0] == 4
    assert first[2] == "pip install 'jaxlib>=0.10.2,<0.13'"  # the plugin is this Treadle's, so jaxlib is to be replaced


def test_stablehlo_versions_that_do_not_meet():
    (found,) = findings(plugin(minimum=(1, 23, 0), current=(1, 30, 0)), environment("0.11.0"))
    assert found[:2] == (4, "jaxlib writes StableHLO 1.22.0, the plugin reads from 1.23.0 on")
    (found,) = findings(plugin(minimum=(0, 1, 0), current=(0, 8, 9)), environment("0.11.0"))
    assert found[:2] == (4, "the plugin reads StableHLO up to 0.8.9, jaxlib writes from 0.9.0 on")


def test_the_ffi_matters_to_a_plugin_that_offers_it():
    (found,) = findings(plugin(extensions=("Layouts", "FFI")), environment("0.11.0"))
    assert found[:2] == (3, "the plugin's FFI extension is XLA FFI 0.3, jaxlib's handlers are built for 0.5")


@pytest.mark.parametrize(("verdicts", "worst"), [((), 0), ((3, 5), 5), ((5, 4, 3), 4), ((3,), 3)])
def test_the_worst_finding_is_the_verdict(verdicts, worst):
    found = tuple(rules.Finding(rules.Verdict(verdict), "") for verdict in verdicts)
    framework = measure.Framework(None, "unknown")
    assert int(check.Report("", environment(), framework, None, "", None, found).verdict) == worst
