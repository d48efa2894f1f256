"""Blocks of code in pages and comments: finding them, compiling them, judging many at once, and the command line of that.

Used by tests/headers/examples.py and tests/tutorial/run.py.
"""
import concurrent.futures
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
from jobs import JOBS  # noqa: E402

# As users of XLA compile, with all warnings as errors.
FLAGS = "-Wall -Wextra -Wpedantic -Wconversion -Werror -fno-exceptions -fno-rtti".split()
SECONDS = 120  # What a compiler or a program may take, before it is ended: some fifty times what they need.


class Block:
    """A block between ``` and ```: its language, its code, its first line's number, and the line above it."""

    def __init__(self, language, code, line, above):
        self.language, self.code, self.line, self.above = language, code, line, above


def fenced(text, prefix=""):
    """All blocks of a text, each of whose lines begins with `prefix`. One that is not closed is none."""
    begin, blocks, opened, above = prefix.rstrip(), [], None, ""
    for number, line in enumerate(text.splitlines(), 1):
        line = line[len(prefix):] if line.startswith(prefix) else "" if line == begin else None
        if line is None:
            opened = None
        elif opened is None and line.startswith("```"):
            opened = Block(line[3:].strip(), [], number + 1, above)
        elif opened is not None and line == "```":
            opened.code = "".join(f"{one}\n" for one in opened.code)
            blocks.append(opened)
            opened = None
        elif opened is not None:
            opened.code.append(line)
        above = line or ""
    return blocks


def run(command, **more):
    """What a command printed and how it ended; one that takes too long ends with code None."""
    try:
        done = subprocess.run(command, text=True, capture_output=True, timeout=SECONDS, **more)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, None, "", f"it was ended after {SECONDS} s\n")
    return done


def judge_all(judge, items):
    """What `judge` says of the items of which it says something; JOBS of them at once."""
    with concurrent.futures.ThreadPoolExecutor(int(JOBS)) as pool:
        return [said for said in pool.map(judge, items) if said]


def judged_rightly(name, what, plants, wrong):
    """For self-tests: 0 if `wrong` has, of each planted item, the text that `plants` expects ("": nothing)."""
    bad = 0
    for item, expected in plants.items():
        said = "".join(one for one in wrong if one.startswith(f"{item}:"))
        if (expected not in said) if expected else said:
            print(f"{item}: instead of '{expected}': {said or 'nothing was said'}")
            bad = 1
    if not bad:
        print(f"{name}: all {len(plants)} planted {what} were judged rightly")
    return bad


def command_line(doc, arguments, at_least, at_most):
    """(whether this is --self-test, the other arguments), of which the first is a compiler. Ends the program with code 2
    for wrong arguments, and with 77 if there is no such compiler."""
    name = pathlib.Path(sys.argv[0]).name
    testing = arguments[:1] == ["--self-test"]
    arguments = arguments[testing:]
    least, most = (1, 1) if testing else (at_least, at_most)
    if not least <= len(arguments) <= most or arguments[0].startswith("-"):
        print(f"{name}: it takes a compiler\n{doc}", file=sys.stderr)
        sys.exit(2)
    if shutil.which(arguments[0]) is None:
        print(f"skipped: no such compiler here: '{arguments[0]}'; {name} compiled nothing")
        sys.exit(77)
    return testing, arguments


def verdict(wrong, count, good):
    """Prints what is wrong, or what is good; the exit code."""
    print("\n".join(f"FAILED: {said}" for said in wrong) if wrong else good)
    return 1 if wrong or not count else 0
