"""Compiled programs as bytes."""
