"""Programs of several processes that go well."""

import numpy as np
import pytest

from tests.multihost.processes import run


def expected_devices(counts):
    """Id, process and local id of each device, for processes of so many devices."""
    ids = iter(range(sum(counts)))
    return [(next(ids), process, local) for process, count in enumerate(counts) for local in range(count)]


def check_devices(results, counts):
    table = expected_devices(counts)
    for index, result in enumerate(results):
        answer = result.answer
        assert (answer["count"], answer["index"], answer["global"]) == (len(counts), index, sum(counts))
        # JAX says None for the local id of a device that is not here.
        assert answer["devices"] == [[i, p, local if p == index else None] for i, p, local in table]
        assert answer["local"] == [i for i, p, _ in table if p == index]


def check_store(results):
    count = len(results)
    for index, result in enumerate(results):
        answer = result.answer
        assert answer["values"] == [[i, 0, 255] for i in range(count)]
        assert (answer["empty"], answer["text"], answer["tried"]) == ([], "grüße", [index, 0, 255])
        assert answer["late"][0] == "TimeoutError" and "test/never" in answer["late"][1]
        assert 0.4 < answer["waited"] < 10
        assert answer["absent"][0] == "KeyError" and "test/never" in answer["absent"][1]
        assert answer["endless"] == "grüße"
        assert answer["number"][0] == "TypeError"
        assert answer["twice"][0] == "KeyValueError" and "already exists" in answer["twice"][1]
        assert answer["store"] == [index, count]


def check_results(results, counts):
    table = expected_devices(counts)
    for index, result in enumerate(results):
        rng = np.random.default_rng(index)
        x, w = rng.standard_normal((5, 7), np.float32), rng.standard_normal((7, 3), np.float32)
        y = np.tanh(x @ w)
        gradient = x.T @ (2 * y * (1 - y * y))
        local = [i for i, p, _ in table if p == index]
        assert [devices for _, _, devices in result.answer["results"]] == [[i] for i in local]
        assert result.answer["default"] == local[:1]
        for value, slope, _ in result.answer["results"]:
            np.testing.assert_allclose(value, np.sum(y * y), rtol=1e-5)
            np.testing.assert_allclose(slope, gradient, rtol=1e-4, atol=1e-5)


def check_global_array(results, counts):
    table = expected_devices(counts)
    for index, result in enumerate(results):
        answer = result.answer
        assert answer["shape"] == [3 * sum(counts)] and not answer["whole"]
        assert answer["shards"] == [[i, [3.0 * i, 3.0 * i + 1, 3.0 * i + 2]] for i, p, _ in table if p == index]
        for key in ("collective", "elementwise"):
            kind, text = answer[key]
            assert kind == "JaxRuntimeError" and text.startswith("UNIMPLEMENTED: "), text
            assert "does not run programs across processes yet" in text
            assert f"process {index} (this one) has" in text and "jax.local_devices()" in text
        assert answer["statistics"][0] == "JaxRuntimeError", answer["statistics"]
        assert answer["elsewhere"][0] != "nothing", answer["elsewhere"]


@pytest.mark.parametrize(
    "counts",
    [pytest.param((1, 1), id="2 processes", marks=pytest.mark.quick), pytest.param((1, 2, 3, 1), id="4 processes")],
)
def test_everything(counts, tmp_path):
    # One folder for the compiled programs of all: nobody may get a program that is another's.
    common = {"JAX_COMPILATION_CACHE_DIR": str(tmp_path / "cache"), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    results = run("everything", [{**common, "TREADLE_NUM_DEVICES": str(n)} for n in counts], tmp_path)
    check_devices(results, counts)
    check_store(results)
    check_results(results, counts)
    check_global_array(results, counts)


def test_a_second_client_of_the_same_processes(tmp_path):
    results = run("again", [{"TREADLE_NUM_DEVICES": "2"}, {}], tmp_path)
    check_devices(results, (2, 1))
    for result in results:
        assert result.answer["sum"] == 10.0 and result.answer["kept"] == "1"


def test_late_processes_and_a_second_attempt(tmp_path):
    results = run("late", [{"TREADLE_HANDSHAKE_TIMEOUT": "1"}, {}], tmp_path)
    kind, text = results[0].answer["failed"]
    assert kind == "RuntimeError" and "did not come within 1 s: process 1." in text
    check_devices(results, (1, 1))


def test_one_process(tmp_path):
    (result,) = run("devices", [{"TREADLE_NUM_DEVICES": "2"}], tmp_path)
    check_devices([result], (2,))
