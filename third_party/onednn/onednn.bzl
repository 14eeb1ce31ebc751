"""Makes `@onednn`: oneDNN's headers, one copy of its library, and the libgomp it needs.

The wheels hold the library three times; one is kept, under its soname. libgomp is
GCC's: the compiler that builds the plugin says where its own is.
"""

load("@versions//:versions.bzl", "VERSIONS")
load("//third_party/python:interpreter.bzl", "INTERPRETER_VARIABLES", "run_environment")

_LIBGOMP_NOTICE = """libgomp.so.1 is GCC's OpenMP runtime, taken unchanged from the compiler that built
this package. Its licence is GPL-3.0-or-later with the GCC Runtime Library Exception 3.1;
its source is that of the distribution's gcc package.
"""

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

    compiler = rctx.os.environ.get("CC", "gcc")
    found = rctx.execute([compiler, "-print-file-name=libgomp.so.1"])
    libgomp = found.stdout.strip()
    if found.return_code or not libgomp.startswith("/"):
        fail("%s has no libgomp.so.1; install g++ (./bazelw does), or set CC to a GCC." % compiler)

    # A copy: the package must not change under a cached build when GCC is upgraded.
    for command in (["cp", "-L", libgomp, "lib/libgomp.so.1"], ["rm", "lib/libdnnl.so", "lib/libdnnl.so.3.2"]):
        done = rctx.execute(command)
        if done.return_code:
            fail("%s failed: %s" % (" ".join(command), done.stderr))

    rctx.symlink("share/doc/onednn/LICENSE", "licenses/LICENSE.onednn")
    rctx.symlink("share/doc/onednn/THIRD-PARTY-PROGRAMS", "licenses/THIRD-PARTY-PROGRAMS.onednn")
    debian = rctx.path("/usr/share/doc/libgomp1/copyright")
    terms = rctx.read(debian) if debian.exists else ""
    rctx.file("licenses/LICENSE.libgomp", _LIBGOMP_NOTICE + ("\n" + terms if terms else ""))
    rctx.symlink(Label("//third_party/onednn:onednn.BUILD"), "BUILD")

onednn = repository_rule(
    implementation = _onednn_impl,
    doc = "Fetches oneDNN.",
    environ = INTERPRETER_VARIABLES + ["CC", "TREADLE_WHEELHOUSE", "XDG_CACHE_HOME", "HOME"],
)
