"""C++ targets with Treadle's flags: a warning is an error, and nothing is exported by default."""

COPTS = [
    "-Wall",
    "-Wextra",
    "-Werror",
    "-fvisibility=hidden",
    "-fvisibility-inlines-hidden",
    "-fno-semantic-interposition",
]

def treadle_cc_library(name, copts = [], deps = [], **kwargs):
    """A cc_library with Treadle's flags.

    Args:
      name: the target's name.
      copts: further compiler flags.
      deps: the libraries that it needs.
      **kwargs: passed to cc_library.
    """
    native.cc_library(
        name = name,
        copts = COPTS + ["-include", "plugin/portable_symbols.h"] + copts,
        linkstatic = True,
        deps = deps + ["//plugin:portable_symbols"],
        **kwargs
    )

def treadle_cc_test(name, copts = [], size = "small", **kwargs):
    """A cc_test with Treadle's flags.

    Args:
      name: the target's name.
      copts: further compiler flags.
      size: Bazel's test size.
      **kwargs: passed to cc_test.
    """
    native.cc_test(name = name, copts = COPTS + copts, size = size, linkstatic = True, **kwargs)

def treadle_shared_library(name, copts = [], linkopts = [], **kwargs):
    """A shared library whose undefined symbols are an error at link time.

    Args:
      name: the file's name, ending in .so.
      copts: further compiler flags.
      linkopts: further linker flags.
      **kwargs: passed to cc_binary.
    """
    native.cc_binary(
        name = name,
        copts = COPTS + copts,
        linkopts = ["-Wl,--no-undefined"] + linkopts,
        linkshared = True,
        **kwargs
    )

def treadle_plugin(name, version_script, deps, linkopts = [], **kwargs):
    """A shared library that exports what its version script lists and nothing else.

    Args:
      name: the file's name, ending in .so.
      version_script: the linker's version script.
      deps: the libraries that it is made of.
      linkopts: further linker flags.
      **kwargs: passed to cc_binary.
    """
    treadle_shared_library(
        name = name,
        linkopts = [
            "-Wl,--version-script=$(location %s)" % version_script,
            # Else the linker writes the output's path, and with it the kind of build, in its place.
            "-Wl,-soname,%s" % name,
            "-Wl,-z,now",
            "-Wl,-z,relro",
        ] + linkopts,
        deps = deps + [version_script],
        **kwargs
    )
