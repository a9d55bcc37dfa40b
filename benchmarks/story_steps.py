# SPDX-License-Identifier: Apache-2.0
"""Processor time of a training step of the five stories, from files to updated parameters, against peers/story_steps.py:
    story_steps.py PROGRAMS STORY FOLDER STEPS [ROUNDS]
PROGRAMS is the folder of the built trainers, FOLDER the data. One computing thread, and one loader thread here. The programs
alternate. The time of a step is that of a run of STEPS steps less that of a run of one, over STEPS - 1, workers included. Prints
PyTorch's time over ours for each round and kind, and their median."""
import os
import resource
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
BATCH = {"text_classification": 32, "activity_classification": 32, "pose_to_text": 16, "trajectory_transformer": 32,
         "video_classification": 16}


def command(programs, story, kind, folder, steps):
    if kind == "ours":
        data = folder + "/train.csv" if story == "text_classification" else folder
        more = ["--beam", "0"] if story == "pose_to_text" else []
        return [f"{programs}/{story}", "--data", data, "--threads", "1", "--num-workers", "1", "--batch-size",
                str(BATCH[story]), "--epochs", "1000", "--eval-every", "1000000", "--max-steps", str(steps)] + more
    python = os.environ.get("LOCKSTEP_PEER_PYTHON", "python3")
    return [python, f"{HERE}/peers/story_steps.py", story, kind, folder, "--steps", str(steps)]


def processor_seconds(arguments):
    used = lambda: sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    before = used()
    subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return used() - before


def main(programs, story, folder, steps, rounds="3"):
    kinds, steps = ("ours", "before", "after"), int(steps)
    processor_seconds(command(programs, story, "ours", folder, 1))  # prepares the texts, warms the page cache
    start = {kind: min(processor_seconds(command(programs, story, kind, folder, 1)) for _ in range(2)) for kind in kinds}
    ratios = {"before": [], "after": []}
    for _ in range(int(rounds)):
        step = {kind: (processor_seconds(command(programs, story, kind, folder, steps)) - start[kind]) / (steps - 1)
                for kind in kinds}
        print(story, ", ".join(f"{kind} {1e3 * step[kind]:.2f} ms" for kind in kinds), flush=True)
        for kind, all_of in ratios.items():
            all_of.append(step[kind] / step["ours"])
    for kind, all_of in ratios.items():
        print(f"{story}: {kind} / ours {statistics.median(all_of):.2f} ({min(all_of):.2f} to {max(all_of):.2f})", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
