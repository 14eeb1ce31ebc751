"""The wheel: Python sources, the plugin, and the libraries that lie beside it."""

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
        inputs = [file for file, _ in contents] + ctx.files._builder + [ctx.file._pins, ctx.file.readme],
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
