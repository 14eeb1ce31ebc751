"""Treadle's own tests, under the jaxlib under test."""

from __future__ import annotations

from typing import NamedTuple

from tools.nightly.engine import Findings, Run
from tools.nightly.options import Options
from tools.nightly.process import Words
from tools.nightly.pytest_run import breaks, pytest

TEST_TIMEOUT = 1200  # seconds for one test


class Group(NamedTuple):
    """Tests that run in one pytest."""

    name: str
    paths: tuple[str, ...]
    timeout: float
    variables: tuple[tuple[str, str], ...] = ()


# All that touches JAX or jaxlib; the compiler's inner passes do not. Folders that mark a quick subset run that alone.
GROUPS = (
    Group("registration", ("tests/plugin_registration",), 600),
    Group("frontend", ("tests/compiler/frontend",), 600),
    Group("capi", ("tests/capi",), 600),
    Group("execution", ("tests/execution", "tests/conform"), 600),
    Group("ops", ("tests/ops",), 3600),
    Group("ops-x64", ("tests/ops/table_test.py",), 3600, (("JAX_ENABLE_X64", "1"),)),
)

# Run with the others when a failing test is to be injected.
INJECTED = Group("injected", (), 300)
INJECTED_TEST = '''"""Injected by tools/nightly --inject test: it expects a wrong sum, so it must fail."""

import jax
import jax.numpy as jnp
import numpy as np


def test_injected_wrong_value():
    done = jax.jit(lambda x: x + 1)(jnp.arange(4.0))
    np.testing.assert_allclose(done, [1.0, 2.0, 3.0, 5.0])
'''


class ProjectTests:
    """Runs a group, in a process of its own."""

    needs = ("environment", "build")

    def __init__(self, options: Options, group: Group) -> None:
        self.options = options
        self.group = group
        self.name = f"tests-{group.name}"
        self.title = f"running Treadle's tests of {group.name}"

    def run(self, run: Run) -> Findings:
        arguments: Words = ["-c", run.root / "pyproject.toml", f"--rootdir={run.root}", "--durations=5"]
        # A process of pytest-xdist's can crash and be replaced. A slow machine is no finding.
        arguments += [f"-n{self.options.workers}", f"--timeout={TEST_TIMEOUT}", "-o", "faulthandler_timeout=0"]
        variables = {**treadle_variables(run), "TREADLE_TEST_QUICK": "1", **dict(self.group.variables)}
        report = pytest(
            run, [*arguments, *self._paths(run)], timeout=self.group.timeout, variables=variables, cwd=run.root
        )
        return Findings(breaks=[*report.trouble, *breaks(report.failures)], facts={"tests": report.counts()})

    def _paths(self, run: Run) -> tuple[str, ...]:
        if self.group is not INJECTED:
            return self.group.paths
        file = run.folder / "injected" / "injected_test.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(INJECTED_TEST)
        return (str(file),)


def steps(options: Options) -> list[ProjectTests]:
    """A step for each group that was asked for, and one for the injected test if that was."""
    groups = [group for group in GROUPS if group.name in options.tests]
    return [ProjectTests(options, group) for group in (*groups, *([INJECTED] if options.inject == "test" else []))]


def treadle_variables(run: Run) -> dict[str, str]:
    """What makes a Python use the checkout's modules and the plugin that was built."""
    return {
        "PYTHONPATH": str(run.root),
        "PYTHONNOUSERSITE": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "TREADLE_PLUGIN_PATH": str(run.product("build", "plugin")),
        "TREADLE_CACHE_DIR": str(run.folder / "cache"),
    }
