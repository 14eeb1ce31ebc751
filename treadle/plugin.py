"""Registers the plugin with JAX: finds the library, decides who gets it, and gives it its options.

All of JAX's users have this run when they start JAX, those of other backends too, so it does little
and never fails for someone who did not ask for Treadle.
"""

from __future__ import annotations

import functools
import logging
import os
import re
import warnings
from pathlib import Path
from typing import Any

NAME = "treadle"
LIBRARY = "treadle_pjrt.so"
PATH_VARIABLE = "TREADLE_PLUGIN_PATH"
DEVICES_VARIABLE = "TREADLE_NUM_DEVICES"

# Where JAX_PLATFORMS does not say which backend to use, JAX takes the one of the highest priority: its own CPU backend
# has 0, accelerators have 300 and more. So Treadle replaces the former, which is what people install it for, and
# yields to the latter.
PRIORITY = 100

_logger = logging.getLogger(__name__)


def library_path() -> Path:
    """The plugin's shared library.

    The one that TREADLE_PLUGIN_PATH names; else the wheel's; else, in a source tree and in Bazel's
    runfiles, the one that was built.

    Raises:
      FileNotFoundError: it is in none of these places.
    """
    if named := os.environ.get(PATH_VARIABLE):
        if not Path(named).is_file():
            raise FileNotFoundError(f"{PATH_VARIABLE} is {named!r}, and there is no such file")
        return Path(named).absolute()
    # Not resolved: in Bazel's runfiles this file is a link, and the library lies beside the link.
    package = Path(__file__).absolute().parent
    root = package.parent
    places = (package / "lib", root / "plugin", root / "bazel-bin" / "plugin")
    for place in places:
        if (place / LIBRARY).is_file():
            return place / LIBRARY
    raise FileNotFoundError(
        f"{LIBRARY} is in none of {', '.join(map(str, places))}; install Treadle's wheel, build "
        f"//plugin:{LIBRARY}, or name a file in {PATH_VARIABLE}"
    )


def create_options() -> dict[str, str | int]:
    """The options of a client, besides those that the user gives JAX in jax_pjrt_client_create_options."""
    from treadle import build_id, compile_hook, distributed, private_jax

    options: dict[str, str | int] = {
        "compile_fn": compile_hook.compile_address(),
        "compile_enabled": compile_hook.enabled_address(),
        "compiler_build_id": build_id.build_id(),
        "stablehlo_version": private_jax.resolve("jaxlib.mlir.dialects.stablehlo.get_current_version")(),
        "kv_hook": distributed.hook_address(),
    }
    if not os.environ.get(DEVICES_VARIABLE):  # the plugin reads it itself
        num_devices = _cpu_devices_of_jax()
        if num_devices is not None:
            options["num_devices"] = num_devices
    return options


def _cpu_devices_of_jax() -> int | None:
    """How many CPU devices JAX's own settings ask for, if they do."""
    import jax

    num_devices: int = jax.config.jax_num_cpu_devices
    if num_devices >= 1:
        return num_devices
    # The older way, which many scripts still use.
    flag = re.search(r"--xla_force_host_platform_device_count=(\d+)", os.environ.get("XLA_FLAGS", ""))
    return int(flag[1]) if flag and int(flag[1]) >= 1 else None


def initialize() -> None:
    """Called by JAX when it looks for plugins, before it makes any backend."""
    import jax

    platforms = [name.strip() for name in (jax.config.jax_platforms or "").split(",") if name.strip()]
    asked_for = NAME in platforms
    if platforms and not asked_for:
        return
    try:
        # In a distributed program never: JAX would give this process another backend than the others have.
        _register(fail_quietly=not asked_for and not jax.distributed.is_initialized())
    except Exception as error:
        if not asked_for:
            _logger.info("Treadle is not available: %s", error)
            return
        _register_failure(error)
    if asked_for and "cpu" not in platforms:
        # JAX runs callbacks and keeps some host values on jaxlib's CPU device.
        jax.config.update("jax_platforms", ",".join([*platforms, "cpu"]))


def _register(fail_quietly: bool) -> None:
    from treadle.private_jax import resolve

    # JAX's register_plugin does the same, but calls every plugin experimental that it does not know, and lets a plugin
    # that was not asked for stop the program.
    path = library_path()
    c_api = resolve("jaxlib.xla_client.load_pjrt_plugin_dynamically")(NAME, str(path))
    try:
        # Here and not with the client, because this is where jaxlib refuses a plugin of another version.
        resolve("jaxlib.xla_client.initialize_pjrt_plugin")(NAME)
    except Exception as error:
        raise RuntimeError(_refusal(path, error)) from error
    _warn_of_untested_versions()

    def make_client() -> Any:
        return resolve("jax._src.xla_bridge.make_pjrt_c_api_client")(NAME, options=create_options)

    def make_topology(topology_name: str = NAME, **options: Any) -> Any:
        make = resolve("jaxlib.xla_client.make_c_api_device_topology")
        return make(c_api, topology_name, **{**create_options(), **options})

    resolve("jax.extend.backend.register_backend_factory")(
        NAME,
        make_client,
        priority=PRIORITY,
        fail_quietly=fail_quietly,
        experimental=False,
        make_topology=make_topology,
        c_api=c_api,
    )


def _refusal(path: Path, error: Exception) -> str:
    """What to tell whoever has a plugin that jaxlib does not take: which versions there are and what to install."""
    from treadle.versions import known, library, rules, tested

    plugin = library.api_version(path)
    jaxlib = tested.installed("jaxlib")
    release = known.release(jaxlib) if jaxlib else None
    speaks = f" (PJRT {release.pjrt})" if release else ""
    return (
        f"jaxlib {jaxlib}{speaks} refuses {path}, which was built for PJRT {plugin} ({str(error).rstrip('.')}). "
        f"To get a pair that fits: {rules.remedy(plugin)}."
    )


@functools.cache
def _warn_of_untested_versions() -> None:
    """One line, once in a process."""
    from treadle.versions import tested

    if sentence := tested.untested_sentence():
        # Not of a line of this file: that would be printed as a second line, and says nothing.
        warnings.warn_explicit(sentence, tested.UntestedVersionWarning, NAME, 1, module=NAME)


def _register_failure(error: Exception) -> None:
    """Lets JAX report the reason, where it would say that it knows no such backend."""
    from treadle.private_jax import resolve

    def fail() -> Any:
        raise RuntimeError(f"Treadle cannot be loaded: {error}") from error

    resolve("jax.extend.backend.register_backend_factory")(
        NAME, fail, priority=PRIORITY, fail_quietly=False, experimental=False
    )
