"""Files of other repositories, linked into this package's folder under their own names."""

def _links_impl(ctx):
    outputs = []
    for file in ctx.files.files:
        output = ctx.actions.declare_file(file.basename)
        ctx.actions.symlink(output = output, target_file = file)
        outputs.append(output)
    return [DefaultInfo(files = depset(outputs), runfiles = ctx.runfiles(files = outputs))]

links = rule(
    implementation = _links_impl,
    attrs = {"files": attr.label_list(allow_files = True, mandatory = True)},
)
