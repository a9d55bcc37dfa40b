# SPDX-License-Identifier: Apache-2.0
"""The protocol between a benchmark and its peer: a number of seconds per line in, work per second out."""
import sys
import time


def take_turns(work, per_call=1, clock=time.process_time):
    """Calls work() for as many seconds as each line of standard input says; answers with the work per second, where a call
    counts as `per_call`. The default clock counts this process's processor time."""
    print("ready", flush=True)
    for line in sys.stdin:
        duration = float(line)
        calls, batch, elapsed, start = 0, 1, 0.0, clock()
        while elapsed < duration:
            for _ in range(batch):
                work()
            calls += batch
            elapsed = clock() - start
            batch = max(1, min(2 * batch, int(1e-3 * calls / max(elapsed, 1e-9))))
        print(per_call * calls / elapsed, flush=True)
