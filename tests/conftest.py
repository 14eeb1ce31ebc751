"""Pytest's configuration for every folder of tests.

TREADLE_TEST_QUICK, if set, has every file that marks a quick subset run that subset alone.
"""

import os


def pytest_configure(config):
    config.addinivalue_line("markers", "quick: a representative subset that takes less than a minute (-m quick)")


def pytest_collection_modifyitems(config, items):
    if not os.environ.get("TREADLE_TEST_QUICK"):
        return
    marked = {item.path for item in items if item.get_closest_marker("quick")}
    left_out = [item for item in items if item.path in marked and not item.get_closest_marker("quick")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
