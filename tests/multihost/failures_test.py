"""Programs of several processes in which something is wrong: every process says what, and none waits for ever."""

import os
import signal
from pathlib import Path

import pytest

from tests.multihost.processes import describe, run

OTHER_VERSION = str(Path(os.environ["TREADLE_TEST_OTHER_VERSION"]).absolute())


@pytest.mark.quick
def test_a_process_that_never_comes(tmp_path):
    environment = {"TREADLE_HANDSHAKE_TIMEOUT": "3", "TEST_LEAVE_AT_ONCE": "1"}
    results = run("absent", [environment] * 3, tmp_path)
    for index in (0, 2):
        kind, text = results[index].answer["error"]
        print(text)
        assert kind == "RuntimeError" and "DEADLINE_EXCEEDED: PJRT_Client_Create: " in text
        assert f"handshake of process {index} of 3: 1 of 3 processes did not come within 3 s: process 1. " in text
        assert "Here are 0 (host " in text and f"{index} (host " in text and "this process)" in text
        assert "TREADLE_HANDSHAKE_TIMEOUT" in text and "jax.distributed.initialize" in text
        assert results[index].answer["waited"] < 10


# Also where nobody asked for Treadle: it must not be left out quietly, in one process and perhaps not in the other.
@pytest.mark.parametrize("platforms", ["treadle", ""])
def test_another_version_of_treadle(platforms, tmp_path):
    environments = [{"JAX_PLATFORMS": platforms}, {"JAX_PLATFORMS": platforms, "TREADLE_PLUGIN_PATH": OTHER_VERSION}]
    results = run("skewed", environments, tmp_path, expect_answers=False)
    for result in results:
        assert result.code != 0 and result.answer is None, describe(results)
        message = result.output[result.output.rfind("FAILED_PRECONDITION: PJRT_Client_Create: ") :]
        print(message)
        assert "the processes do not run the same software:" in message, describe(results)
        assert message.count("process 0 (host ") == 1 and message.count("process 1 (host ") == 1
        assert "Treadle 99.1.0, PJRT 0." in message and "jaxlib" in message


FORGED = """treadle-process 1 {version}
node_id={node_id}
num_nodes={num_nodes}
num_devices=1
pjrt_major=0
pjrt_minor=31
compiler=0
cpu_features=0
host=far-away
pid=77
nonce=0
"""


@pytest.mark.parametrize(
    "record, parts",
    [
        (
            FORGED.format(version="0.1.0", node_id=1, num_nodes=2),
            ["1 (host far-away, pid 77): Treadle 0.1.0, PJRT 0.31"],
        ),
        ("treadle-process 7 3.0.0\nanything", ["1: Treadle 3.0.0, whose record of format 7", "(format 1) cannot read"]),
    ],
    ids=["PJRT version", "record format"],
)
def test_a_forged_peer(record, parts, tmp_path):
    environment = {"FORGED_RECORD": record, "TEST_LEAVE_AT_ONCE": "1", "TREADLE_HANDSHAKE_TIMEOUT": "2"}
    results = run("forged", [environment] * 2, tmp_path)
    kind, text = results[0].answer["error"]
    print(text)
    assert kind == "RuntimeError" and "FAILED_PRECONDITION" in text
    for part in ("the processes do not run the same software", "process 0 (host ", *parts):
        assert part in text, text


def test_a_process_that_dies_later(tmp_path):
    results = run("killed", [{"TEST_LEAVE_AT_ONCE": "1"}] * 2, tmp_path, expect_answers=False)
    assert results[1].code == -signal.SIGKILL, describe(results)
    assert results[0].answer is not None, describe(results)
    assert results[0].answer["total"] == 999000.0
    assert results[0].answer["seconds"] < 20
    assert results[0].answer["absent"][0] == "KeyError"
