"""What a start of JAX says about versions, and to whom. Each case is a Python process of its own."""

import os
import subprocess
import sys

import pytest

from tests.versions.files import MAJOR_1, MINOR_28
from treadle.versions import tested

DEVICES = "import jax; print(jax.devices()[0].device_kind)"


def python(code, *options, paths=(), **environment):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    search = os.pathsep.join([*map(str, paths), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, *options, "-c", code],
        env=kept | {"PYTHONPATH": search} | environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.fixture
def pretend(tmp_path):
    """Makes a folder that, first on the path, says that a package is installed in another version."""

    def call(package, version):
        info = tmp_path / f"{package}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
        return tmp_path

    return call


@pytest.mark.parametrize("platforms", ["treadle", ""])
def test_tested_versions_are_silent(platforms):
    done = python(DEVICES, "-W", "error", JAX_PLATFORMS=platforms)
    assert (done.stdout, done.stderr) == ("Treadle CPU\n", "")


def test_an_untested_version_is_warned_of_once_in_one_line(pretend):
    done = python(DEVICES, paths=[pretend("jaxlib", "0.13.0.dev20261101")], JAX_PLATFORMS="treadle")
    assert done.stdout == "Treadle CPU\n"
    (line,) = done.stderr.splitlines()
    what = f"jaxlib 0.13.0.dev20261101 (tested: {tested.supported().tested_text('jaxlib')})"
    assert line.startswith(f"treadle:1: UntestedVersionWarning: Treadle was not tested with {what}; ")


def test_several_untested_versions_are_one_line(pretend):
    """jax and jaxlib within their ranges but not among the tested releases, llvmlite outside of its range."""
    for package, version in (("jax", "0.12.0"), ("jaxlib", "0.11.1"), ("llvmlite", "0.51.0")):
        folder = pretend(package, version)
    done = python(DEVICES, paths=[folder], JAX_PLATFORMS="treadle")
    assert done.stdout == "Treadle CPU\n"
    (line,) = done.stderr.splitlines()
    for what in ("jax 0.12.0 (", "jaxlib 0.11.1 (", "llvmlite 0.51.0 (tested: >=0.45,<0.51)"):
        assert what in line


def test_the_default_backend_warns_too(pretend):
    done = python(DEVICES, paths=[pretend("jaxlib", "0.13.0")], JAX_PLATFORMS="")
    assert done.stdout == "Treadle CPU\n"
    assert done.stderr.count("UntestedVersionWarning") == 1


def test_users_of_jaxlibs_backend_never_see_it(pretend):
    folder = pretend("jaxlib", "0.13.0")
    done = python(DEVICES, "-W", "error", paths=[folder], JAX_PLATFORMS="cpu", TREADLE_PLUGIN_PATH=str(MAJOR_1))
    assert (done.stdout, done.stderr) == ("cpu\n", "")


def test_the_warning_can_be_silenced(pretend):
    folder = pretend("jaxlib", "0.13.0")
    code = (
        "import warnings; from treadle.versions.tested import UntestedVersionWarning;"
        "warnings.simplefilter('ignore', UntestedVersionWarning);" + DEVICES
    )
    done = python(code, paths=[folder], JAX_PLATFORMS="treadle")
    assert (done.stdout, done.stderr) == ("Treadle CPU\n", "")


def test_warnings_that_are_errors(pretend):
    folder = pretend("jaxlib", "0.13.0")
    asked = python(DEVICES, "-W", "error", paths=[folder], JAX_PLATFORMS="treadle")
    assert asked.returncode == 1
    assert "Treadle cannot be loaded: Treadle was not tested with jaxlib 0.13.0" in asked.stderr
    # Whoever did not ask for Treadle runs without it.
    done = python(DEVICES, "-W", "error", paths=[folder], JAX_PLATFORMS="")
    assert (done.stdout, done.stderr) == ("cpu\n", "")


@pytest.mark.parametrize(("plugin", "version"), [(MAJOR_1, "1.0"), (MINOR_28, "0.28")])
def test_a_plugin_that_jaxlib_refuses(plugin, version):
    asked = python(DEVICES, JAX_PLATFORMS="treadle", TREADLE_PLUGIN_PATH=str(plugin))
    assert asked.returncode == 1
    last = asked.stderr.splitlines()[-1]
    assert f"refuses {plugin}, which was built for PJRT {version} (INVALID_ARGUMENT: " in last
    assert "To get a pair that fits: pip install --force-reinstall treadle" in last
    done = python(DEVICES, "-W", "error", JAX_PLATFORMS="", TREADLE_PLUGIN_PATH=str(plugin))
    assert (done.stdout, done.stderr) == ("cpu\n", "")


def test_a_jaxlib_that_left_our_major_version():
    """The other side is at fault: the plugin is as built, and jaxlib refuses it."""
    code = """
import jax
from pathlib import Path
from treadle import plugin
error = RuntimeError("INVALID_ARGUMENT: Mismatched PJRT plugin PJRT API major version (0)")
print(plugin._refusal(plugin.library_path(), error))
"""
    done = python(code, JAX_PLATFORMS="cpu")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("To get a pair that fits: pip install 'jaxlib>=0.10.2,<0.13'.")
