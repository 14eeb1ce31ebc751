"""A pytest plugin for Bazel's `shard_count`: each shard runs every n-th test.

Bazel starts the test once a shard and says which one it is in two variables. Creating
the status file tells Bazel that the runner knows of sharding.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselects what the other shards run."""
    shards = int(os.environ.get("TEST_TOTAL_SHARDS") or 1)
    if shards == 1:
        return
    index = int(os.environ["TEST_SHARD_INDEX"])
    if status := os.environ.get("TEST_SHARD_STATUS_FILE"):
        Path(status).touch()
    config.hook.pytest_deselected(items=[item for i, item in enumerate(items) if i % shards != index])
    items[:] = items[index::shards]
