"""What this process has in use, to tell whether many calls leave something behind."""
import ctypes
import gc
import os
import time

import numpy as np


class Mallinfo2(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks",
                                                     "uordblks", "fordblks", "keepcost")]


LIBC = ctypes.CDLL(None)
LIBC.mallinfo2.restype = Mallinfo2


def memory():
    """Bytes that malloc has given out, and bytes that are resident once malloc has given back what is free."""
    gc.collect()
    LIBC.malloc_trim(0)
    heap = LIBC.mallinfo2()
    with open("/proc/self/statm") as statm:
        return heap.uordblks + heap.hblkhd, int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def accounting(module):
    """How many of Purlin's events, clients, pools and queues live, and bytes in use of the client of `module`, a library
    with purlin_report and purlin_bytes; once no call is left, whose last part goes after its end."""
    module.purlin_report.restype = ctypes.c_char_p
    module.purlin_bytes.restype = ctypes.c_int64
    end = time.monotonic() + 20
    while True:
        report = module.purlin_report().decode()
        kept = [line for line in report.splitlines() if line.startswith(("event '", "client", "pool '", "queue '"))]
        # A pool has an event for its end.
        if all(line.startswith("event 'pool ended'") for line in kept if line.startswith("event '")):
            return len(kept), module.purlin_bytes()
        assert time.monotonic() < end, f"events stay pending:\n{report}"
        time.sleep(0.001)


def leaves_nothing(name, module, function, argument, calls):
    """Calls `function(argument)`, which gives `argument` back, `calls` times, and shows that nothing of that is left."""
    for _ in range(max(calls // 10, 100)):  # Whatever is made once is there then.
        result = function(argument)
    del result
    before = accounting(module)
    allocated, resident = memory()
    began = time.monotonic()
    for _ in range(calls):
        result = function(argument)
    each = (time.monotonic() - began) / calls
    np.testing.assert_array_equal(np.asarray(result), np.asarray(argument))
    del result
    after = accounting(module)
    assert after == before, f"{name}: Purlin's accounting was {before} and is {after}"
    now = memory()
    report = (f"{name}: {calls} calls, {each * 1e6:.1f} us each; {now[0] - allocated} bytes more are allocated, "
              f"{now[1] - resident} bytes more resident")
    print(report, flush=True)
    assert now[0] - allocated < 8 * calls + 65536 and now[1] - resident < 8 * calls + (2 << 20), report
