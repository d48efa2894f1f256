"""A Rust static archive and its C++ headers, made by the machine's own cargo out of a workspace. See cargo_staticlib.sh."""

def _cargo_staticlib_impl(ctx):
    archive = ctx.actions.declare_file(ctx.attr.archive)
    headers = ctx.actions.declare_directory(ctx.attr.headers)
    ctx.actions.run(
        executable = ctx.file._script,
        arguments = [
            ctx.file._host.path,
            ctx.file._crates.path,
            ctx.file.manifest.path,
            ctx.attr.package,
            # Unoptimised Rust only in dbg: in fastbuild the library is as fast as in opt.
            "dev" if ctx.var["COMPILATION_MODE"] == "dbg" else "release",
            archive.path,
            headers.path,
            ",".join([ctx.attr.package + "/" + feature for feature in ctx.attr.features_of_cargo]),
        ],
        inputs = ctx.files.srcs + [ctx.file.manifest, ctx.file.lockfile, ctx.file._crates, ctx.file._host],
        outputs = [archive, headers],
        # Tools by absolute paths: right on this machine only.
        execution_requirements = {"no-remote": "1"},
        mnemonic = "CargoStaticlib",
        progress_message = "Building %s with cargo" % ctx.attr.package,
    )
    return [
        DefaultInfo(files = depset([archive])),
        OutputGroupInfo(headers = depset([headers])),
    ]

cargo_staticlib = rule(
    implementation = _cargo_staticlib_impl,
    attrs = {
        "archive": attr.string(mandatory = True, doc = "The file that cargo makes, such as libname.a."),
        "features_of_cargo": attr.string_list(doc = "The package's features; no others, also not the default ones."),
        "headers": attr.string(mandatory = True, doc = "The folder for the headers; the output group `headers`."),
        "lockfile": attr.label(mandatory = True, allow_single_file = True, doc = "Cargo.lock, beside the manifest."),
        "manifest": attr.label(mandatory = True, allow_single_file = True, doc = "Cargo.toml of the workspace."),
        "package": attr.string(mandatory = True, doc = "The Cargo package with the staticlib."),
        "srcs": attr.label_list(mandatory = True, allow_files = True, doc = "Sources and all other manifests."),
        "_crates": attr.label(default = "@purlin_rust_host//:crates.tar", allow_single_file = True),
        "_host": attr.label(default = "@purlin_rust_host//:host.sh", allow_single_file = True),
        "_script": attr.label(default = "//bazel:cargo_staticlib.sh", allow_single_file = True),
    },
    doc = "Builds the static archive of one package of a Cargo workspace.",
)
