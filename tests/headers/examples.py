#!/usr/bin/env python3
"""Compiles the example with which each public header opens; fails, naming the header, if one has none.

  tests/headers/examples.py COMPILER [ROOT]   the headers of ROOT (default: the tree that holds this script)
  tests/headers/examples.py --self-test COMPILER   plants headers without an example, and examples that do not compile

An example is the block between `// ```cpp` and `// ``` ` in the comment at the top of a header. It becomes a translation
unit that includes this header alone, and what the example includes itself. Functions and classes that begin in the first
column, and other names of namespaces, stay outside of functions; all other lines are the body of a function, which returns a purlin::Status if one of
them has a `return`. Adapters may have such a block; those that need the standard library alone are compiled too.
Exit code 77 if COMPILER is not there.
"""
import pathlib
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import blocks  # noqa: E402

FLAGS = [*blocks.FLAGS, "-fsyntax-only", "-Wno-unused-variable", "-Wno-unused-but-set-variable", "-Wno-unused-parameter"]
STD_ADAPTERS = ("std.h", "pjrt_tables.h")
CLASS = re.compile(r"(?:template|class|struct|enum)\b")
# `Type Name(` with neither `=` nor `.` before the bracket: a function if a brace follows the parameters, else a
# variable.
NAMED = re.compile(r"(?!return\b|else\b)[\w:<>,&* ]*[\w:<>&*] \w+\(")
COROUTINES = "defined(__cpp_impl_coroutine) && defined(__cpp_lib_coroutine)"


def example_of(text):
    """The lines of the block in the comment at the top; None if there is none."""
    top = re.match(r"(?:[ \t]*//[^\n]*\n)*", text).group()
    examples = [block for block in blocks.fenced(top, "// ") if block.language == "cpp"]
    return examples[0].code.splitlines() if examples else None


def begins_definition(line, rest):
    """Whether a function or class begins with this line, followed by `rest`."""
    if CLASS.match(line):
        return True
    found, text = NAMED.match(line), "\n".join([line, *rest])
    at, depth = (found.end(), 1) if found else (0, 0)
    while depth and at < len(text):
        depth += (text[at] == "(") - (text[at] == ")")
        at += 1
    return bool(found) and text[at:].lstrip().startswith("{")


def unit_of(header, lines):
    """The translation unit of an example."""
    includes, outside, body, rest = [], [], [], list(lines)
    while rest:
        line = rest.pop(0)
        if line.startswith("#include"):
            includes.append(line)
        elif line.startswith("namespace "):  # Another name for one.
            outside.append(line)
        elif begins_definition(line, rest):
            outside.append(line)
            if not re.search(r"[};](?: *//.*)?$", line):  # Else it ends where it begins.
                while rest and not re.match(r"\};?$", outside[-1]):
                    outside.append(rest.pop(0))
        else:
            body.append(line)
    code = "\n".join(body)
    depth, returns = 0, False
    for line in body:
        returns |= depth == 0 and re.search(r"^[^\[]*\breturn\b", line) is not None
        depth += line.count("{") - line.count("}")
    answer, end = ("purlin::Status", "  return purlin::OkStatus();\n") if returns else ("void", "")
    function = f"{answer} Example() {{\n{code}\n{end}}}\n" if code.strip() else ""
    parts = [f'#include "{header}"', *includes, *outside, function]
    if any("co_await" in line for line in lines):
        parts = [parts[0], *includes, f"#if {COROUTINES}", *outside, function, "#endif"]
    return "\n".join(parts) + "\n"


def judge(compiler, include, header):
    """What is wrong with this header's example; "" if nothing is."""
    lines = example_of((include / header).read_text())
    if lines is None:
        return "" if "adapters/" in header else f"{header}: has no example (a block ```cpp in the comment at the top)"
    if not any(line.strip() for line in lines):
        return f"{header}: its example is empty"
    standard = "c++20" if any("co_await" in line for line in lines) else "c++17"
    unit = unit_of(header, lines)
    run = blocks.run([compiler, "-x", "c++", f"-std={standard}", *FLAGS, f"-I{include}", "-"], input=unit)
    return "" if run.returncode == 0 else f"{header}: its example does not compile\n{unit}\n{run.stderr}"


def check(compiler, root):
    include = root / "include"
    files = [*(include / "purlin").glob("*.h"), *(include / "purlin/compat").glob("*.h")]
    headers = sorted(str(file.relative_to(include)) for file in files)
    headers += [f"purlin/adapters/{name}" for name in STD_ADAPTERS if (include / "purlin/adapters" / name).exists()]
    return len(headers), blocks.judge_all(lambda header: judge(compiler, include, header), headers)


def self_test(compiler):
    good = ("#ifndef X\n#define X\n#include <string>\n"
            "namespace purlin { class Status {}; inline Status OkStatus() { return {}; } }\n#endif\n")
    plants = {  # The comment at the top, and what is to be said of it.
        "none.h": ("// Purlin: nothing.\n", "has no example"),
        "late.h": ("// Purlin.\n" + good + "// ```cpp\n// int x = 1;\n// ```\n", "has no example"),
        "open.h": ("// Purlin.\n// ```cpp\n// int x = 1;\n", "has no example"),
        "empty.h": ("// Purlin.\n// ```cpp\n//\n// ```\n", "is empty"),
        "unknown.h": ("// Purlin.\n// ```cpp\n// Unknown x;\n// ```\n", "does not compile"),
        "narrow.h": ("// Purlin.\n// ```cpp\n// const int x = 1L << 40;\n// ```\n", "does not compile"),
        "inside.h": ("// Purlin.\n// ```cpp\n// int Twice(int x) {\n//   return y * 2;\n// }\n// ```\n",
                     "does not compile"),
        "missing.h": ("// Purlin.\n// ```cpp\n// std::vector<int> x;\n// ```\n", "does not compile"),
        "body.h": ("// Purlin.\n//\n// ```cpp\n// const int x = 1;\n// if (x > 1) return purlin::OkStatus();\n// ```\n",
                   ""),
        "own.h": ("// Purlin.\n// ```cpp\n// #include <vector>\n//\n// int One(const std::vector<int>& x) {\n"
                  "//   if (x.empty()) {\n//     return 0;\n//   }\n//   return x[0];\n// }\n// int two = One({2});\n// ```\n", ""),
        "class.h": ("// Purlin.\n// ```cpp\n// struct Pair {\n//   int a = 0;\n// };\n// class Word {};\n"
                    "// int Get(Pair p) { return p.a; }\n// const int x = Get(Pair());\n// ```\n", ""),
        "variable.h": ("// Purlin.\n// ```cpp\n// int x(1);\n// x += 1;\n// int Get(int a,\n//         int b) {\n"
                       "//   return a + b;\n// }\n// ```\n", ""),
        "lambda.h": ("// Purlin.\n// ```cpp\n// auto one = [] { return 1; };\n// const int x = one();\n// ```\n", ""),
    }
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder) / "include/purlin"
        place.mkdir(parents=True)
        for name, (top, _) in plants.items():
            (place / name).write_text(top + good)
        _, wrong = check(compiler, pathlib.Path(folder))
    return blocks.judged_rightly("examples", "headers", {f"purlin/{name}": said for name, (_, said) in plants.items()}, wrong)


def main(arguments):
    testing, (compiler, *root) = blocks.command_line(__doc__, arguments, 1, 2)
    if testing:
        return self_test(compiler)
    count, wrong = check(compiler, pathlib.Path(root[0]) if root else blocks.ROOT)
    return blocks.verdict(wrong, count, f"the examples of {count} headers compile: {compiler}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
