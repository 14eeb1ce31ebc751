"""The table: every slot filled, every error named, sizes as the header says."""

import ctypes

import pytest
from pypjrt import errors

from tests.capi.harness import PLUGIN, call, raises

RETURN_NOTHING = {"PJRT_Error_Destroy", "PJRT_Error_Message"}
SLOTS = sorted(PLUGIN.abi.SLOT, key=PLUGIN.abi.SLOT.__getitem__)
# With all arguments zero these make something.
MAKE_SOMETHING = {
    "PJRT_Client_Create",
    "PJRT_Event_Create",
    "PJRT_ExecuteContext_Create",
    "PJRT_TopologyDescription_Create",
}
# Slots that this version answers with UNIMPLEMENTED; a slot that gets a function leaves this list.
STUBS = {
    "PJRT_AsyncTrackingEvent_Destroy",
    "PJRT_Client_CreateAliasBuffer",
    "PJRT_Client_FulfillAliasBuffer",
    "PJRT_CopyToDeviceStream_AddChunk",
    "PJRT_CopyToDeviceStream_CurrentBytes",
    "PJRT_CopyToDeviceStream_Destroy",
    "PJRT_CopyToDeviceStream_GranuleSize",
    "PJRT_CopyToDeviceStream_TotalBytes",
    "PJRT_Device_CreateAsyncTrackingEvent",
    "PJRT_Device_PoisonExecution",
    "PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace",
}


def test_version_and_size():
    assert PLUGIN.api_version == (0, 114)
    assert PLUGIN.n_slots == 138 == len(SLOTS)


def test_no_slot_is_null():
    vtable = PLUGIN.api + PLUGIN.abi.VTABLE_OFFSET
    assert all(ctypes.cast(vtable, ctypes.POINTER(ctypes.c_void_p))[i] for i in range(138))


@pytest.mark.parametrize("slot", [s for s in SLOTS if s not in RETURN_NOTHING])
def test_a_struct_that_is_too_small_is_refused_by_name(slot):
    args = PLUGIN.args(f"{slot}_Args")
    args.struct_size = 4
    with raises(errors.InvalidArgument, f"{slot}: ", "struct_size is 4"):
        PLUGIN.call(slot, args)


@pytest.mark.parametrize("slot", sorted(STUBS))
def test_a_stub_names_itself(slot):
    with raises(errors.Unimplemented, f"{slot}: "):
        call(slot)


def test_only_the_stubs_are_unimplemented():
    unimplemented = set()
    for slot in SLOTS:
        if slot in RETURN_NOTHING | MAKE_SOMETHING:
            continue
        try:
            call(slot)
        except errors.Unimplemented:
            unimplemented.add(slot)
        except errors.PjrtError as error:
            assert slot in str(error)
    assert unimplemented == STUBS


def test_destroying_null_is_nothing():
    for kind, field in {
        "Event": "event",
        "Client": "client",
        "Executable": "executable",
        "LoadedExecutable": "executable",
        "Buffer": "buffer",
        "TopologyDescription": "topology",
        "ExecuteContext": "context",
        "AsyncHostToDeviceTransferManager": "transfer_manager",
    }.items():
        call(f"PJRT_{kind}_Destroy", **{field: None})
    PLUGIN.fn("PJRT_Error_Destroy")(ctypes.byref(PLUGIN.args("PJRT_Error_Destroy_Args", error=None)))


def test_attributes():
    attributes = PLUGIN.attributes
    assert attributes["xla_version"] >= 2
    assert tuple(attributes["stablehlo_minimum_version"]) == (0, 9, 0)
    assert tuple(attributes["stablehlo_current_version"]) >= (1, 17, 0)


def test_errors_carry_payloads():
    # An error made by a client: what CreateErrorBuffer attaches comes back through the event.
    from tests.capi.harness import Buffer, Client, int64s, named_values

    client = Client()
    dims = int64s([2])
    text = ctypes.create_string_buffer(b"it broke")
    payload = named_values({"where": "here"})
    args = call(
        "PJRT_Client_CreateErrorBuffer",
        client=client.handle,
        error_code=14,
        error_message=ctypes.addressof(text),
        error_message_size=8,
        shape_dims=ctypes.addressof(dims),
        shape_num_dims=1,
        shape_element_type=11,
        memory=client.memories[0],
        payload=ctypes.addressof(payload),
        num_payload=1,
    )
    buffer = Buffer(args.buffer)
    event = buffer.ready()
    error = PLUGIN.fn("PJRT_Event_Error")(ctypes.byref(PLUGIN.args("PJRT_Event_Error_Args", event=event.handle)))
    assert error
    seen = []
    visitor = ctypes.CFUNCTYPE(
        None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p
    )(lambda k, n, v, m, _: seen.append((ctypes.string_at(k, n), ctypes.string_at(v, m))))
    call("PJRT_Error_ForEachPayload", error=error, visitor=ctypes.cast(visitor, ctypes.c_void_p).value)
    assert seen == [(b"where", b"here")]
    assert call("PJRT_Error_GetCode", error=error).code == 14
    PLUGIN.fn("PJRT_Error_Destroy")(ctypes.byref(PLUGIN.args("PJRT_Error_Destroy_Args", error=error)))
    with raises(errors.Unavailable, "it broke"):
        buffer.numpy()
    event.close()
    buffer.close()
    client.close()
