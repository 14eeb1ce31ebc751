"""The compile options that JAX sends: a serialized `xla.CompileOptionsProto`.

Read here and not by jaxlib, whose parser takes garbage without a word. Only what Treadle acts on is
read; the rest (debug options of XLA, layouts) is checked for well-formedness and ignored.
"""

from __future__ import annotations

import dataclasses

from treadle.compiler.errors import CompileError, StatusCode
from treadle.compiler.frontend import protobuf

# CompileOptionsProto
_EXECUTABLE_BUILD_OPTIONS = 3
_COMPILE_PORTABLE_EXECUTABLE = 4
_ENV_OPTION_OVERRIDES = 7
# ExecutableBuildOptionsProto
_NUM_REPLICAS = 4
_NUM_PARTITIONS = 5
_USE_SPMD_PARTITIONING = 6
_DEVICE_ASSIGNMENT = 9
# DeviceAssignmentProto and its ComputationDevice
_REPLICA_COUNT = 1
_COMPUTATION_COUNT = 2
_COMPUTATION_DEVICES = 3
_REPLICA_DEVICE_IDS = 1

# An entry of a protobuf map.
_MAP_KEY = 1

_MAX_DEVICES = 1 << 20

# What `jax.jit(compiler_options=...)` may say besides XLA's own flags. All of them are about XLA:
# accepted, without effect.
_KNOWN_OVERRIDES = frozenset(
    ("exec_time_optimization_effort", "memory_fitting_effort", "memory_fitting_level", "optimization_level")
)


@dataclasses.dataclass(frozen=True, slots=True)
class CompileOptions:
    """What a compile is for.

    Attributes:
      num_replicas: copies of the program that run on different data.
      num_partitions: parts that the program is split into.
      device_assignment: device ids, replica-major; empty when they are not named, or for a portable executable.
      use_spmd_partitioning: the program carries shardings for all partitions at once.
    """

    num_replicas: int = 1
    num_partitions: int = 1
    device_assignment: tuple[int, ...] = ()
    use_spmd_partitioning: bool = False

    @property
    def num_devices(self) -> int:
        return self.num_replicas * self.num_partitions


def parse_options(data: bytes) -> CompileOptions:
    """Reads a CompileOptionsProto; empty bytes are the default options.

    Raises:
      CompileError: INVALID_ARGUMENT for bytes that are not one, or options that contradict
        themselves.
    """
    try:
        return _parse(data)
    except (protobuf.WireError, _OptionsError) as e:
        raise CompileError(
            StatusCode.INVALID_ARGUMENT,
            f"The compile options ({len(data)} bytes) are not a valid xla.CompileOptionsProto: {e}.",
        ) from None


class _OptionsError(ValueError):
    pass


def _parse(data: bytes) -> CompileOptions:
    build: dict[int, int | bytes] = {}
    portable = False
    for number, value in protobuf.fields(data):
        if number == _EXECUTABLE_BUILD_OPTIONS:
            build.update(protobuf.fields(_message(value, "executable_build_options")))
        elif number == _COMPILE_PORTABLE_EXECUTABLE:
            portable = bool(_number(value, "compile_portable_executable"))
        elif number == _ENV_OPTION_OVERRIDES:
            _check_override(_message(value, "env_option_overrides"))
    # The proto's 0 is "not set".
    replicas = _number(build.get(_NUM_REPLICAS, 0), "num_replicas") or 1
    partitions = _number(build.get(_NUM_PARTITIONS, 0), "num_partitions") or 1
    for name, count in (("num_replicas", replicas), ("num_partitions", partitions)):
        if not 1 <= count <= _MAX_DEVICES:
            raise _OptionsError(f"{name} is {count}")
    devices: tuple[int, ...] = ()  # the runtime takes those of the process
    if _DEVICE_ASSIGNMENT in build:
        assignment = _message(build[_DEVICE_ASSIGNMENT], "device_assignment")
        devices = _device_assignment(assignment, replicas, partitions)
    spmd = bool(_number(build.get(_USE_SPMD_PARTITIONING, 0), "use_spmd_partitioning"))
    return CompileOptions(replicas, partitions, () if portable else devices, spmd)


def _check_override(entry: bytes) -> None:
    """A name that is neither a flag of XLA's nor known is the user's mistake; the words are jaxlib's."""
    for number, value in protobuf.fields(entry):
        if number == _MAP_KEY:
            name = _message(value, "a compile option's name").decode("utf-8", "replace")
            if not name.startswith("xla_") and name not in _KNOWN_OVERRIDES:
                raise CompileError(
                    StatusCode.INVALID_ARGUMENT,
                    f"No such compile option: '{name}'. Treadle accepts XLA's flags (xla_...), which have no effect "
                    f"on it, and {', '.join(sorted(_KNOWN_OVERRIDES))}.",
                )


def _device_assignment(data: bytes, replicas: int, partitions: int) -> tuple[int, ...]:
    """Ids in replica-major order; the proto lists them by partition."""
    counts = {_REPLICA_COUNT: 0, _COMPUTATION_COUNT: 0}
    by_partition: list[list[int]] = []
    for number, value in protobuf.fields(data):
        if number in counts:
            counts[number] = _number(value, "device_assignment's counts")
        elif number == _COMPUTATION_DEVICES:
            ids: list[int] = []
            for inner, inner_value in protobuf.fields(_message(value, "computation_devices")):
                if inner == _REPLICA_DEVICE_IDS:
                    ids += protobuf.integers(inner_value)
            by_partition.append(ids)
    shape = (counts[_REPLICA_COUNT], counts[_COMPUTATION_COUNT])
    if shape != (replicas, partitions):
        raise _OptionsError(
            f"the device assignment is for {shape[0]} replicas and {shape[1]} partitions, the "
            f"options for {replicas} and {partitions}"
        )
    if len(by_partition) != partitions or any(len(ids) != replicas for ids in by_partition):
        raise _OptionsError("the device assignment does not list a device for each part")
    return tuple(by_partition[p][r] for r in range(replicas) for p in range(partitions))


def _message(value: int | bytes, name: str) -> bytes:
    if isinstance(value, int):
        raise _OptionsError(f"{name} is a number")
    return value


def _number(value: int | bytes, name: str) -> int:
    if not isinstance(value, int):
        raise _OptionsError(f"{name} is not a number")
    return protobuf.signed(value)
