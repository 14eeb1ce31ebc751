"""Makes `@python_env`: a virtual environment from the lock file of one Python and jaxlib.

`@release_env` is the same rule with the tools that check a wheel before it is released; it
is fetched when a target that names it is built.

`@python_env//:defs.bzl` gives its interpreter's absolute path (a sandbox's copy of
the interpreter would lose its pyvenv.cfg and silently become the base one), and an
identity that changes whenever its contents do, so that cached test results never
survive a change of environment.
"""

load(":interpreter.bzl", "INTERPRETER_VARIABLES", "run_environment")

_DEFS = '''"""Generated: the environment made from third_party/python/lock/{lock}."""

PYTHON = "{python}"
LOCK = "{lock}"
JAXLIB = "{jaxlib}"
PYTHON_VERSION = "{python_version}"
WHEELHOUSE = "{wheelhouse}"
IDENTITY = "{identity}"
'''

def _python_env_impl(rctx):
    chosen = run_environment(rctx, [
        "select",
        "--pins",
        rctx.path(Label("//:versions.toml")),
        "--jaxlib",
        rctx.os.environ.get("TREADLE_JAXLIB", ""),
    ])
    name = chosen[rctx.attr.lock]
    lock = rctx.path(Label("//third_party/python:lock/" + name))
    rctx.report_progress("installing " + name)
    venv = rctx.path("venv")
    made = run_environment(rctx, ["venv", "--lock", lock, "--into", venv])
    rctx.file("BUILD", "exports_files([\"defs.bzl\"])\n")
    rctx.file("defs.bzl", _DEFS.format(
        lock = name,
        python = venv.get_child("bin").get_child("python"),
        jaxlib = chosen["jaxlib"],
        python_version = chosen["python"],
        wheelhouse = made["wheelhouse"],
        identity = "%s %s" % (made["wheelhouse"].split("/")[-1], made["version"].replace("\n", " ")),
    ))

python_env = repository_rule(
    implementation = _python_env_impl,
    attrs = {
        "lock": attr.string(
            default = "lock",
            values = ["lock", "release_lock"],
            doc = "Which of the lock files that fit the Python: the key in environment.py's answer.",
        ),
    },
    doc = "A virtual environment from the lock file that TREADLE_PYTHON and TREADLE_JAXLIB choose.",
    environ = INTERPRETER_VARIABLES + [
        "TREADLE_JAXLIB",
        "TREADLE_WHEELHOUSE",
        "XDG_CACHE_HOME",
        "HOME",
    ],
)
