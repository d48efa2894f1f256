#!/usr/bin/env python3
"""Plants small mistakes into the headers and cpp/, one at a time, and runs the nearest C++ tests against each.

    cpp.py [--percent P] [--seed N] [--only TEXT] [--list]

The tree build/release must be built (scripts/build). What was tried is kept in build/mutate/cpp.tsv, and not tried
again while the mutant's file and its tests are as they were. A test that ends by its limit has found the mistake by
hanging; those are counted apart. The run fails if less than LEAST of what can be found is: not what does not compile,
nor what accepted.tsv has.
"""
import argparse
import collections
import concurrent.futures
import hashlib
import pathlib
import queue
import random
import shutil
import subprocess
import sys

import mutants
import nearest

ROOT = nearest.ROOT
BUILD = ROOT / "build/release"
WORK = ROOT / "build/mutate/cpp"
# What libpurlin.a is made of.
PARTS = [*BUILD.glob("CMakeFiles/purlin_objects.dir/**/*.o"), *BUILD.glob("cargo/*/release/libpurlin_rust.a")]
RESULTS = WORK.with_suffix(".tsv")
ACCEPTED = pathlib.Path(__file__).with_name("accepted.tsv")
sys.path.insert(0, str(ROOT / "scripts"))
from jobs import JOBS  # noqa: E402

LEAST = 95  # Percent of the mutants.
# The numbers of PJRT's ABI, which make interop compares with XLA's header.
LEFT_OUT = {"include/purlin/adapters/pjrt_abi.h"}
SECONDS = 180  # Of a compiler or a test, before it is ended; each needs a twentieth of it.
COMPILER = "g++"
PLAIN = ["-fno-exceptions", "-fno-rtti"]
# Parsed once, for all tests that are compiled alike.
PARSED_ONCE = "#include <gtest/gtest.h>\n" + "".join(
    f"#include <{name}>\n" for name in ("atomic", "functional", "memory", "optional", "string", "thread", "vector"))


def run(command, folder=ROOT):
    """The exit code of a command, or None if it was ended by its limit."""
    try:
        done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS)
        return done.returncode
    except subprocess.TimeoutExpired:
        return None


def flags(test):
    name = pathlib.Path(test).stem
    standard = "c++20" if name.startswith("coroutine") else "c++17"
    tables = {"join_table_test": "JOINS", "verb_table_test": "VERBS"}
    table = tables.get(name)
    path = ROOT / f"tests/behaviours/{table.lower()}.tsv" if table else None
    defined = [f'-DPURLIN_{table}_TABLE="{path}"'] if table else []
    plain = [] if name.endswith("exception_test") else PLAIN
    return [f"-std={standard}", "-O0", "-DNDEBUG", "-w", *plain, *defined]


def once(test):
    """The header that is parsed once for tests that are compiled as this one, and may not be there."""
    standard = flags(test)[0].removeprefix("-std=")
    return WORK / "parsed" / (standard if set(PLAIN) <= set(flags(test)) else f"{standard}-exceptions") / "once.h"


class Bench:
    """A copy of the headers in which one mutant at a time is planted, and what is built from it."""

    def __init__(self, number):
        self.folder = WORK / f"bench{number}"
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(ROOT / "include", self.folder / "include")

    def build(self, test, extra=()):
        """The program of a test, over these headers; None if it does not compile. `extra`: objects that come before
        those of the library, whose parts are linked then: in the archive Rust's names are hidden."""
        program = self.folder / pathlib.Path(test).stem
        command = [COMPILER, *flags(test), *(["-include", once(test)] if once(test).exists() else []), f"-I{ROOT}",
                   f"-I{self.folder / 'include'}", ROOT / test, WORK / "main.o", *extra,
                   "-Wl,--allow-multiple-definition", *(PARTS if extra else [BUILD / "libpurlin.a"]), "-lgtest",
                   "-lpthread", "-ldl", "-lm", "-o", program]
        return program if run(command) == 0 else None

    def judge(self, mutant, tests):
        """caught, hung, survived or unviable, and by which test."""
        text = (ROOT / mutant.file).read_bytes()
        extra, planted = (), None
        try:
            if mutant.file.startswith("include/"):
                planted = self.folder / mutant.file
                planted.write_bytes(mutant.applied(text))
            else:
                source = self.folder / pathlib.Path(mutant.file).name
                source.write_bytes(mutant.applied(text))
                extra = (source.with_suffix(".o"),)
                command = [COMPILER, "-std=c++17", "-O0", "-w", "-DNDEBUG", "-fno-exceptions", "-fvisibility=hidden",
                           f"-I{ROOT}", f"-I{ROOT / 'include'}", "-isystem", BUILD / "cargo/headers", "-c", source,
                           "-o", extra[0]]
                if run(command) != 0:
                    return "unviable", "-"
            for test in tests:
                program = self.build(test, extra)
                if program is None:
                    return "unviable", "-"
                code = run([program, "--gtest_brief=1", "--gtest_fail_fast"])
                if code != 0:
                    return "hung" if code is None else "caught", test
            return "survived", "-"
        finally:
            if planted is not None:
                planted.write_bytes(text)


def prepare():
    """What all tests share."""
    WORK.mkdir(parents=True, exist_ok=True)
    if not (BUILD / "libpurlin.a").exists():
        sys.exit("build/release/libpurlin.a is missing: run scripts/build")
    code = run([COMPILER, "-std=c++17", "-O0", "-w", *PLAIN, f"-I{ROOT}", f"-I{ROOT / 'include'}", "-c",
                ROOT / "tests/cpp/main.cc", "-o", WORK / "main.o"])
    if code != 0:
        sys.exit("tests/cpp/main.cc does not compile")
    for test in ("tests/cpp/event_test.cc", "tests/cpp/coroutine_test.cc"):
        header = once(test)
        header.parent.mkdir(parents=True, exist_ok=True)
        header.write_text(PARSED_ONCE)
        run([COMPILER, *flags(test), "-x", "c++-header", header, "-o", header.with_suffix(".h.gch")])


def key(mutant):
    """What a result depends on: the mutant, its file, and its tests."""
    state = hashlib.sha256((ROOT / mutant.file).read_bytes())
    for test in nearest.nearest(mutant.file):
        state.update((ROOT / test).read_bytes())
    return f"{mutant.file}:{mutant.begin}:{mutant.end}:{mutant.new!r}:{state.hexdigest()[:16]}"


def accepted():
    """Survivors that are no loss: (file, what), with the reason."""
    rows = [line.split("\t") for line in ACCEPTED.read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]
    return {(file, what): reason for file, what, reason in rows}


def chosen(percent, seed, only):
    found = []
    for path in sorted([*ROOT.glob("include/purlin/**/*.h"), *ROOT.glob("cpp/*.cc")]):
        file = str(path.relative_to(ROOT))
        if nearest.nearest(file) and file not in LEFT_OUT:
            found += mutants.mutants(file, path.read_bytes())
    found = [mutant for mutant in found if only in mutant.name]
    count = max(1, round(len(found) * percent / 100)) if found else 0
    return len(found), sorted(random.Random(seed).sample(found, count), key=lambda mutant: (mutant.file, mutant.begin))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--percent", type=float, default=100, help="how many of the mutants, chosen by the seed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="mutants that have this in their names")
    parser.add_argument("--list", action="store_true", help="names them, and tries none")
    arguments = parser.parse_args()
    total, wanted = chosen(arguments.percent, arguments.seed, arguments.only)
    if arguments.list:
        print(*(mutant.name for mutant in wanted), sep="\n")
        return 0
    prepare()
    benches = queue.Queue()
    for number in range(int(JOBS)):
        benches.put(Bench(number))

    def use(work, *of):
        bench = benches.get()
        try:
            return work(bench, *of)
        finally:
            benches.put(bench)

    with concurrent.futures.ThreadPoolExecutor(int(JOBS)) as pool:
        # A test that fails without a mistake finds none.
        needed = sorted({test for mutant in wanted for test in nearest.nearest(mutant.file)})

        def passes(bench, test):
            program = bench.build(test)
            return program is not None and run([program, "--gtest_brief=1"]) == 0

        sound = dict(zip(needed, pool.map(lambda test: use(passes, test), needed)))
        for test in (test for test in needed if not sound[test]):
            print(f"FAILED: {test} does not pass without a mistake", flush=True)
        known = {}
        if RESULTS.exists():
            known = {line.split("\t")[0]: line.split("\t")[1:3] for line in RESULTS.read_text().splitlines()}

        def judge(bench, mutant):
            tests = [test for test in nearest.nearest(mutant.file) if sound[test]]
            return bench.judge(mutant, tests)

        with RESULTS.open("a", encoding="utf-8") as results:
            def tried(mutant):
                if key(mutant) not in known:
                    known[key(mutant)] = use(judge, mutant)
                    print(key(mutant), *known[key(mutant)], mutant.name, sep="\t", file=results, flush=True)
                return mutant, known[key(mutant)][0]

            outcomes = list(pool.map(tried, wanted))
    return report(total, outcomes, arguments, all(sound.values()))


def report(total, outcomes, arguments, is_sound):
    """The table by room, the survivors, and whether all is well."""
    excused, by_room, survivors = accepted(), collections.defaultdict(collections.Counter), []
    for mutant, outcome in outcomes:
        room = "cpp" if mutant.file.startswith("cpp/") else str(pathlib.Path(mutant.file).parent)
        if outcome == "survived" and (mutant.file, mutant.what) in excused:
            outcome = "accepted"
        by_room[room][outcome] += 1
        if outcome == "survived":
            survivors.append(mutant)
    for mutant in survivors:
        print(f"SURVIVED  {mutant.name}")
    print(f"{'room':32} caught  hung  survived  accepted  unviable")
    for room, count in sorted(by_room.items()):
        print(f"{room:32} {count['caught']:6} {count['hung']:5} {count['survived']:9} {count['accepted']:9} "
              f"{count['unviable']:9}")
    count = sum(by_room.values(), collections.Counter())
    found, viable = count["caught"] + count["hung"], count["caught"] + count["hung"] + count["survived"]
    print(f"mutate cpp: {found}/{viable} caught ({100 * found / max(viable, 1):.1f} %), {len(outcomes)} of {total} "
          f"mutants, seed {arguments.seed}")
    return 0 if is_sound and 100 * found >= LEAST * viable else 1


if __name__ == "__main__":
    sys.exit(main())
