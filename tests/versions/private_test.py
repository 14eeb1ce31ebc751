"""The list of private names and layouts: all of it holds on this jaxlib, and the sources use nothing else."""

import argparse
import ast
import functools
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.versions.files import command
from treadle import private_jax
from treadle.compiler.frontend.ops import RULES
from treadle.versions import cli

LISTED = {entry.name for entry in private_jax.ENTRIES if not entry.layout}
MLIR = Path("treadle/compiler/frontend/mlir.py")
# What the other files of the frontend take from there, and what it is.
FRONTEND = {"ir": "jaxlib.mlir.ir", "stablehlo": "jaxlib.mlir.dialects.stablehlo"}
# JAX's promise of compatibility covers its documented names, but none of these folders.
WITHOUT_PROMISE = ("_src", "config", "experimental", "extend", "interpreters", "lib")
LIST = Path("treadle/private_jax.py")
SOURCES = sorted({*Path("treadle").rglob("*.py"), *Path("jax_plugins").rglob("*.py")})


def imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """The names of JAX and jaxlib that a file binds: what each is called there, and its dotted name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                bound = alias.asname or alias.name
                if node.module == "treadle.compiler.frontend.mlir" and alias.name in FRONTEND:
                    yield bound, FRONTEND[alias.name]
                elif node.module.split(".")[0] in ("jax", "jaxlib"):
                    yield bound, f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] in ("jax", "jaxlib"):
                    yield (alias.asname, alias.name) if alias.asname else (alias.name.split(".")[0],) * 2


@functools.cache
def uses(text: str) -> set[str]:
    """The dotted names of JAX and jaxlib that a file uses: its imports, and attributes of what it imports."""
    tree = ast.parse(text)
    bound = dict(imports(tree))
    found = set(bound.values())
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            names = [node.attr]
            value = node.value
            while isinstance(value, ast.Attribute):
                names.append(value.attr)
                value = value.value
            if isinstance(value, ast.Name) and value.id in bound:
                found.add(".".join([bound[value.id], *reversed(names)]))
        elif isinstance(node, ast.Constant) and str(node.value).startswith(("jax._src.", "jax.extend.", "jaxlib.")):
            found |= {name for name in [str(node.value)] if " " not in name}  # resolved later
    return found


def is_covered(name: str) -> bool:
    """Public; or listed, or part of the way to something listed, or a member of something listed."""
    parts = name.split(".")
    return (
        name in LISTED
        or not (parts[0] == "jaxlib" or [*parts, ""][1] in WITHOUT_PROMISE or any(part[0] == "_" for part in parts))
        or any(listed.startswith(f"{name}.") for listed in LISTED)
        or any(".".join(parts[:i]) in LISTED for i in range(3, len(parts)))
    )


def test_the_scanner_sees_what_it_should():
    text = """
import jax
from jax._src import xla_bridge as bridge
from treadle.compiler.frontend.mlir import ir
def f():
    import jaxlib.mlir
    return bridge.backends(), jax.config.jax_platforms, ir.Context().thing, look("jax._src.core.Primitive")
"""
    assert uses(text) == {
        "jax",
        "jax._src.xla_bridge",
        "jax._src.xla_bridge.backends",
        "jax.config",
        "jax.config.jax_platforms",
        "jax._src.core.Primitive",
        "jaxlib",
        "jaxlib.mlir.ir",
        "jaxlib.mlir.ir.Context",
    }
    assert not is_covered("jax._src.xla_bridge.backends")
    assert not is_covered("jax._src.core.Primitive")
    assert is_covered("jaxlib.mlir.ir.Context.some_method")


def test_the_sources_use_only_what_is_listed():
    missing = {
        str(path): [name for name in sorted(uses(path.read_text())) if not is_covered(name)]
        for path in SOURCES
        if path != LIST
    }
    assert {path: names for path, names in missing.items() if names} == {}


def test_only_the_frontend_imports_private_modules():
    for path in SOURCES:
        for _, name in imports(ast.parse(path.read_text())):
            if name.startswith("jaxlib.") and name not in FRONTEND.values():
                assert path == MLIR, f"{path} imports {name}; take it through private_jax.resolve"
            assert not name.startswith("jax._src"), f"{path} imports {name}; take it through private_jax.resolve"


def test_every_listed_name_is_used():
    """An entry that nothing needs would make Treadle fail with a JAX that it works with."""
    used = {name for path in SOURCES if path != LIST for name in uses(path.read_text())}
    bindings = {f"{FRONTEND['stablehlo']}.{a.binding}" for rule in RULES.values() for a in rule.attributes if a.binding}
    assert LISTED - used == bindings


def test_the_users_of_an_entry_exist():
    for entry in private_jax.ENTRIES:
        assert entry.users, entry.name
        assert entry.why
        for user in entry.users:
            assert Path(user) in SOURCES, f"{entry.name}: {user}"


def test_all_of_it_holds_on_this_jaxlib():
    done = command("treadle", "versions", "--private", "--json")
    answer = json.loads(done.stdout)
    assert answer["schema"] == "treadle-private-1"
    assert answer["broken"] == []
    assert answer["checked"] == len(private_jax.ENTRIES)
    assert done.returncode == answer["exit_code"] == 0


def test_an_unknown_name_is_reported():
    """Three ways for a name to be gone: an attribute, a module, and a package on the way."""
    names = ["jax._src.xla_bridge.no_such_name", "jax._src.no_such_module.name", "no_such_package.name"]
    done = command("treadle", "versions", "--private", *(f"--private-extra={name}" for name in names))
    assert done.returncode == 4
    first, *lines = done.stdout.splitlines()
    assert first.endswith("3 are broken")
    assert [line.strip(" -").partition(":")[0] for line in lines[::2]] == names
    assert "jax._src.xla_bridge has no no_such_name" in lines[0]
    assert lines[1].strip() == "for: asked for by the caller"
    assert "no_such_package" in lines[4]


def test_a_crash_is_reported(capsys, tmp_path):
    """A layout that MLIR answers with an abort must not take the report along."""
    (tmp_path / "python").write_text("#!/bin/sh\necho last words >&2\nkill -ABRT $$\n")
    (tmp_path / "python").chmod(0o755)
    parser = argparse.ArgumentParser()
    cli.add_arguments(parser)
    code = cli.run(parser.parse_args(["--private", "--json", "--python", str(tmp_path / "python")]))
    answer = json.loads(capsys.readouterr().out)
    assert code == answer["exit_code"] == 4
    assert answer["broken"][0]["problem"] == "the process that checks them crashed (SIGABRT)"
    assert answer["broken"][0]["output"] == "last words\n"


def test_only_listed_names_are_resolved():
    with pytest.raises(LookupError, match=r"jax\._src\.core\.Primitive is not among the private names"):
        private_jax.resolve("jax._src.core.Primitive")


def test_importing_loads_neither_jax_nor_mlir():
    code = (
        "import sys, treadle, treadle.private_jax, treadle.versions.tested, treadle.versions.cli;"
        "print([name for name in sys.modules if name.split('.')[0] in ('jax', 'jaxlib', 'numpy', 'llvmlite')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
