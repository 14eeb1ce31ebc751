"""The steps of a release, and all of them in order."""

from __future__ import annotations

import datetime
import shutil
import subprocess
import tempfile
from pathlib import Path

from tools.release import artifacts, changelog, verify
from tools.release.artifacts import say
from tools.release.repository import RefusedError, Repository, Version


def today() -> str:
    """The day, in UTC."""
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def bump(repository: Repository, version: Version, dry_run: bool = False) -> str:
    """Writes the version into versions.toml; gives what was done. RefusedError: it is not newer than what is there."""
    before = repository.version
    repository.require_clean()
    repository.require_new(version)
    if version == before:
        raise RefusedError(f"versions.toml says {version} already; choose a newer version, or go on with `changelog`")
    if not dry_run:
        repository.set_version(version)
    return f"versions.toml: {before} -> {version}" + (" (not written)" if dry_run else "")


def draft(repository: Repository, date: str) -> str:
    """The changelog's section for the version of versions.toml, from the commits since the newest tag."""
    released = repository.released()
    return changelog.section(repository.version, date, repository.commits(released[0].tag if released else None))


def write_changelog(repository: Repository, date: str, replace: bool = False, dry_run: bool = False) -> str:
    """Puts the section into CHANGELOG.md and gives its text. RefusedError: there is one, and `replace` is not set."""
    if repository.version in repository.released():
        raise RefusedError(f"{repository.version} has been released; `bump` comes before `changelog`")
    text = draft(repository, date)
    if not dry_run:
        changelog.write(repository.root, repository.version, text, replace)
    return text


def remaining(version: Version, out: Path) -> str:
    """What a person does after everything else is done."""
    return f"""\
{version} is built, verified and tagged here, and nothing has left this machine. What remains is yours:

  1. read the section in {changelog.FILE} once more; to change it now, delete the tag {version.tag}, commit, and run
     `all` again
  2. git push origin HEAD {version.tag}
  3. twine upload {out}/*.whl {out}/*.tar.gz
  4. publish {out}/*.cdx.json and {out}/{artifacts.HASHES} beside them"""


def everything(
    repository: Repository, version: Version, out: Path, interpreters: dict[str, str], all_pairs: bool
) -> tuple[artifacts.Artifacts, verify.Report]:
    """Bumps, drafts, commits, builds, verifies, and tags if all is well.

    A run that broke is run again: what is committed already is not done twice.
    RefusedError: the checkout is not in a state to be released, or a step fails.
    """
    repository.require_clean()
    repository.require_new(version)
    repository.require_derived()
    artifacts.make_folder(out)
    if version != repository.version:
        say(bump(repository, version))
    path = repository.root / changelog.FILE
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    if changelog.has_section(text, version):
        path.write_text(changelog.dated(text, version, today()), encoding="utf-8")
    else:
        write_changelog(repository, today())
        say(f"{changelog.FILE}: a section for {version}")
    if repository.git("status", "--porcelain"):
        repository.git("add", "versions.toml", changelog.FILE)
        repository.git("commit", "--quiet", "--message", f"Release {version}")
        say(f"committed: Release {version}")
    release = artifacts.build(repository, out)
    report = verify.verify(repository, release, interpreters, all_pairs)
    if report.passed:
        repository.git("tag", "--annotate", version.tag, "--message", f"Treadle {version}")
        say(f"tagged: {version.tag}")
    return release, report


def rehearse(
    repository: Repository, version: Version, out: Path, interpreters: dict[str, str], all_pairs: bool
) -> tuple[artifacts.Artifacts, verify.Report]:
    """The same in a clone that is deleted afterwards: the checkout, its branch and its tags stay as they are."""
    repository.require_clean()
    with tempfile.TemporaryDirectory(prefix="treadle-rehearsal-") as name:
        clone = Path(name) / "treadle"
        say(f"rehearsing in {clone}")
        repository.git("clone", "--quiet", str(repository.root), str(clone))
        for key in ("user.name", "user.email"):
            asked = subprocess.run(
                ["git", "config", key], cwd=repository.root, capture_output=True, text=True, check=False
            )
            Repository(clone).git("config", key, asked.stdout.strip() or "rehearsal")
        try:
            return everything(Repository(clone), version, out, interpreters, all_pairs)
        finally:
            # Also what Bazel keeps of the clone elsewhere, and its server.
            if (clone / "bazel-bin").is_symlink():
                subprocess.run([clone / "bazelw", "clean", "--expunge"], cwd=clone, capture_output=True, check=False)
            shutil.rmtree(clone, ignore_errors=True)
