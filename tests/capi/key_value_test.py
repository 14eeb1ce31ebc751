"""The key-value callbacks of PJRT_Client_Create: a store that the test plays."""

from __future__ import annotations

import contextlib
import ctypes
from typing import Any

import pytest
from pypjrt import errors

from tests.capi.harness import PLUGIN, Client, call, named_values, raises
from tests.capi.members import ALREADY_EXISTS, PERMISSION_DENIED, Member, Store, meet
from treadle import distributed


@pytest.fixture
def stores() -> list[Store]:
    values: dict[bytes, bytes] = {}
    return [Store(values), Store(values)]


def test_values_are_given_back_once_and_arguments_passed_on(stores):
    for member in meet(stores, [2, 1]):
        member.close()
    for store in stores:
        assert store.returned == 1 and not store.lent  # the other's record
        assert store.user_args == {100, 101, 102}
        assert len(store.timeouts) == 1 and 0 < store.timeouts[0] <= 20_000


def test_a_caller_that_is_older_than_kv_try_get(stores):
    """Its struct ends before the field, which holds rubbish; kv_get with a short timeout has to do."""
    members = meet(stores, [1, 1], try_get=False)
    for member, store in zip(members, stores, strict=True):
        assert len(member.all_devices) == 2
        assert store.user_args == {100, 101}
        assert store.timeouts[0] <= 100
        member.close()


@pytest.mark.parametrize("code, kind", [(PERMISSION_DENIED, errors.PermissionDenied), (14, errors.Unavailable)])
def test_an_error_of_the_store_keeps_its_code(stores, code, kind):
    stores[0].refusal = code
    with raises(kind, "PJRT_Client_Create: handshake of process 0 of 2: ", "the store says no"):
        Member(stores[0], 0, 2)


def test_a_code_that_is_none(stores):
    stores[0].refusal = 4242
    with raises(errors.Unknown, "the store says no"):
        Member(stores[0], 0, 2)


def test_no_callbacks():
    with raises(errors.InvalidArgument, "num_nodes is 2", "no key-value store"):
        Client(num_nodes=2, node_id=0)
    Client(num_nodes=1, node_id=0).close()  # has nobody to meet


def test_callbacks_are_rubbish_without_num_nodes():
    """So JAX leaves them in a program that is not distributed, with kv_hook given all the same."""
    seen: list[Any] = []
    with hook(seen.append) as address:
        values = named_values({"kv_hook": address})
        args = PLUGIN.args(
            "PJRT_Client_Create_Args",
            create_options=ctypes.addressof(values),
            num_options=1,
            **{f"kv_{name}_{part}": 0xDEAD for name in ("get", "put", "try_get") for part in ("callback", "user_arg")},
        )
        assert not PLUGIN.fn("PJRT_Client_Create")(ctypes.byref(args))
        call("PJRT_Client_Destroy", client=args.client)
    assert seen == []


@contextlib.contextmanager
def hook(function: Any) -> Any:
    callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(function)
    yield ctypes.cast(callback, ctypes.c_void_p).value


def test_the_store_through_the_plugin(stores):
    taken: list[Any] = []

    with hook(lambda functions: taken.append(distributed._Handle(functions))) as address:
        member = Member(stores[0], 0, 1, kv_hook=address)
    (handle,) = taken
    assert handle.functions.struct_size == ctypes.sizeof(handle.functions)
    store = distributed.KeyValueStore(handle, None)
    assert (store.process_index, store.process_count) == (0, 1)
    for key, value in [("a", b"\0\1\0"), ("b", b""), ("ключ", b"x" * 100_000)]:
        store.put(key, value)
        assert store.try_get(key) == store.get(key, 5) == value
        assert stores[0].values[key.encode()] == value
    store.put("text", "grüße")
    assert store.get("text").decode() == "grüße"
    with pytest.raises(KeyError, match="nothing"):
        store.try_get("nothing")
    with pytest.raises(TimeoutError, match="no nothing"):
        store.get("nothing", 0.05)
    assert stores[0].timeouts[-1] == 50
    for timeout in (0, -1, float("nan")):
        with pytest.raises(ValueError, match="must be positive"):
            store.get("nothing", timeout)
    with pytest.raises(distributed.KeyValueError, match="there is a") as caught:
        store.put("a", b"again")
    assert caught.value.code == ALREADY_EXISTS
    assert stores[0].returned == 7 and not stores[0].lent
    member.close()
    for use in (lambda: store.try_get("a"), lambda: store.get("a", 1), lambda: store.put("z", b"")):
        with pytest.raises(distributed.KeyValueError, match="has been destroyed") as caught:
            use()
        assert caught.value.code == 9
