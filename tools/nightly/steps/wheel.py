"""The wheel in an environment of its own, with nothing of the checkout."""

from __future__ import annotations

import json

from tools.nightly.engine import Findings, Run
from tools.nightly.kinds import Kind
from tools.nightly.options import Options
from tools.nightly.process import Words
from tools.nightly.steps import environment
from tools.nightly.steps.find import PIP

RUNNING = 300  # seconds

# What a wheel installed beside any jaxlib needs; installed first, since the wheel may refuse that jaxlib's version.
NEEDED = ("llvmlite",)


class WheelStep:
    """Installs the wheel beside the jaxlib under test, and runs version_sync's smoke test on it."""

    name = "wheel"
    title = "installing the wheel and running it"
    needs = ("environment", "build")

    def __init__(self, options: Options) -> None:
        self.options = options

    def run(self, run: Run) -> Findings:
        python = environment.make(run, run.folder / "wheel-env")
        environment.install_jax(run, python, self.options)
        exactly = [f"{name}=={run.fact('find', name)}" for name in ("jax", "jaxlib")]
        command: Words = [python, *PIP, "-c", run.folder / "constraints.txt", *NEEDED, *exactly]
        run.must("installing jax", *command, timeout=environment.INSTALLING, kind=Kind.ENVIRONMENT)
        # The range of jaxlib that the wheel accepts is a promise, not what is tested here; pip check names it.
        command = [python, *PIP, "--no-deps", run.product("build", "wheel")]
        run.must("installing the wheel", *command, timeout=environment.INSTALLING, kind=Kind.ENVIRONMENT)
        # Nothing of the checkout is on the path, and each value is compared with jaxlib's CPU backend.
        smoke = run.root / "tools" / "version_sync" / "smoke.py"
        variables = {"JAX_PLATFORMS": "treadle,cpu", "TREADLE_CACHE_DIR": str(run.folder / "cache")}
        done = run.must(
            "the smoke test on the installed wheel",
            python,
            "-I",
            smoke,
            timeout=RUNNING,
            kind=Kind.TEST,
            variables=variables,
            cwd=run.folder,
        )
        answer = json.loads(done.output.strip().splitlines()[-1])
        programs = [program["name"] for program in answer["programs"]]
        counts = {"passed": len(programs), "skipped": 0, "failed": {}}
        found = Findings(facts={"programs": programs, "tests": counts})
        found.notes += environment.fits(run, python)
        return found
