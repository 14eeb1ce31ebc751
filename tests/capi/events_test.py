"""Events: asynchronous, shared, safe to destroy inside their own callback."""

import ctypes
import threading
import time

from pypjrt import errors

from tests.capi.harness import PLUGIN, Event, call, raises


def test_callbacks_run_in_order_and_late_ones_at_once():
    event, seen = Event.new(), []
    event.on_ready(lambda e: seen.append((1, e)))
    event.on_ready(lambda e: seen.append((2, e)))
    assert not event.is_ready() and not seen
    event.set()
    assert event.is_ready() and seen == [(1, None), (2, None)]
    event.on_ready(lambda e: seen.append((3, e)))
    assert seen[-1] == (3, None)
    event.close()


def test_destroyed_inside_its_callback():
    event, seen = Event.new(), []

    def destroy(_error):
        event.close()
        seen.append("gone")

    event.on_ready(destroy)
    event.set()
    assert seen == ["gone"]


def test_an_error_is_a_fresh_object_for_everyone():
    event = Event.new()
    handles: list[int | None] = []
    event.on_ready(handles.append)
    event.set(8, b"no room")
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
    event = Event.new()
    event.set()
    with raises(errors.FailedPrecondition, "PJRT_Event_Set", "set already"):
        event.set(3, b"late")
    event.wait()
    event.close()


def test_error_of_a_pending_event():
    event = Event.new()
    with raises(errors.FailedPrecondition, "PJRT_Event_Error", "not ready"):
        call("PJRT_Event_Error", event=event.handle)
    event.close()


def test_waiting_in_other_threads():
    event, woken = Event.new(), []

    def wait():
        event.wait()
        woken.append(True)

    threads = [threading.Thread(target=wait) for _ in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(0.05)
    assert not woken
    event.set()
    for thread in threads:
        thread.join(10)
    assert len(woken) == 4
    event.close()
