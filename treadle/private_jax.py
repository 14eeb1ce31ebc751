"""Every name and layout of JAX and jaxlib that Treadle relies on and that no promise of compatibility covers.

The plugin's half takes its names from here with `resolve`, when it needs them: importing this module loads
neither JAX nor MLIR. The compiler's half imports MLIR in `frontend/mlir.py` alone; those names are listed all the
same. What no name shows (the fields of a class, a text in a log) is a layout, and `treadle/versions/canary.py` holds
the code that tries it.

`check` verifies all of it on the installed jaxlib: `python -m treadle versions --private`.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PLUGIN = ("treadle/plugin.py",)
_MEASURE = ("treadle/versions/measure.py",)
_MLIR = ("treadle/compiler/frontend/mlir.py",)
_ATTRIBUTES = ("treadle/compiler/frontend/attributes.py",)
_LOCATIONS = ("treadle/compiler/frontend/locations.py",)
_CANARY = ("treadle/versions/canary.py",)
_CONVERT = ("treadle/compiler/frontend/convert.py",)


@dataclass(frozen=True, slots=True)
class Private:
    """Something that Treadle relies on.

    Attributes:
      name: the dotted name; of a layout, a description.
      why: what Treadle does with it.
      users: the files that rely on it.
      layout: the function of canary.py that tries it; empty for a name.
    """

    name: str
    why: str
    users: tuple[str, ...]
    layout: str = ""


@dataclass(frozen=True, slots=True)
class Broken:
    """An entry that the installed jaxlib does not satisfy, and how."""

    entry: Private
    problem: str


def _names(prefix: str, names: str, why: str, users: tuple[str, ...]) -> Iterator[Private]:
    for name in names.split():
        yield Private(f"{prefix}.{name}", why, users)


ENTRIES: tuple[Private, ...] = (
    # Registration.
    *_names(
        "jax",
        "config.jax_platforms config.update",
        "whether the user asked for Treadle; `cpu` is put behind it",
        _PLUGIN,
    ),
    *_names("jax", "config.jax_num_cpu_devices", "how many virtual devices the user wants", _PLUGIN),
    *_names("jax", "extend.backend.register_backend_factory", "makes the backend known", _PLUGIN),
    *_names("jax", "extend.backend.get_backend", "makes the client", ("treadle/distributed.py",)),
    *_names("jax._src.xla_bridge", "make_pjrt_c_api_client", "makes the client, with JAX's own options", _PLUGIN),
    *_names("jaxlib.xla_client", "make_c_api_device_topology", "compiling ahead of time, without devices", _PLUGIN),
    *_names(
        "jaxlib.xla_client",
        "load_pjrt_plugin_dynamically initialize_pjrt_plugin",
        "loads the plugin; jaxlib refuses another major version when it initialises it, and logs its own version",
        _PLUGIN + _MEASURE,
    ),
    *_names(
        "jaxlib.mlir.dialects.stablehlo",
        "get_current_version",
        "the plugin tells JAX to send programs in this version",
        _PLUGIN + _MEASURE,
    ),
    *_names("jaxlib.mlir.dialects.stablehlo", "get_minimum_version", "shown by `treadle versions`", _MEASURE),
    # The compiler's frontend.
    *_names("jaxlib.mlir", "ir passmanager", "MLIR's bindings", _MLIR),
    *_names(
        "jaxlib.mlir.ir",
        "Context DialectRegistry Module Module.parse MLIRError Diagnostic DiagnosticSeverity.ERROR",
        "reads a program and its diagnostics",
        _MLIR,
    ),
    *_names("jaxlib.mlir.passmanager", "PassManager.parse", "runs the passes that make a program StableHLO", _MLIR),
    *_names("jaxlib.mlir._mlir_libs", "_jax_mlir_ext.register_dialects", "the dialects that JAX writes", _MLIR),
    *_names(
        "jaxlib.mlir.dialects",
        "chlo.register_dialect mhlo.register_mhlo_dialect sdy.register_dialect stablehlo.register_dialect "
        "stablehlo.register_stablehlo_passes",
        "the dialects and passes of a context",
        _MLIR,
    ),
    *_names(
        "jaxlib.mlir.ir",
        "ArrayAttr Attribute BoolAttr DenseBoolArrayAttr DenseI32ArrayAttr DenseI64ArrayAttr DenseIntElementsAttr "
        "DictAttr FlatSymbolRefAttr FloatAttr IntegerAttr StringAttr UnitAttr",
        "attributes as plain values",
        (*_ATTRIBUTES, "treadle/compiler/frontend/arguments.py"),
    ),
    *_names("jaxlib.mlir.ir", "DenseElementsAttr", "constants", ("treadle/compiler/frontend/constants.py",)),
    *_names("jaxlib.mlir.ir", "Location NameLoc CallSiteLoc FusedLoc FileLineColLoc", "where an op is", _LOCATIONS),
    *_names("jaxlib.mlir.ir", "RankedTensorType Type", "types", ("treadle/compiler/frontend/types.py",)),
    *_names("jaxlib.mlir.ir", "Block Operation Region Value", "walks a program", _CONVERT),
    *_names(
        "jaxlib.mlir.dialects.stablehlo",
        "ComparisonDirectionAttr ComparisonTypeAttr ConvDimensionNumbers DotDimensionNumbers GatherDimensionNumbers "
        "ScatterDimensionNumbers",
        "the attributes that are StableHLO's own enums and structs",
        (*_ATTRIBUTES, "treadle/compiler/frontend/ops.py"),
    ),
    # What the canary looks at to try the layouts below.
    *_names("jax._src.interpreters.mlir", "_platforms_with_donation", "where JAX donates arguments", _CANARY),
    *_names("jaxlib.xla_client", "CompileOptions", "makes compile options", _CANARY),
    # Layouts.
    Private("arguments of register_backend_factory", "registering with a priority", _PLUGIN, "factory_arguments"),
    Private("options of make_pjrt_c_api_client are a function", "asked when the client is made", _PLUGIN, "options"),
    Private("the log of initialize_pjrt_plugin", "says which PJRT version jaxlib speaks", _MEASURE, "log"),
    Private("the FFI header of jaxlib", "says which XLA FFI version jaxlib speaks", _MEASURE, "ffi_header"),
    Private("JAX donates on the platform cpu", "the plugin calls itself cpu to get donation", _CANARY, "donation"),
    Private(
        "the mark of donated arguments",
        "a result may take their memory",
        ("treadle/compiler/frontend/arguments.py",),
        "donated_arguments",
    ),
    Private(
        "the passes that the frontend runs",
        "from VHLO and CHLO to StableHLO",
        _MLIR,
        "passes",
    ),
    Private(
        "diagnostics are handed out", "jaxlib's own collection ends the process on some text", _MLIR, "diagnostics"
    ),
    Private("the fields of StableHLO's structs and enums", "attributes as plain values", _ATTRIBUTES, "structs"),
    Private("the fields of locations", "where an op is in the user's program", _LOCATIONS, "locations"),
    Private("the kinds of attributes, types and constants", "a program becomes Treadle's IR", _CONVERT, "program"),
    Private(
        "the fields of CompileOptionsProto",
        "devices and partitions of a compile",
        ("treadle/compiler/frontend/options.py",),
        "compile_options",
    ),
)

_LISTED = frozenset(entry.name for entry in ENTRIES if not entry.layout)


def resolve(name: str) -> Any:
    """The object of that name, imported now.

    Raises:
      LookupError: the name is not listed above.
      ImportError: its package or module is not there.
      AttributeError: its module lacks it.
    """
    if name not in _LISTED:
        raise LookupError(f"{name} is not among the private names that treadle/private_jax.py lists")
    return _import(name)


def _import(name: str) -> Any:
    """The object that a dotted name means: the longest part that is a module, and attributes of it."""
    parts = name.split(".")
    found: Any = importlib.import_module(parts[0])
    for i, part in enumerate(parts[1:], start=1):
        path = ".".join(parts[:i])
        if not hasattr(found, part) and hasattr(found, "__path__"):
            try:
                found = importlib.import_module(f"{path}.{part}")
                continue
            except ModuleNotFoundError as error:
                if error.name != f"{path}.{part}":
                    raise
        if not hasattr(found, part):
            raise AttributeError(f"{path} has no {part}")
        found = getattr(found, part)
    return found


def ffi_header() -> Path:
    """XLA's FFI header as jaxlib carries it. Raises ImportError without jaxlib."""
    import jaxlib

    return Path(jaxlib.__path__[0]) / "include" / "xla" / "ffi" / "api" / "c_api.h"


def check(extra: Iterable[str] = ()) -> list[Broken]:
    """What the installed JAX and jaxlib do not satisfy; imports both.

    Args:
      extra: further names that must be there: how a test of whoever asks makes it fail.
    """
    from treadle.versions import canary

    broken = []
    for entry in (*ENTRIES, *(Private(name, "asked for by the caller", ()) for name in extra)):
        try:
            if entry.layout:
                getattr(canary, entry.layout)()
            else:
                _import(entry.name)
        except Exception as error:
            broken.append(Broken(entry, f"{type(error).__name__}: {error}"))
    return broken
