"""The wheel: Python sources, the plugin, and the libraries that lie beside it; and its bill of materials."""

load("@python_env//:defs.bzl", "IDENTITY", "PYTHON")
load("@versions//:versions.bzl", "VERSIONS")

TAG = "py3-none-manylinux_2_34_x86_64"

def _wheel_impl(ctx):
    version = VERSIONS["treadle"]["version"]
    wheel = ctx.actions.declare_file("treadle-%s-%s.whl" % (version, TAG))
    sources = depset(transitive = [target[PyInfo].transitive_sources for target in ctx.attr.deps]).to_list()
    contents = [(file, file.short_path) for file in sources + ctx.files.data]
    contents += [(file, "treadle/lib/" + file.basename) for file in ctx.files.libraries]
    contents += [
        (file, "treadle-%s.dist-info/licenses/%s" % (version, file.basename))
        for file in ctx.files.licenses
    ]
    arguments = ctx.actions.args()
    # The module finds its neighbours in the folder that the action runs in.
    arguments.add_all(["-s", "-B", "-m", "tools.wheel.build_wheel"])
    arguments.add("--out", wheel)
    arguments.add("--pins", ctx.file._pins)
    arguments.add("--tag", TAG)
    arguments.add("--readme", ctx.file.readme)
    for file, name in contents:
        arguments.add("--file=%s=%s" % (name, file.path))
    ctx.actions.run(
        executable = PYTHON,
        arguments = [arguments],
        inputs = depset(
            [file for file, _ in contents] + [ctx.file._pins, ctx.file.readme],
            transitive = [ctx.attr._builder[PyInfo].transitive_sources],
        ),
        outputs = [wheel],
        env = {"TREADLE_ENVIRONMENT": IDENTITY},
        mnemonic = "Wheel",
    )
    return [DefaultInfo(files = depset([wheel]), runfiles = ctx.runfiles(files = [wheel]))]

treadle_wheel = rule(
    implementation = _wheel_impl,
    attrs = {
        "data": attr.label_list(allow_files = True, doc = "Files that are no Python sources, packed where they lie."),
        "deps": attr.label_list(providers = [PyInfo], doc = "The Python libraries to pack."),
        "libraries": attr.label_list(allow_files = True, doc = "What goes into treadle/lib."),
        "licenses": attr.label_list(allow_files = True, doc = "The licences of what is packed."),
        "readme": attr.label(allow_single_file = True, mandatory = True, doc = "The description."),
        "_builder": attr.label(default = "//tools/wheel:build_wheel"),
        "_pins": attr.label(default = "//:versions.toml", allow_single_file = True),
    },
)

def _sbom_impl(ctx):
    bill = ctx.actions.declare_file("treadle-%s.cdx.json" % VERSIONS["treadle"]["version"])
    arguments = ctx.actions.args()
    arguments.add_all(["-s", "-B", "-m", "tools.wheel.build_sbom"])
    arguments.add("--out", bill)
    arguments.add("--wheel", ctx.file.wheel)
    arguments.add("--pins", ctx.file._pins)
    arguments.add("--provenance", ctx.file.provenance)
    arguments.add_all(ctx.files.locks, before_each = "--lock")
    ctx.actions.run(
        executable = PYTHON,
        arguments = [arguments],
        inputs = depset(
            ctx.files.locks + [ctx.file.wheel, ctx.file.provenance, ctx.file._pins],
            transitive = [ctx.attr._builder[PyInfo].transitive_sources],
        ),
        outputs = [bill],
        env = {"TREADLE_ENVIRONMENT": IDENTITY},
        mnemonic = "BillOfMaterials",
    )
    return [DefaultInfo(files = depset([bill]), runfiles = ctx.runfiles(files = [bill]))]

treadle_sbom = rule(
    implementation = _sbom_impl,
    attrs = {
        "locks": attr.label_list(allow_files = True, doc = "The lock files of what the build fetches."),
        "provenance": attr.label(allow_single_file = True, mandatory = True, doc = "Where the bundled libraries are from."),
        "wheel": attr.label(allow_single_file = True, mandatory = True, doc = "The wheel."),
        "_builder": attr.label(default = "//tools/wheel:build_sbom"),
        "_pins": attr.label(default = "//:versions.toml", allow_single_file = True),
    },
)
