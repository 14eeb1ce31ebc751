"""Makes `@python_env`: a virtual environment from the lock file of one Python and jaxlib.

`@release_env` has the tools that check a wheel before it is released. They judge files and do
not care which Python runs them, so it follows neither TREADLE_PYTHON nor TREADLE_JAXLIB, and is
made once where tests run on several.

`@python_env//:defs.bzl` gives its interpreter's absolute path (a sandbox's copy of
the interpreter would lose its pyvenv.cfg and silently become the base one), and an
identity that changes whenever its contents do, so that cached test results never
survive a change of environment.
"""

load(":interpreter.bzl", "INTERPRETER_VARIABLES", "base_python", "run_environment")

_DEFS = '''"""Generated: the environment made from third_party/python/lock/{lock}."""

PYTHON = "{python}"
LOCK = "{lock}"
JAXLIB = "{jaxlib}"
PYTHON_VERSION = "{python_version}"
WHEELHOUSE = "{wheelhouse}"
IDENTITY = "{identity}"
'''

_FETCHING = ["TREADLE_WHEELHOUSE", "XDG_CACHE_HOME", "HOME"]

def _make(rctx, name, chosen, python):
    lock = rctx.path(Label("//third_party/python:lock/" + name))
    rctx.report_progress("installing " + name)
    venv = rctx.path("venv")
    made = run_environment(rctx, ["venv", "--lock", lock, "--into", venv], python = python)
    rctx.file("BUILD", "exports_files([\"defs.bzl\"])\n")
    rctx.file("defs.bzl", _DEFS.format(
        lock = name,
        python = venv.get_child("bin").get_child("python"),
        jaxlib = chosen["jaxlib"],
        python_version = chosen["python"],
        wheelhouse = made["wheelhouse"],
        identity = "%s %s" % (made["wheelhouse"].split("/")[-1], made["version"].replace("\n", " ")),
    ))

def _python_env_impl(rctx):
    chosen = run_environment(rctx, [
        "select",
        "--pins",
        rctx.path(Label("//:versions.toml")),
        "--jaxlib",
        rctx.os.environ.get("TREADLE_JAXLIB", ""),
    ])
    _make(rctx, chosen["lock"], chosen, base_python(rctx))

python_env = repository_rule(
    implementation = _python_env_impl,
    doc = "A virtual environment from the lock file that TREADLE_PYTHON and TREADLE_JAXLIB choose.",
    environ = INTERPRETER_VARIABLES + _FETCHING + ["TREADLE_JAXLIB"],
)

def _release_env_impl(rctx):
    script = rctx.path(Label("//third_party/python:environment.py"))
    select = ["select", "--pins", rctx.path(Label("//:versions.toml"))]
    python = rctx.which("python3")
    done = rctx.execute([python, "-I", script] + select) if python else None
    if not done or done.return_code:
        python = base_python(rctx)  # the one that TREADLE_PYTHON names, since python3 is none that is supported
        chosen = run_environment(rctx, select)
    else:
        chosen = json.decode(done.stdout)
    _make(rctx, chosen["release_lock"], chosen, python)

release_env = repository_rule(
    implementation = _release_env_impl,
    doc = "A virtual environment with the tools of tools/release.",
    environ = ["PATH"] + _FETCHING,
)
