"""Which Python the environment is made from: TREADLE_PYTHON, or `python3`."""

INTERPRETER_VARIABLES = ["TREADLE_PYTHON", "PATH"]

_PROGRAM = """
import sys
if sys.version_info < (3, 11):
    sys.exit("Treadle needs Python 3.11 or newer, but %s is %s. Set TREADLE_PYTHON to another."
             % (sys.executable, sys.version.split()[0]))
print(sys.executable)
"""

def base_python(rctx):
    """Gives the interpreter's real path (a pyenv shim would depend on the folder it runs in)."""
    asked = rctx.os.environ.get("TREADLE_PYTHON", "python3")
    found = rctx.which(asked) if "/" not in asked else asked
    if not found:
        fail("There is no %s on the PATH; set TREADLE_PYTHON to a Python 3.11 or newer." % asked)
    done = rctx.execute([found, "-c", _PROGRAM])
    if done.return_code:
        fail(done.stderr.strip() or "%s does not run" % found)
    return done.stdout.strip()

def run_environment(rctx, arguments, quiet = True, python = None):
    """Runs environment.py with `python`, or the chosen interpreter; gives its answer, decoded."""
    script = rctx.path(Label("//third_party/python:environment.py"))
    done = rctx.execute(
        [python or base_python(rctx), "-I", script] + arguments,
        timeout = 3600,
        quiet = quiet,
    )
    if done.return_code:
        fail(done.stderr.strip())
    return json.decode(done.stdout)
