"""Makes `@versions//:versions.bzl`: versions.toml as a Starlark value, `VERSIONS`."""

load("//third_party/python:interpreter.bzl", "base_python", "INTERPRETER_VARIABLES")

_PROGRAM = """
import sys, tomllib
with open(sys.argv[1], "rb") as file:
    print("VERSIONS = " + repr(tomllib.load(file)))
"""

def _versions_impl(rctx):
    pins = rctx.path(Label("//:versions.toml"))
    done = rctx.execute([base_python(rctx), "-c", _PROGRAM, pins])
    if done.return_code:
        fail("versions.toml could not be read:\n" + done.stderr)
    rctx.file("BUILD", "")
    rctx.file("versions.bzl", "\"\"\"Generated from versions.toml.\"\"\"\n\n" + done.stdout)

versions = repository_rule(
    implementation = _versions_impl,
    doc = "Reads versions.toml for the .bzl files that need a pin.",
    environ = INTERPRETER_VARIABLES,
)
