"""The repository @purlin_rust_host: what this machine lends to the build.

It holds host.sh, which names the tools found here (cargo, rustc, a C++ compiler, GNU ld, objcopy, ar), and crates.tar, the
sources of all crates that Cargo.lock names, so that no action needs the network. Made anew when Cargo.lock or one of the
variables below changes, and by `bazel sync --configure`.
"""

# The caller's environment that decides what is found.
_VARIABLES = [
    "AR",
    "CARGO_HOME",
    "CC",
    "CXX",
    "HOME",
    "PATH",
    # A file to take as crates.tar, for machines without a network.
    "PURLIN_CRATES_TAR",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
]

def _find(rctx, names, variable = None, folders = []):
    """The path of a program: what `variable` says, else the first of `names` on PATH or in `folders`."""
    asked = rctx.os.environ.get(variable, "") if variable else ""
    if asked.startswith("/"):
        return rctx.path(asked)
    if asked:
        names = [asked]
    for name in names:
        found = rctx.which(name)
        if found:
            return found
        for folder in folders:
            found = rctx.path(folder + "/" + name)
            if found.exists:
                return found
    fail("@%s: found none of %s on PATH%s; Purlin is built with it" % (
        rctx.name,
        names,
        " (%s)" % variable if variable else "",
    ))

def _run(rctx, command, **kwargs):
    """What a command prints; fails with all it said if it fails."""
    result = rctx.execute([str(word) for word in command], **kwargs)
    if result.return_code != 0:
        fail("@%s: exit code %d of `%s`:\n%s%s" % (
            rctx.name,
            result.return_code,
            " ".join([str(word) for word in command]),
            result.stdout,
            result.stderr,
        ))
    return result.stdout.strip()

def _quote(text):
    return "'" + str(text).replace("'", "'\\''") + "'"

def _rust_tools(rctx, workspace):
    """The real cargo and rustc: those that rustup puts on PATH choose by HOME and folder, which actions do not have."""
    environ = rctx.os.environ
    folders = []
    if environ.get("CARGO_HOME"):
        folders.append(environ["CARGO_HOME"] + "/bin")
    if environ.get("HOME"):
        folders.append(environ["HOME"] + "/.cargo/bin")
    rustc = _find(rctx, ["rustc"], folders = folders)
    sysroot = _run(rctx, [rustc, "--print", "sysroot"], working_directory = str(workspace))
    real_rustc = rctx.path(sysroot + "/bin/rustc")
    real_cargo = rctx.path(sysroot + "/bin/cargo")
    return (
        real_cargo if real_cargo.exists else _find(rctx, ["cargo"], folders = folders),
        real_rustc if real_rustc.exists else rustc,
    )

def _rust_host_impl(rctx):
    workspace = rctx.path(rctx.attr.lockfile).dirname
    cargo, rustc = _rust_tools(rctx, workspace)
    cc = _find(rctx, ["cc", "gcc", "clang"], "CC")
    cxx = _find(rctx, ["c++", "g++", "clang++"], "CXX")
    ld = _find(rctx, ["ld.bfd", "ld"])
    objcopy = _find(rctx, ["objcopy"])
    ar = _find(rctx, ["ar"], "AR")

    rustc_version = _run(rctx, [rustc, "-vV"])
    triples = [line[len("host: "):] for line in rustc_version.split("\n") if line.startswith("host: ")]
    if len(triples) != 1:
        fail("@%s: `%s -vV` names no host:\n%s" % (rctx.name, rustc, rustc_version))
    folders = []
    for tool in [cargo, rustc, cc, cxx, ld, objcopy, ar, "/usr/bin/env", "/bin/sh"]:
        folder = str(tool).rpartition("/")[0]
        if folder not in folders:
            folders.append(folder)

    # The versions stand there so that a new compiler behind an old path makes new archives.
    about = [
        rustc_version,
        _run(rctx, [cargo, "--version"]),
        _run(rctx, [cxx, "--version"]),
        _run(rctx, [ld, "--version"]),
    ]
    lines = ["# Written by bazel/rust_host.bzl."]
    for text in about:
        lines += ["# " + line for line in text.split("\n")]
    for name, value in [
        ("PATH", ":".join(folders)),
        ("PURLIN_RUST_TARGET", triples[0]),
        ("CARGO", cargo),
        ("RUSTC", rustc),
        ("CC", cc),
        ("CXX", cxx),
        ("LD", ld),
        ("OBJCOPY", objcopy),
        ("AR", ar),
    ]:
        lines.append("export %s=%s" % (name, _quote(value)))
    rctx.file("host.sh", "\n".join(lines) + "\n", executable = False)
    rctx.file("BUILD.bazel", "exports_files([\"crates.tar\", \"host.sh\"], visibility = [\"//visibility:public\"])\n")

    given = rctx.os.environ.get("PURLIN_CRATES_TAR", "")
    if given:
        rctx.symlink(rctx.path(given), "crates.tar")
        return
    rctx.report_progress("fetching the crates that Cargo.lock names")
    _run(
        rctx,
        [cargo, "vendor", "--locked", "--manifest-path", workspace.get_child("Cargo.toml"), "vendor"],
        environment = {"RUSTC": str(rustc)},
        timeout = 1200,
    )

    # One file, one input: thousands of them would cost every sandbox. The same bytes every time.
    _run(rctx, ["tar", "--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner", "-cf", "crates.tar", "vendor"])
    rctx.delete("vendor")

rust_host = repository_rule(
    implementation = _rust_host_impl,
    attrs = {
        "lockfile": attr.label(
            mandatory = True,
            allow_single_file = True,
            doc = "Purlin's Cargo.lock; its folder is the Cargo workspace.",
        ),
    },
    configure = True,
    doc = "Finds the tools of this machine and fetches the crates of a Cargo.lock.",
    environ = _VARIABLES,
)
