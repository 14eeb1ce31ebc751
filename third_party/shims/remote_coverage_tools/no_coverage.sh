#!/bin/sh
echo "This workspace has no coverage tools: 'bazel coverage' is not supported." >&2
exit 1
