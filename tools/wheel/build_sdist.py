"""Writes the source archive: the files under version control, PKG-INFO, and a list of them.

    python3 -m tools.wheel.build_sdist --out DIRECTORY

In a checkout git says which files those are; in an unpacked source archive, which knows no git,
its own list (MANIFEST) does, so an archive made from an archive is the same archive. Names are
sorted, and times, owners and modes do not come from the files. What is left is the compressor,
which is that of the Python that runs this. Only the standard library is imported.
"""

from __future__ import annotations

import argparse
import gzip
import io
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

from tools.wheel import metadata

MANIFEST = "MANIFEST"
PACKAGE_INFO = "PKG-INFO"
# 1980-01-01, the zip format's zero, which the wheel has too.
TIME = 315532800


def is_checkout(root: Path) -> bool:
    """Whether `root` is the top of a git checkout (a work tree has a file there, not a folder)."""
    return (root / ".git").exists()


def _git_files(root: Path) -> dict[str, bool]:
    command = ["git", "-c", f"safe.directory={root}", "ls-files", "--stage", "-z"]
    done = subprocess.run(command, cwd=root, capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(f"git cannot list the files of {root}: {done.stderr.decode(errors='replace').strip()}")
    entries = (entry.partition("\t") for entry in done.stdout.decode().split("\0") if entry)
    # A stage that is not 0 is a file in conflict, listed once a side.
    return {name: stage.startswith("100755") for stage, _, name in entries}


def source_files(root: Path) -> dict[str, bool]:
    """The names of the source files below `root`, each with whether it is executable.

    RuntimeError: `root` is neither a git checkout nor an unpacked source archive, or a file is missing.
    """
    if is_checkout(root):
        files = _git_files(root)
    elif (root / MANIFEST).is_file():
        lines = (root / MANIFEST).read_text(encoding="utf-8").splitlines()
        files = {line[2:]: line[0] == "x" for line in lines}
    else:
        raise RuntimeError(f"{root} is neither a git checkout nor an unpacked source archive: it has no {MANIFEST}")
    missing = [name for name in files if not (root / name).is_file()]
    if missing:
        raise RuntimeError(f"{root} lacks {len(missing)} of its source files: {', '.join(sorted(missing)[:5])}")
    return files


def build(root: Path, out: Path) -> Path:
    """Writes the source archive of `root` into the folder `out`; gives its path. Raises what source_files does."""
    pins = tomllib.loads((root / "versions.toml").read_text(encoding="utf-8"))
    stem = f"treadle-{pins['treadle']['version']}"
    executable = source_files(root)
    contents = {name: (root / name).read_bytes() for name in executable}
    readme = contents["README.md"].decode()
    contents[PACKAGE_INFO] = metadata.metadata(pins, readme, metadata.SDIST_LICENSE, ["LICENSE"]).encode()
    listing = "".join(f"{'x' if executable[name] else '-'} {name}\n" for name in sorted(executable))
    contents[MANIFEST] = listing.encode()

    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in sorted(contents.items()):
            entry = tarfile.TarInfo(f"{stem}/{name}")
            entry.size, entry.mtime = len(content), TIME
            entry.mode = 0o755 if executable.get(name) else 0o644
            archive.addfile(entry, io.BytesIO(content))
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{stem}.tar.gz"
    with path.open("wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=0) as compressed:
        compressed.write(packed.getvalue())
    return path


def main(arguments: list[str]) -> int:
    """Parses the command line and writes the archive."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--root", type=Path, default=Path.cwd(), help="the checkout (default: the current folder)")
    parser.add_argument("--out", type=Path, default=Path("dist"), help="the folder to write to (default: dist)")
    options = parser.parse_args(arguments)
    try:
        print(build(options.root, options.out))
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
