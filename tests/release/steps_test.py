"""The steps that need no build, on small repositories: versions, tags, the changelog, what is refused."""

from __future__ import annotations

import itertools
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.release.repositories import VERSIONS, commit, repository
from tools.release import artifacts, changelog, checks, cli, steps, verify
from tools.release.repository import Commit, RefusedError, Repository, Version


@pytest.fixture
def made(tmp_path: Path) -> Repository:
    return repository(tmp_path / "treadle")


def run(made: Repository, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any], str]:
    """The exit code, the JSON and the messages of a command."""
    code = cli.main([arguments[0], "--json", "--root", str(made.root), *arguments[1:]])
    said = capsys.readouterr()
    return code, json.loads(said.out), said.err


# --- versions ------------------------------------------------------------------------------


def test_versions_are_ordered_as_pip_orders_them():
    ordered = ["0.1.0", "0.2.0a1", "0.2.0a2", "0.2.0b1", "0.2.0rc1", "0.2.0", "0.2.1", "0.10.0", "1.0.0"]
    versions = [Version.parse(text) for text in ordered]
    assert all(low < high for low, high in itertools.pairwise(versions))
    assert max(versions[2:] + versions[:2]) == versions[-1]
    assert [str(version) for version in versions] == ordered
    assert Version.parse("0.2.0rc1").tag == "v0.2.0rc1"


@pytest.mark.parametrize("text", ["1.0", "v1.0.0", "1.0.0-rc1", "1.0.0.dev1", "1.0.0rc", ""])
def test_other_forms_are_refused(text: str):
    with pytest.raises(ValueError, match=r"is no version of the form X\.Y\.Z"):
        Version.parse(text)


def test_bump_changes_one_line_of_one_file(made: Repository, capsys: pytest.CaptureFixture[str]):
    assert run(made, capsys, "bump", "0.2.0")[0] == 0
    text = (made.root / "versions.toml").read_text()
    assert text == VERSIONS.replace('version = "0.1.0"', 'version = "0.2.0"')
    assert tomllib.loads(text)["bazel"]["version"] == "4.2.3"
    assert made.git("status", "--porcelain").split() == ["M", "versions.toml"]


def test_a_dry_run_changes_nothing(made: Repository, capsys: pytest.CaptureFixture[str]):
    assert run(made, capsys, "bump", "0.2.0", "--dry-run")[0] == 0
    code, document, _ = run(made, capsys, "changelog", "--dry-run", "--date", "2026-01-02")
    assert (code, document["section"].splitlines()[0]) == (0, "## [0.1.0] - 2026-01-02")
    assert made.git("status", "--porcelain") == ""


def test_a_dirty_tree_is_refused(made: Repository, capsys: pytest.CaptureFixture[str]):
    (made.root / "stray.py").write_text("")
    code, document, said = run(made, capsys, "bump", "0.2.0")
    assert code == cli.REFUSED
    assert "1 files differ from what is committed" in document["error"]
    assert "?? stray.py" in said
    assert made.version == Version.parse("0.1.0")


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ("0.1.0", "0.1.0 has been released: there is a tag v0.1.0"),
        ("0.3.0", "0.3.0 has been released: there is a tag v0.3.0"),
        ("0.2.0", "0.2.0 is not newer than 0.3.0, which has a tag"),
        ("0.3.0rc1", "0.3.0rc1 is not newer than 0.3.0"),
    ],
)
def test_a_version_that_is_not_new_is_refused(
    made: Repository, capsys: pytest.CaptureFixture[str], asked: str, reason: str
):
    for tag in ("v0.1.0", "v0.3.0", "vienna"):
        made.git("tag", tag)
    code, document, _ = run(made, capsys, "bump", asked)
    assert code == cli.REFUSED
    assert document["error"].startswith(reason)


def test_the_version_of_versions_toml_can_be_released_but_not_bumped_to(made: Repository):
    made.require_new(Version.parse("0.1.0"))
    with pytest.raises(RefusedError, match=r"versions\.toml says 0\.1\.0 already"):
        steps.bump(made, Version.parse("0.1.0"))
    with pytest.raises(RefusedError, match=r"0\.0\.9 is not newer than 0\.1\.0, which versions\.toml says"):
        made.require_new(Version.parse("0.0.9"))


def test_a_folder_that_cannot_be_made_is_refused_before_anything_is_done(
    made: Repository, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(Repository, "require_derived", lambda _: None)
    for words in (["build"], ["all", "0.2.0"]):
        code, document, _ = run(made, capsys, *words, "--out", "/dev/null/dist")
        assert code == cli.REFUSED
        assert document["error"].startswith("the folder /dev/null/dist cannot be made (Not a directory)")
    assert made.version == Version.parse("0.1.0")


def test_the_sizes_of_what_is_no_wheel(made: Repository, capsys: pytest.CaptureFixture[str]):
    file = made.root / "versions.toml"
    code, document, _ = run(made, capsys, "sizes", str(file))
    assert (code, document["error"]) == (cli.REFUSED, f"{file} is no wheel")


def test_wrong_usage_is_2():
    for arguments in (
        ["bump", "one"],
        ["bump"],
        ["verify", "--python", "3.12"],
        ["changelog", "--date", "today"],
        ["nothing"],
    ):
        with pytest.raises(SystemExit) as ended:
            cli.main(arguments)
        assert ended.value.code == cli.USAGE


# --- the changelog -------------------------------------------------------------------------


def test_commits_are_grouped_by_what_a_user_notices(made: Repository):
    commit(made, "A loop IR", {"treadle/loops.py": "x = 1\n"})
    commit(made, "Loops are printed", {"treadle/loops.py": "x = 2\n", "tests/loops_test.py": ""})
    commit(made, "An empty loop no longer hangs", {"treadle/loops.py": "x = 3\n"})
    commit(made, "More tests", {"tests/more_test.py": ""})
    commit(made, "A lock file", {"third_party/lock.txt": ""})
    (made.root / "treadle" / "loops.py").unlink()
    commit(made, "Remove the loop IR", {})
    assert steps.draft(made, "2026-01-02") == (
        "## [0.1.0] - 2026-01-02\n\n"
        "### Added\n\n- A loop IR\n\n"
        "### Changed\n\n- The first commit\n- Loops are printed\n\n"
        "### Fixed\n\n- An empty loop no longer hangs\n\n"
        "### Removed\n\n- Remove the loop IR\n\n"
        "And 2 commits to tests, tools and documents.\n"
    )


def test_only_what_came_after_the_newest_tag_is_told(made: Repository):
    made.git("tag", "v0.1.0")
    commit(made, "Faster products", {"plugin/dot.cc": "// products\n"})
    made.set_version(Version.parse("0.2.0"))
    assert steps.draft(made, "2026-01-02") == "## [0.2.0] - 2026-01-02\n\n### Added\n\n- Faster products\n"


def test_what_was_taken_back_is_not_told():
    files = (("M", "treadle/a.py"),)
    subjects = ['Revert "Interleaved"', "Interleaved", "Kept", "Interleaved"]
    kept = changelog.without_reverted([Commit(str(i), subject, files) for i, subject in enumerate(subjects)])
    assert [commit.id for commit in kept] == ["2", "3"]


def test_a_new_section_stands_above_the_old_ones_and_never_over_an_edited_one(made: Repository):
    first = changelog.write(made.root, Version.parse("0.1.0"), "## [0.1.0] - 2026-01-01\n\nedited by hand\n")
    assert first.read_text() == changelog.HEADER + "\n## [0.1.0] - 2026-01-01\n\nedited by hand\n"
    changelog.write(made.root, Version.parse("0.2.0"), "## [0.2.0] - 2026-02-02\n\nnew\n")
    assert first.read_text() == (
        changelog.HEADER + "\n## [0.2.0] - 2026-02-02\n\nnew\n\n## [0.1.0] - 2026-01-01\n\nedited by hand\n"
    )
    before = first.read_text()
    with pytest.raises(RefusedError, match=r"has a section for 0\.1\.0; edit it, or give --replace"):
        steps.write_changelog(made, "2026-03-03")
    assert first.read_text() == before
    changelog.write(made.root, Version.parse("0.2.0"), "## [0.2.0] - 2026-03-03\n\nnewer\n", replace=True)
    assert first.read_text() == before.replace("2026-02-02\n\nnew", "2026-03-03\n\nnewer")


def test_the_changelog_of_a_released_version_is_closed(made: Repository):
    made.git("tag", "v0.1.0")
    with pytest.raises(RefusedError, match=r"0\.1\.0 has been released; `bump` comes before"):
        steps.write_changelog(made, "2026-01-01")


# --- everything ----------------------------------------------------------------------------


@pytest.fixture
def unbuilt(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """`all` with a build that makes nothing, and a verification that says what the list's last entry says."""
    good = [True]
    release = artifacts.Artifacts(Path("wheel"), Path("sdist"), Path("sbom"))

    def build(repository: Repository, out: Path) -> artifacts.Artifacts:
        return release

    def check(*_: object) -> verify.Report:
        return verify.Report([checks.Finding("a check", good[-1], "")])

    monkeypatch.setattr(artifacts, "build", build)
    monkeypatch.setattr(verify, "verify", check)
    monkeypatch.setattr(Repository, "require_derived", lambda _: None)
    return good


def everything(made: Repository, version: str) -> verify.Report:
    return steps.everything(made, Version.parse(version), Path("dist"), {}, False)[1]


def test_all_commits_the_version_and_its_changelog_and_tags_them(made: Repository, unbuilt: list[bool]):
    assert everything(made, "0.2.0").passed
    assert made.version == Version.parse("0.2.0")
    assert made.released() == [Version.parse("0.2.0")]
    assert made.git("log", "-1", "--format=%s").strip() == "Release 0.2.0"
    changed = made.git("show", "--name-only", "--format=", "HEAD").split()
    assert changed == ["CHANGELOG.md", "versions.toml"]
    assert made.git("tag", "--points-at", "HEAD").split() == ["v0.2.0"]
    assert made.git("status", "--porcelain") == ""


def test_what_fails_its_checks_is_not_tagged_and_can_be_released_later(made: Repository, unbuilt: list[bool]):
    unbuilt.append(False)
    assert not everything(made, "0.2.0").passed
    assert made.released() == []
    head = made.git("rev-parse", "HEAD")
    unbuilt.append(True)
    assert everything(made, "0.2.0").passed
    assert made.git("rev-parse", "HEAD") == head
    assert made.released() == [Version.parse("0.2.0")]


def test_a_section_written_by_hand_gets_its_day(made: Repository, unbuilt: list[bool]):
    text = changelog.HEADER + "\n## [0.1.0] - unreleased\n\nby hand\n"
    commit(made, "What is new", {changelog.FILE: text})
    everything(made, "0.1.0")
    assert (made.root / changelog.FILE).read_text() == text.replace("unreleased", steps.today())
    assert made.git("log", "-1", "--format=%s").strip() == "Release 0.1.0"


def test_stale_files_are_refused(made: Repository):
    # With the real pins, nothing that is made from them is there.
    (made.root / "versions.toml").write_text(Path("versions.toml").read_text())
    with pytest.raises(RefusedError, match=r"derived files are out of date:\n(.*\n)*  \.bazelversion is missing"):
        made.require_derived()


def test_a_rehearsal_leaves_the_checkout_as_it_was(made: Repository, unbuilt: list[bool]):
    before = made.git("rev-parse", "HEAD")
    _, report = steps.rehearse(made, Version.parse("0.2.0"), Path("dist"), {}, False)
    assert report.passed
    assert (made.git("rev-parse", "HEAD"), made.released(), str(made.version)) == (before, [], "0.1.0")
    assert made.git("status", "--porcelain") == ""
