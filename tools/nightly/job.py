"""One nightly run from its start to its report."""

from __future__ import annotations

import datetime
import hashlib
import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tools.nightly import report as reports
from tools.nightly.engine import Engine, Outcome, Result, Run, Step, progress
from tools.nightly.options import TESTS, Options
from tools.nightly.report import Context
from tools.nightly.revision import Revision, commits_since, git, revision
from tools.nightly.store import Store, write_atomically, write_json


def run(options: Options, find: Step, steps: Sequence[Step]) -> dict[str, Any]:
    """Does the steps and writes the report; gives it as plain values.

    `find` is done always: what it finds tells whether there is an earlier run to resume.

    Raises:
      store.BusyError: another run uses the folder.
      ValueError: the checkout cannot be read.
    """
    store = Store(options.out)
    with store.locked():
        sources = revision(options.root)
        started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        found, log = _find(options, find)
        key = run_key(found.facts, sources, options)
        progress(f"the run is {key}")
        current = Run(options.root, store.run_folder(key))
        shutil.copy(log, current.folder / "logs")
        current.results[find.name] = replace(found, log=str(current.folder / "logs" / log.name))
        results = Engine(current, fresh=options.fresh).run([find, *steps])
        good = store.last_good()
        commits = commits_since(options.root, good["tested"]["commit"]) if good else []
        context = Context(key, sources.commit, sources.changes, started, options.inject, good, commits)
        document = reports.document(results, context)
        for folder in (current.folder, options.out):
            write_json(folder / "report.json", document)
            write_atomically(folder / "report.md", reports.markdown(document))
        if is_good(document, options):
            store.set_last_good({"started": started, "key": key, "tested": document["tested"]})
        for name in store.prune(options.keep, current=key):
            progress(f"deleted the old run {name}")
    return document


def _find(options: Options, find: Step) -> tuple[Result, Path]:
    """What the first step found, and its log. Its folder is not the run's, which has its name from what is found."""
    asking = Run(options.root, options.out / "tools" / "finding")
    (asking.folder / "logs").mkdir(parents=True, exist_ok=True)
    found = Engine(asking, fresh=True).run([find])[0]
    asking.log.touch()
    return found, asking.log


def is_good(document: Mapping[str, Any], options: Options) -> bool:
    """Whether later runs may be compared with this one.

    Nothing broke, all of Treadle's tests ran, nothing was injected, and all sources are committed.
    """
    passed = {step["name"]: step["outcome"] == Outcome.PASSED for step in document["steps"]}
    whole = all(done for name, done in passed.items() if not name.startswith("jax-"))
    clean = not options.inject and set(options.tests) == set(TESTS) and not document["tested"]["uncommitted"]
    return document["verdict"] == "passed" and whole and clean


def run_key(facts: Mapping[str, Any], sources: Revision, options: Options) -> str:
    """What tells one run from another: the versions, the sources, and what was asked for."""
    clone = ""
    if options.jax_clone:
        try:
            clone = git(options.jax_clone, "rev-parse", "HEAD").strip()
        except (OSError, subprocess.CalledProcessError):  # the step that reads the clone says what is wrong with it
            clone = "unreadable"
    asked = [clone, options.tests, options.jax_tests, options.inject, facts.get("jax"), options.index]
    digest = hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:6]
    versions = f"{facts['jaxlib']}-py{facts['python']}" if facts else "unknown"
    return f"{versions}-{sources.name}-{digest}"
