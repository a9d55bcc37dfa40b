# SPDX-License-Identifier: Apache-2.0
"""Peak memory of PyTorch in a forward and backward pass of the text classifier, in addition to parameters and their gradients:
the sum of its allocator's reports to the profiler, in order. Takes the arguments of text_classification.py. Counts the
bytes."""
import json
import tempfile

import torch
from torch.nn import functional as F
from torch.profiler import ProfilerActivity, profile

from kernels import zipf_ids
from text_classification import Classifier, arguments
from turns import answer_each


def main():
    o = arguments()
    model = Classifier(o)
    ids = zipf_ids(o.vocabulary, o.batch * o.length).reshape(o.batch, o.length)
    labels = torch.arange(o.batch) % o.classes

    def step():
        for p in model.parameters():
            p.grad = None
        F.cross_entropy(model(ids, None), labels).backward()

    step()
    for p in model.parameters():
        p.grad = None
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        step()
    with tempfile.NamedTemporaryFile(suffix=".json") as trace:
        profiler.export_chrome_trace(trace.name)
        events = [e for e in json.load(open(trace.name))["traceEvents"] if e.get("name") == "[memory]"]
    events = [(e["ts"], e["args"]["Addr"], e["args"]["Bytes"]) for e in events if e["args"]["Device Type"] == 0]
    events.sort(key=lambda e: e[0])

    # The last allocated one of several gradients at one address counts.
    gradients = {p.grad.data_ptr() for p in model.parameters()}
    last = {address: i for i, (_, address, size) in enumerate(events) if size > 0 and address in gradients}
    kept = set(last.values())
    held, most, alive = 0, 0, set()
    for i, (_, address, size) in enumerate(events):
        if i in kept or size < 0 and address not in alive:  # freed memory was allocated before the pass
            continue
        alive.add(address) if size > 0 else alive.discard(address)
        held += size
        most = max(most, held)

    answer_each(lambda count, words: (0, {"peak_bytes": most * count}))


if __name__ == "__main__":
    main()
