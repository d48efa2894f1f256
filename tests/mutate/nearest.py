"""Which C++ tests are nearest to a header or to a file of cpp/: those that are named for it, then those whose name
begins with its words, then those that reach it over the fewest includes, the longest first."""
import collections
import functools
import os.path
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOST = 12  # Tests that a mutant is tried with, until one finds it.
INCLUDE = re.compile(r'^\s*#\s*include\s+"((?:purlin|tests)/[^"]+)"', re.MULTILINE)


@functools.cache
def included(path):
    """The headers of Purlin and of its tests that a file names."""
    return tuple(INCLUDE.findall((ROOT / path).read_text(encoding="utf-8")))


@functools.cache
def distances(test):
    """Of each header that a test reaches, over how many includes."""
    found, queue = {}, collections.deque((header, 1) for header in included(test))
    while queue:
        header, distance = queue.popleft()
        path = f"include/{header}" if header.startswith("purlin/") else header
        if header in found or not (ROOT / path).exists():
            continue
        found[header] = distance
        queue.extend((further, distance + 1) for further in included(path))
    return found


@functools.cache
def tests():
    found = [*(ROOT / "tests/cpp").glob("*_test.cc"), *(ROOT / "tests/compat").glob("*_test.cc")]
    return tuple(sorted(str(path.relative_to(ROOT)) for path in found))


def nearest(file):
    """At most MOST tests of `file`, the nearest first."""
    stem = pathlib.Path(file).stem
    header = file.removeprefix("include/") if file.startswith("include/") else f"purlin/{stem}.h"

    def rank(test):
        name = pathlib.Path(test).stem
        is_named = name == f"{stem}_test" or name.startswith(f"{stem}_")
        begins = len(os.path.commonprefix([name.split("_"), stem.split("_")]))
        return not is_named, -begins, distances(test).get(header, 99), -(ROOT / test).stat().st_size

    near = [test for test in tests() if header in distances(test) or rank(test)[0] is False]
    return sorted(near, key=rank)[:MOST]
