"""A flag of the command line that leaves a part of a library out, or brings it: `--@purlin//bazel:sim=false`."""

def _feature_flag_impl(_ctx):
    return []

feature_flag = rule(
    implementation = _feature_flag_impl,
    build_setting = config.bool(flag = True),
    doc = "Its build_setting_default, unless the command line says otherwise.",
)
