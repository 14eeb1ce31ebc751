"""MLIR locations as `ir.core.Location`, read only when somebody asks.

JAX gives nearly every op a location of its own, and nearly no location is ever looked at: reading
them all would cost more than converting the ops.
"""

from __future__ import annotations

from typing import Any

from treadle.compiler.frontend.mlir import ir
from treadle.compiler.ir.core import Location


class MlirLocation(Location):
    """A Location that reads its fields from MLIR on first use.

    The fields are slots that stay empty until `__getattr__` (which Python calls for an empty slot)
    fills them. Holding one keeps its MLIR context alive, not the module.
    """

    __slots__ = ("_caller", "_mlir")
    _mlir: ir.Location
    _caller: Location | None

    def __init__(self, location: ir.Location, caller: Location | None = None):
        """Of an op at `location`, in a function that was inlined at `caller`."""
        # Not Location.__init__: it would fill the slots.
        object.__setattr__(self, "_mlir", location)
        object.__setattr__(self, "_caller", caller)

    def __getattr__(self, field: str) -> Any:
        if field not in ("name", "file", "line"):
            raise AttributeError(field)
        try:
            name, file, line = read_location(self._mlir)
        except UnicodeDecodeError:
            name, file, line = "", "", 0
        caller = self._caller
        if caller is not None:
            # JAX lowers a function once and names the ops in it from there on.
            if caller.name and not name.startswith(caller.name):
                name = f"{caller.name}/{name}" if name else caller.name
            if not file:
                file, line = caller.file, caller.line
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "file", file)
        object.__setattr__(self, "line", line)
        return object.__getattribute__(self, field)

    def __reduce__(self) -> tuple[type[Location], tuple[str, str, int]]:
        return Location, (self.name, self.file, self.line)


def read_location(location: ir.Location) -> tuple[str, str, int]:
    """Name stack, file and line of the innermost frame that `location` tells of.

    JAX writes `"jit(f)/add"(callsite("g"("file.py":3:4) at callsite(...)))`: the outermost name is
    the name stack, inner names are functions, and a call site's callee is the inner frame.
    """
    name = ""
    while True:
        if isinstance(location, ir.NameLoc):
            name = name or location.name_str
            location = location.child_loc
        elif isinstance(location, ir.CallSiteLoc):
            location = location.callee
        elif isinstance(location, ir.FusedLoc):
            inner = location.locations
            if not inner:
                return name, "", 0
            location = inner[0]
        elif isinstance(location, ir.FileLineColLoc):
            return name, location.filename, location.start_line
        else:
            return name, "", 0
