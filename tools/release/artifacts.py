"""Builds a release's files: wheel, source archive, bill of materials, and their hashes."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tools.release.repository import RefusedError, Repository, Version
from tools.wheel import build_sdist

HASHES = "SHA256SUMS"


def say(text: str) -> None:
    """Shows progress."""
    print(f"release: {text}", file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Artifacts:
    """The files of a release in one folder."""

    wheel: Path
    sdist: Path
    sbom: Path

    @property
    def files(self) -> tuple[Path, Path, Path]:
        """All three."""
        return self.wheel, self.sdist, self.sbom

    @property
    def version(self) -> Version:
        """The version in the wheel's name."""
        return Version.parse(self.wheel.name.split("-")[1])

    def hashes(self) -> dict[str, str]:
        """The SHA-256 of each file, by name."""
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in self.files}

    @staticmethod
    def of(folder: Path) -> Artifacts:
        """The release in `folder`. RefusedError: it does not hold exactly one file of each kind."""
        found = []
        for pattern in ("treadle-*.whl", "treadle-*.tar.gz", "treadle-*.cdx.json"):
            files = sorted(folder.glob(pattern))
            if len(files) != 1:
                names = ", ".join(path.name for path in files) or "none"
                raise RefusedError(
                    f"{folder} must hold one {pattern}, and holds {names}; run `build` into an empty folder"
                )
            found.append(files[0])
        return Artifacts(*found)


def bazel_build(root: Path, *targets: str) -> None:
    """Builds with the checkout's bazelw. RefusedError: it fails (its messages are on stderr)."""
    command = [str(root / "bazelw"), "build", "--color=no", "--curses=no", "--noshow_progress", *targets]
    done = subprocess.run(command, cwd=root, stdout=sys.stderr, check=False)
    if done.returncode:
        raise RefusedError(f"{' '.join(command)} exited with {done.returncode}; its messages are above")


def make_folder(out: Path) -> None:
    """Makes the folder of a release, before anything that takes long. RefusedError: it cannot be made."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RefusedError(f"the folder {out} cannot be made ({error.strerror}); name another with --out") from None


def build(repository: Repository, out: Path) -> Artifacts:
    """Builds the release of the checkout into `out`; what lies there of an earlier build is replaced.

    RefusedError: the build fails, or the commit has the tag of another version.
    """
    version = repository.version
    tagged = [
        other for other in repository.released() if other.tag in repository.git("tag", "--points-at", "HEAD").split()
    ]
    if tagged and version not in tagged:
        raise RefusedError(f"this commit has the tag {tagged[0].tag}, but versions.toml says {version}")
    make_folder(out)
    say(f"building {version} into {out}")
    bazel_build(repository.root, "//:wheel", "//:sbom")
    for pattern in ("treadle-*.whl", "treadle-*.tar.gz", "treadle-*.cdx.json", HASHES):
        for old in out.glob(pattern):
            old.unlink()
    built = repository.root / "bazel-bin"
    for pattern in (f"treadle-{version}-*.whl", f"treadle-{version}.cdx.json"):
        (path,) = built.glob(pattern)
        shutil.copyfile(path, out / path.name)
    build_sdist.build(repository.root, out)
    artifacts = Artifacts.of(out)
    lines = (f"{digest}  {name}\n" for name, digest in sorted(artifacts.hashes().items()))
    (out / HASHES).write_text("".join(lines), encoding="utf-8")
    return artifacts


def check_hashes(artifacts: Artifacts) -> list[str]:
    """The files whose contents are not what SHA256SUMS says, or that it does not list."""
    file = artifacts.wheel.parent / HASHES
    if not file.is_file():
        return [f"{file} is missing"]
    rows = (line.split() for line in file.read_text(encoding="utf-8").splitlines())
    listed = {name: digest for digest, name in rows}
    return [
        f"{name} is not what {HASHES} says" for name, digest in artifacts.hashes().items() if listed.get(name) != digest
    ]
