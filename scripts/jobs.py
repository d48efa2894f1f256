"""How many jobs run at once: JOBS of the environment, passed to all tools that start jobs (as scripts/common.sh does)."""
import os
import re
import sys

TOLD = ("CARGO_BUILD_JOBS", "RUST_TEST_THREADS", "CMAKE_BUILD_PARALLEL_LEVEL", "CTEST_PARALLEL_LEVEL")
JOBS = os.environ.get("JOBS", "")
if JOBS:
    if not re.fullmatch(r"[1-9][0-9]{0,3}", JOBS):
        print(f"{os.path.basename(sys.argv[0])}: JOBS is a number from 1 to 9999, not '{JOBS}'", file=sys.stderr)
        sys.exit(2)
    os.environ.update(dict.fromkeys(TOLD, JOBS))
else:
    JOBS = str(os.cpu_count() or 1)
