"""Events: asynchronous, shared, safe to destroy inside their own callback."""

import ctypes
import threading
import time

from pypjrt import errors

from tests.capi.harness import _KEPT, PLUGIN, Event, call, raises

CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


def on_ready(event, function):
    """Registers `function(error_handle)`."""
    callback = CALLBACK(lambda error, _: function(error))
    _KEPT.append(callback)
    call("PJRT_Event_OnReady", event=event.handle, callback=ctypes.cast(callback, ctypes.c_void_p).value, user_arg=None)


def set_(event, code=0, message=b""):
    text = ctypes.create_string_buffer(message)
    call(
        "PJRT_Event_Set",
        event=event.handle,
        error_code=code,
        error_message=ctypes.addressof(text),
        error_message_size=len(message),
    )


def new():
    return Event(call("PJRT_Event_Create").event)


def test_callbacks_run_in_order_and_late_ones_at_once():
    event, seen = new(), []
    on_ready(event, lambda e: seen.append((1, e)))
    on_ready(event, lambda e: seen.append((2, e)))
    assert not event.is_ready() and not seen
    set_(event)
    assert event.is_ready() and seen == [(1, None), (2, None)]
    on_ready(event, lambda e: seen.append((3, e)))
    assert seen[-1] == (3, None)
    event.close()


def test_destroyed_inside_its_callback():
    event, seen = new(), []

    def destroy(_error):
        event.close()
        seen.append("gone")

    on_ready(event, destroy)
    set_(event)
    assert seen == ["gone"]


def test_callback_of_an_event_whose_handle_is_gone():
    # JAX registers and destroys at once. A buffer's transfer keeps the event alive.
    event, seen = new(), []
    call(
        "PJRT_Event_OnReady", event=event.handle, callback=ctypes.cast(keep(seen), ctypes.c_void_p).value, user_arg=None
    )
    set_(event)
    event.close()
    assert seen == [None]


def keep(seen):
    callback = CALLBACK(lambda error, _: seen.append(error))
    _KEPT.append(callback)
    return callback


def test_an_error_is_a_fresh_object_for_everyone():
    event, handles = new(), []
    on_ready(event, handles.append)
    set_(event, 8, b"no room")
    for _ in range(2):
        handles.append(
            PLUGIN.fn("PJRT_Event_Error")(ctypes.byref(PLUGIN.args("PJRT_Event_Error_Args", event=event.handle)))
        )
    assert len(set(handles)) == 3 and None not in handles
    for handle in handles:
        assert call("PJRT_Error_GetCode", error=handle).code == 8
        PLUGIN.fn("PJRT_Error_Destroy")(ctypes.byref(PLUGIN.args("PJRT_Error_Destroy_Args", error=handle)))
    with raises(errors.ResourceExhausted, "no room"):
        event.wait()
    event.close()


def test_set_once():
    event = new()
    set_(event)
    with raises(errors.FailedPrecondition, "PJRT_Event_Set", "set already"):
        set_(event, 3, b"late")
    event.wait()
    event.close()


def test_error_of_a_pending_event():
    event = new()
    with raises(errors.FailedPrecondition, "PJRT_Event_Error", "not ready"):
        call("PJRT_Event_Error", event=event.handle)
    event.close()


def test_waiting_in_other_threads():
    event, woken = new(), []

    def wait():
        event.wait()
        woken.append(True)

    threads = [threading.Thread(target=wait) for _ in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(0.05)
    assert not woken
    set_(event)
    for thread in threads:
        thread.join(10)
    assert len(woken) == 4
    event.close()
