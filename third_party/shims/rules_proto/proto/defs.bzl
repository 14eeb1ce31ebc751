"""Bazel 4's built-in protocol buffer rules under the names that its own tools load them by."""

ProtoInfo = ProtoInfo  # buildifier: disable=self-assignment
proto_lang_toolchain = native.proto_lang_toolchain
proto_library = native.proto_library
