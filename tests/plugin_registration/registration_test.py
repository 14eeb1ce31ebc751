"""Who gets the backend, and what happens to those who did not ask. Each case is a Python process of its own."""

import os
import subprocess
import sys
import textwrap

import pytest

from treadle.plugin import library_path

LIBRARY = str(library_path())
MISSING = "/nonexistent/treadle_pjrt.so"


def python(code, **environment):
    """Runs `code`; a variable that is None is unset."""
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "XLA_", "TREADLE_", "PJRT_"))}
    variables |= {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "TREADLE_PLUGIN_PATH": LIBRARY}
    variables |= environment
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=variables,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def output(code, **environment):
    """What it prints; it must succeed and say nothing on stderr."""
    done = python(code, **environment)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.strip()


KIND = "import jax; print(jax.devices()[0].device_kind, len(jax.devices()))"


def test_asked_for():
    printed = output(
        """
        import jax
        print(jax.devices()[0].device_kind, jax.devices("treadle")[0].device_kind, jax.devices("cpu")[0].device_kind)
        print(jax.config.jax_platforms, jax.default_backend())
        """,
        JAX_PLATFORMS="treadle",
    )
    assert printed.splitlines() == ["Treadle CPU Treadle CPU cpu", "treadle,cpu cpu"]


@pytest.mark.parametrize("platforms, first", [("treadle,cpu", "Treadle CPU 1"), ("cpu,treadle", "cpu 1")])
def test_the_order_of_platforms_is_the_users(platforms, first):
    assert output(KIND, JAX_PLATFORMS=platforms) == first


def test_users_of_jaxlibs_backend_do_not_notice():
    printed = output(
        """
        import sys, jax
        print(jax.devices()[0].device_kind)
        print([name for name in sys.modules if name.startswith("treadle.") and name != "treadle.plugin"])
        print("treadle_pjrt" in open("/proc/self/maps").read(), jax.config.jax_platforms)
        """,
        JAX_PLATFORMS="cpu",
    )
    assert printed.splitlines() == ["cpu", "[]", "False cpu"]


def test_by_priority():
    """Nobody said anything: Treadle instead of jaxlib's own CPU backend, and quietly."""
    assert output(KIND) == "Treadle CPU 1"


@pytest.mark.parametrize("contents", [None, b"", b"\x7fELF and then nothing"])
def test_a_broken_library(tmp_path, contents):
    path = tmp_path / "treadle_pjrt.so"
    if contents is not None:
        path.write_bytes(contents)
    # Whoever asked is told why.
    failed = python(KIND, JAX_PLATFORMS="treadle", TREADLE_PLUGIN_PATH=str(path))
    assert failed.returncode != 0
    assert "Unable to initialize backend 'treadle': Treadle cannot be loaded" in failed.stderr
    assert str(path) in failed.stderr
    # Whoever did not is not disturbed.
    assert output(KIND, TREADLE_PLUGIN_PATH=str(path)) == "cpu 1"
    assert output(KIND, TREADLE_PLUGIN_PATH=str(path), JAX_PLATFORMS="cpu") == "cpu 1"


def test_no_experimental_warning():
    done = python(KIND, JAX_PLATFORMS="treadle", JAX_LOGGING_LEVEL="WARNING")
    assert done.returncode == 0
    assert "experimental" not in done.stderr


def test_registering_does_not_load_the_compiler():
    printed = output(
        """
        import sys, jax
        jax.devices()
        heavy = ("llvmlite", "treadle.compiler.driver", "treadle.compiler.codegen", "treadle.compiler.ir")
        print([name for name in sys.modules if name.startswith(heavy)])
        """,
        JAX_PLATFORMS="treadle",
    )
    assert printed == "[]"


@pytest.mark.parametrize(
    "environment, count",
    [
        ({"JAX_NUM_CPU_DEVICES": "3"}, 3),
        ({"XLA_FLAGS": "--xla_force_host_platform_device_count=4"}, 4),
        ({"JAX_NUM_CPU_DEVICES": "3", "XLA_FLAGS": "--xla_force_host_platform_device_count=4"}, 3),
        ({"TREADLE_NUM_DEVICES": "2", "JAX_NUM_CPU_DEVICES": "3"}, 2),
        ({"JAX_PJRT_CLIENT_CREATE_OPTIONS": "num_devices:5;num_threads:1", "TREADLE_NUM_DEVICES": "2"}, 5),
    ],
)
def test_number_of_devices(environment, count):
    assert output(KIND, JAX_PLATFORMS="treadle", **environment) == f"Treadle CPU {count}"


@pytest.mark.parametrize(
    "environment, text",
    [
        ({"JAX_PJRT_CLIENT_CREATE_OPTIONS": "colour:blue"}, "unknown option 'colour'; the known ones are num_devices"),
        ({"TREADLE_NUM_DEVICES": "many"}, "environment variable TREADLE_NUM_DEVICES='many'"),
        ({"TREADLE_NUM_THREADS": "-3"}, "environment variable TREADLE_NUM_THREADS='-3'"),
    ],
)
def test_bad_options_are_refused_loudly(environment, text):
    failed = python(KIND, JAX_PLATFORMS="treadle", **environment)
    assert failed.returncode != 0
    assert text in failed.stderr


def test_jax_plugins_stays_a_namespace_package():
    assert output("import jax_plugins; print(jax_plugins.__file__)") == "None"


CACHED = """
import jax, jax.numpy as jnp
from treadle.compiler import driver
calls, compile_request = [], driver.compile_request
def counting(*arguments):
    calls.append(1)
    return compile_request(*arguments)
driver.compile_request = counting
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
print(jax.jit(lambda x: x * 3 + 1)(jnp.float32(2)), len(calls))
"""


def test_persistent_compilation_cache(tmp_path):
    environment = {"JAX_PLATFORMS": "treadle", "JAX_COMPILATION_CACHE_DIR": str(tmp_path)}
    first, second = (output(CACHED, **environment).split() for _ in range(2))
    assert first[0] == second[0] == "7.0"
    assert int(first[1]) >= 1
    assert second[1] == "0"


def test_both_backends_side_by_side():
    printed = output(
        """
        import jax, numpy as np
        ours, theirs = jax.devices("treadle")[0], jax.devices("cpu")[0]
        x = jax.device_put(np.arange(3.0, dtype=np.float32), ours)
        y = jax.device_put(x, theirs)
        z = jax.device_put(y, ours)
        print(x.devices() == {ours}, y.devices() == {theirs}, z.devices() == {ours}, np.asarray(z).tolist())
        f = jax.jit(lambda v: v + 1)
        print(f(x).devices() == {ours}, f(y).devices() == {theirs})
        try:
            jax.jit(lambda a, b: a + b)(x, y)
        except ValueError as error:
            print("incompatible devices" in str(error))
        """,
        JAX_PLATFORMS="treadle",
    )
    assert printed.splitlines() == ["True True True [0.0, 1.0, 2.0]", "True True", "True"]


def test_a_forked_child_that_does_not_use_jax_ends():
    # A child that leaves through sys.exit would run the exit handlers of jaxlib's own CPU client, which crash there.
    printed = output(
        """
        import multiprocessing, warnings
        warnings.simplefilter("ignore")
        import jax, jax.numpy as jnp
        x = jnp.ones((600, 600))
        for _ in range(3):
            x = x @ x * 1e-3
        x.block_until_ready()
        with multiprocessing.get_context("fork").Pool(2) as pool:
            print(pool.map(abs, [-1, 2]))
        """,
        JAX_PLATFORMS="treadle",
    )
    assert printed == "[1, 2]"


def test_exit_while_a_program_runs():
    code = """
    import jax, jax.numpy as jnp
    f = jax.jit(lambda x: jax.lax.fori_loop(0, 200, lambda i, y: y @ x * 1e-3, x))
    f(jnp.ones((300, 300))).block_until_ready()
    for _ in range(10):
        y = f(jnp.ones((300, 300)))
    """
    assert output(code, JAX_PLATFORMS="treadle") == ""
