"""The wheel, and the plugin that is in it."""

from __future__ import annotations

import shutil
import tomllib
import zipfile
from pathlib import Path

from tools.nightly.engine import Findings, Run, StepError
from tools.nightly.kinds import Kind
from tools.nightly.options import Options

BUILDING = 3600  # seconds


class Build:
    """Builds with Bazel, whose own Python environment stays at the pinned versions."""

    name = "build"
    title = "building the wheel"
    needs: tuple[str, ...] = ()

    def __init__(self, options: Options) -> None:
        self.options = options

    def run(self, run: Run) -> Findings:
        quiet = ("--color=no", "--curses=no", "--noshow_progress", "--show_result=0")
        command = ["./bazelw", "build", *quiet, "//:wheel"]
        run.must("./bazelw build //:wheel", *command, timeout=BUILDING, kind=Kind.BUILD, bazel=True)
        found = run.must("./bazelw info", "./bazelw", "info", "bazel-bin", timeout=300, kind=Kind.BUILD, bazel=True)
        version = tomllib.loads((self.options.root / "versions.toml").read_text())["treadle"]["version"]
        wheel = newest_wheel(Path(found.output.strip().splitlines()[-1]), version)
        # bazel-bin is the last build's, whoever ran it: what is tested must not change under the tests.
        kept = run.folder / "wheel"
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir()
        wheel = Path(shutil.copy(wheel, kept))
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(kept, [name for name in archive.namelist() if name.startswith("treadle/lib/")])
        libraries = kept / "treadle" / "lib"
        products = {"wheel": str(wheel), "plugin": str(libraries / "treadle_pjrt.so"), "libraries": str(libraries)}
        return Findings(products=products, facts={"wheel": wheel.name, "bytes": wheel.stat().st_size})


def newest_wheel(folder: Path, version: str) -> Path:
    """The wheel of this version that was built last.

    Raises:
      StepError: there is none.
    """
    wheels = sorted(folder.glob(f"treadle-{version}-*.whl"), key=lambda path: path.stat().st_mtime)
    if not wheels:
        raise StepError(Kind.BUILD, f"//:wheel was built, but {folder} has no treadle-{version}-*.whl")
    return wheels[-1]
