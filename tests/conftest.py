"""Pytest's configuration for every folder of tests."""


def pytest_configure(config):
    config.addinivalue_line("markers", "quick: a representative subset that takes less than a minute (-m quick)")
