# SPDX-License-Identifier: Apache-2.0
"""The protocol between a benchmark and its peer: `COUNT [WORD...]` per line in, `SECONDS [NAME VALUE]...` out."""
import sys
import time


def answer_each(measure):
    """Answers each line with measure(count, words): the seconds of that many iterations, and a dictionary of counters."""
    print("ready", flush=True)
    for line in sys.stdin:
        count, *words = line.split()
        seconds, counters = measure(int(count), words)
        print(seconds, *(f"{name} {value}" for name, value in counters.items()), flush=True)


def take_turns(work, per_call=1, clock=time.process_time):
    """Calls work() as often as each line of standard input says; a call counts as `per_call` items. The default clock counts
    this process's processor time. The first calls, which allocate memory and the optimizer's state, are not timed."""
    for _ in range(2):
        work()

    def measure(count, _):
        start = clock()
        for _ in range(count):
            work()
        return clock() - start, {"items": count * per_call}

    answer_each(measure)
