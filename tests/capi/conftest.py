"""Fixtures for the tests of the C API."""

from tests.capi.harness import client

__all__ = ["client"]
