"""For bzlmod only, and therefore a file of its own: Bazel before 6 knows no module extensions."""

load(":rust_host.bzl", "rust_host")

def _purlin_impl(_module_ctx):
    rust_host(
        name = "purlin_rust_host",
        lockfile = Label("//:Cargo.lock"),
    )

purlin = module_extension(
    implementation = _purlin_impl,
    doc = "Makes @purlin_rust_host.",
)
