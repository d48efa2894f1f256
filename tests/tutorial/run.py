#!/usr/bin/env python3
"""Compiles and runs the C++ programs of docs/tutorial.md, and compares what they print with what the page shows.

  tests/tutorial/run.py COMPILER libpurlin.a WORK_DIR   the page of the tree that holds this script
  tests/tutorial/run.py --self-test COMPILER            plants pages with faults of every kind, each of which must be found

The page: a block ```sh with the command that compiles, under `<!-- tutorial: the command -->`, then steps. A step is a
block ```cpp under `<!-- tutorial: NAME.cc -->`, a block ```rust, and a block ```text with what the C++ program prints; `...`
in that stands for any text within a line. There are no other blocks. The first program is whole; its function `main`
ends the other ones. The command is the page's, with COMPILER, with the given archive, and with all warnings as errors.
The blocks ```rust are doctests of the crate purlin (rust/purlin/src/lib.rs). Exit code 77 if COMPILER is not there.
"""
import pathlib
import re
import shlex
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import blocks  # noqa: E402

PAGE = "docs/tutorial.md"
MARKER = re.compile(r"<!-- tutorial: (\w+)\.cc -->$")
COMMAND = "<!-- tutorial: the command -->"


class Step:
    def __init__(self, cpp, text):
        self.name = MARKER.match(cpp.above).group(1)
        self.place = f"{PAGE}:{cpp.line}"
        self.code, self.shown = cpp.code, text.code


def steps_of(text):
    """(the words of the command, the steps, what is wrong with the page)."""
    found, wrong, steps, command = blocks.fenced(text), [], [], []
    for block in found:
        if block.above == COMMAND and block.language == "sh":
            command = shlex.split(block.code)
    rest = [block for block in found if block.above != COMMAND]
    if not command:
        wrong.append(f"{PAGE}: no block ```sh under {COMMAND}")
    while rest:
        step, rest = rest[:3], rest[3:]
        if [block.language for block in step] != ["cpp", "rust", "text"]:
            wrong.append(f"{PAGE}:{step[0].line}: not a block ```cpp, one ```rust and one ```text, one after another")
            break
        if not MARKER.match(step[0].above):
            wrong.append(f"{PAGE}:{step[0].line}: no line <!-- tutorial: NAME.cc --> above it")
            break
        steps.append(Step(step[0], step[2]))
    main = re.search(r"^int main\(.*", steps[0].code, re.M | re.S) if steps else None
    if not main:
        wrong.append(f"{PAGE}: the first program has no function main")
    for step in steps[1:] if main else []:
        step.code += f"\n{main.group()}"
    return command, steps, wrong


def command_of(words, compiler, archive, root, first, step):
    """The page's command, which is for the first program, for another one."""
    names = {f"{first}.cc": f"{step.name}.cc", first: step.name, "-Iinclude": f"-I{root / 'include'}"}
    names |= {word: str(archive) for word in words if word.endswith(f"/{archive.name}")}
    return [compiler, *blocks.FLAGS, *(names.get(word, word) for word in words[1:])]


def matches(shown, printed):
    pattern = "".join(".*" if part == "..." else re.escape(part) for part in re.split(r"(\.\.\.)", shown))
    return re.fullmatch(pattern, printed) is not None


def judge(step, command, work):
    """What is wrong with this step; "" if nothing is."""
    (work / f"{step.name}.cc").write_text(step.code)
    built = blocks.run(command, cwd=work)
    if built.returncode != 0:
        return f"{step.place}: {step.name} does not compile\n{built.stderr}"
    ran = blocks.run([str(work / step.name)], cwd=work)
    if ran.returncode != 0 or ran.stderr:
        return f"{step.place}: {step.name} ended with exit code {ran.returncode}\n{ran.stdout}{ran.stderr}"
    if not matches(step.shown, ran.stdout):
        return f"{step.place}: {step.name} prints something else than the page shows\n{ran.stdout}"
    return ""


def check(compiler, archive, work, root):
    words, steps, wrong = steps_of((root / PAGE).read_text())
    if wrong:
        return 0, wrong
    work.mkdir(parents=True, exist_ok=True)
    first = steps[0].name
    return len(steps), blocks.judge_all(
        lambda step: judge(step, command_of(words, compiler, archive, root, first, step), work), steps)


def self_test(compiler):
    command = f"{COMMAND}\n```sh\ng++ -std=c++17 -Iinclude one.cc lib/two.cc -o one\n```\n"
    say = 'int Run() {{\n  std::puts("{0}");\n  return Two() - {1};\n}}\n'.format
    top = '#include <cstdio>\n\n#include "two.h"\n\n'
    main = "\nint main() { return Run(); }\n"

    def step(name, cpp, shown, rust="```rust\n```\n"):
        return f"<!-- tutorial: {name}.cc -->\n```cpp\n{cpp}```\n{rust}```text\n{shown}```\n"

    first = step("one", top + say("1", 2) + main, "1\n")
    plants = {  # The page, and what is to be said of it.
        "good": (command + first, ""),
        "second": (command + first + step("other", top + say("2", 2), "2\n"), ""),
        "dots": (command + first + step("other", top + say("took 12 ms", 2), "took ... ms\n"), ""),
        "dots_over_lines": (command + first + step("other", top + say("a\\nb", 2), "...\n"), "prints something else"),
        "no_command": (first, "no block ```sh"),
        "no_text": (command + first.split("```text")[0], "not a block ```cpp"),
        "no_rust": (command + step("one", top + say("1", 2) + main, "1\n", ""), "not a block ```cpp"),
        "no_name": (command + first.replace("<!-- tutorial: one.cc -->", "Text."), "no line <!-- tutorial"),
        "no_main": (command + step("one", top + say("1", 2), "1\n"), "no function main"),
        "other_language": (command + first + "```python\n```\n", "not a block ```cpp"),
        "unknown": (command + first + step("other", top + say("2", 2).replace("Two", "Three"), "2\n"), "does not compile"),
        "warning": (command + first + step("other", top + "int Run() {\n  int x;\n  return 0;\n}\n", ""), "does not compile"),
        "fails": (command + first + step("other", top + say("2", 1), "2\n"), "exit code 1"),
        "prints_more": (command + first + step("other", top + say("2 and 3", 2), "2\n"), "prints something else"),
        "prints_less": (command + first + step("other", top + say("2", 2), "2\n3\n"), "prints something else"),
        "to_stderr": (command + first + step("other", top + say("2", 2).replace("std::puts(", "std::perror("), ""), "exit code 0"),
        "no_step": (command, "no function main"),
    }
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        for name, (page, _) in plants.items():
            root = pathlib.Path(folder) / name
            for path, text in {PAGE: page, "include/two.h": "int Two();\n", "src/two.cc": "int Two() { return 2; }\n"}.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text)
            wrong += [f"{name}: {said}" for said in check(compiler, root / "src/two.cc", root / "work", root)[1]]
    return blocks.judged_rightly("tutorial", "pages", {name: said for name, (_, said) in plants.items()}, wrong)


def main(arguments):
    testing, (compiler, *rest) = blocks.command_line(__doc__, arguments, 3, 3)
    if testing:
        return self_test(compiler)
    archive, work = (pathlib.Path(name).resolve() for name in rest)
    count, wrong = check(compiler, archive, work, blocks.ROOT)
    return blocks.verdict(wrong, count, f"{count} programs of {PAGE} print what it shows: {compiler}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
