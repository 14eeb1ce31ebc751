"""What each minor version of the PJRT C API added, as far as this Treadle has seen the headers.

Functions are slots of PJRT_Api; `Struct.field` is a field at the end of an existing struct; the rest are new types and
enum values. A test compares the names with the pinned header.
"""

from __future__ import annotations

from treadle.versions.api_version import ApiVersion

ADDED: dict[int, tuple[str, ...]] = {
    97: ("PJRT_ExecuteOptions.multi_slice_config",),
    98: ("PJRT_Buffer_Bitcast",),
    99: ("PJRT_Error_ForEachPayload",),
    100: ("PJRT_Device_PoisonExecution_Args.payload", "PJRT_Device_PoisonExecution_Args.num_payload"),
    101: ("PJRT_TopologyDescription_Fingerprint",),
    102: ("PJRT_Executable_ParameterMemoryKinds",),
    103: ("PJRT_Client_CreateErrorBuffer_Args.payload", "PJRT_Client_CreateErrorBuffer_Args.num_payload"),
    104: (
        "PJRT_Executable_GetCompiledMemoryStats_Args.total_allocation_bytes",
        "PJRT_Executable_GetCompiledMemoryStats_Args.indefinite_allocations",
        "PJRT_Executable_GetCompiledMemoryStats_Args.peak_unpadded_heap_bytes",
    ),
    105: ("PJRT_Memory_FunctionTable",),
    106: ("PJRT_Device_ClearMemoryStats",),
    107: ("PJRT_Error_FunctionTable",),
    108: ("PJRT_ExecuteOptions.use_major_to_minor_data_layout_for_callbacks",),
    109: ("PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace",),
    110: ("PJRT_TopologyDescription_GetMemorySpaceKindIds",),
    111: ("PJRT_LoadOptions", "PJRT_Executable_DeserializeAndLoad_Args.load_options"),
    112: (
        "PJRT_HloOutputCallbackInfo",
        "PJRT_ExecuteOptions.hlo_output_callbacks",
        "PJRT_ExecuteOptions.num_hlo_output_callbacks",
    ),
    113: (
        "PJRT_Device_MemoryStats_Args.peak_allocated_bytes",
        "PJRT_Device_MemoryStats_Args.peak_allocated_bytes_is_set",
    ),
    114: ("PJRT_Buffer_Type_F6E2M3FN", "PJRT_Buffer_Type_F6E3M2FN"),
}


def between(one: ApiVersion, other: ApiVersion) -> dict[str, tuple[str, ...] | None]:
    """What was added from the older to the newer of two versions of one major number, by version; None: not known."""
    older, newer = sorted((one, other))
    minors = range(older.minor + 1, newer.minor + 1)
    return {str(ApiVersion(newer.major, minor)): ADDED.get(minor) for minor in minors}
