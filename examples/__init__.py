"""Programs that show Treadle at work; each runs as a module, and as a Bazel target of its name."""
