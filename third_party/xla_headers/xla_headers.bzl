"""Makes `@xla_headers`: XLA's C headers (PJRT, its extensions, FFI) at the pinned version.

They are inside a PyPI source archive, fetched and never copied into this repository.
`--override_repository=xla_headers=DIR` takes another set: DIR holds a WORKSPACE, the
headers under xla/, and a BUILD file with a cc_library `headers` (a copy of
headers.BUILD does).
"""

load("@versions//:versions.bzl", "VERSIONS")
load("//third_party/python:interpreter.bzl", "INTERPRETER_VARIABLES", "run_environment")

def _xla_headers_impl(rctx):
    pin = VERSIONS["xla_headers"]
    lock = rctx.path(Label("//third_party/xla_headers:lock.txt"))
    names = run_environment(rctx, [
        "files",
        "--lock",
        lock,
        "--sdist",
        pin["package"],
        "--into",
        rctx.path("fetched"),
    ])
    archive = "%s-%s.tar.gz" % (pin["package"], pin["version"])
    if archive not in names:
        fail("The lock file of the XLA headers does not hold %s; run third_party/python/lock.py." % archive)
    stem = archive[:-len(".tar.gz")]
    rctx.extract("fetched/" + archive, stripPrefix = stem)
    root = pin["root"]
    rctx.symlink(root + "/xla", "xla")
    rctx.symlink(Label("//third_party/xla_headers:headers.BUILD"), "BUILD")

xla_headers = repository_rule(
    implementation = _xla_headers_impl,
    doc = "Fetches XLA's C headers.",
    environ = INTERPRETER_VARIABLES + ["TREADLE_WHEELHOUSE", "XDG_CACHE_HOME", "HOME"],
)
