"""One archive out of the C++ and the Rust half, in which only the listed names are global. See prelinked_archive.sh."""

def _objects(target):
    """The archive of a cc_library. In some modes there are two, of which the second is position-independent code too."""
    archives = target[OutputGroupInfo].archive.to_list()
    if not archives:
        fail("%s has no archive: is it a cc_library with sources?" % target.label)
    for archive in archives:
        if archive.basename.endswith(".pic.a"):
            return archive
    return archives[0]

def _prelinked_archive_impl(ctx):
    archive = ctx.actions.declare_file(ctx.attr.archive)
    cpp = _objects(ctx.attr.cpp)
    ctx.actions.run(
        executable = ctx.file._script,
        arguments = [
            ctx.file._host.path,
            ctx.file.exported_symbols.path,
            "keep" if ctx.var["COMPILATION_MODE"] == "dbg" else "strip",
            cpp.path,
            ctx.file.rust.path,
            archive.path,
        ],
        inputs = [ctx.file._host, ctx.file.exported_symbols, cpp, ctx.file.rust],
        outputs = [archive],
        execution_requirements = {"no-remote": "1"},
        mnemonic = "PrelinkArchive",
        progress_message = "Prelinking %s" % ctx.attr.archive,
    )
    return [DefaultInfo(files = depset([archive]))]

prelinked_archive = rule(
    implementation = _prelinked_archive_impl,
    attrs = {
        "archive": attr.string(mandatory = True, doc = "The file to make, such as libname.a."),
        "cpp": attr.label(mandatory = True, doc = "A cc_library; all of its own objects go in, compiled with -fPIC."),
        "exported_symbols": attr.label(
            mandatory = True,
            allow_single_file = True,
            doc = "Mangled names that stay global, one a line, with wildcards.",
        ),
        "rust": attr.label(
            mandatory = True,
            allow_single_file = [".a"],
            doc = "A Rust archive; what the objects need of it goes in.",
        ),
        "_host": attr.label(default = "@purlin_rust_host//:host.sh", allow_single_file = True),
        "_script": attr.label(default = "//bazel:prelinked_archive.sh", allow_single_file = True),
    },
    doc = "Links C++ and Rust into one relocatable object and hides what is not listed.",
)
