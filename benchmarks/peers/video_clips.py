# SPDX-License-Identifier: Apache-2.0
"""PyTorch's DataLoader on a folder of clips in the format of the video classifier: video_clips.py FOLDER BATCH KIND. Uses the
fastest of 0, 1 and 2 workers. Answers as loader.py does.

The kind `before` is the team's own dataset and collate: each clip becomes float32 on the CPU, scaled and with a channel, and
floats are stacked. `after` keeps bytes and fills one array of bytes."""
import csv
import os
import sys

import numpy
import torch
from torch.utils.data import Dataset

from loader import Forever, answer_with_fastest


class Clips(Dataset):
    def __init__(self, folder, kind):
        with open(os.path.join(folder, "index.csv"), newline="") as file:
            self.rows = [(os.path.join(folder, row["file"]), int(row["first_frame"]), int(row["frames"]))
                         for row in csv.DictReader(file)]
        self.before = kind == "before"

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        path, first, frames = self.rows[i]
        if self.before:
            clip = numpy.load(path)[first : first + frames].astype(numpy.float32) / 255.0
            return torch.from_numpy((clip - 0.5) / 0.25).unsqueeze(0)
        clip = numpy.load(path, mmap_mode="r")[first : first + frames]
        return torch.from_numpy(numpy.array(clip))


def stack_bytes(samples):
    return torch.stack(samples, out=torch.empty(len(samples), *samples[0].shape, dtype=torch.uint8))


def main(folder, batch, kind):
    collate = None if kind == "before" else stack_bytes
    answer_with_fastest("clips", [
        (f"{kind} with {workers} workers",
         lambda workers=workers: Forever(Clips(folder, kind), int(batch), workers, collate))
        for workers in (0, 1, 2)])


if __name__ == "__main__":
    main(*sys.argv[1:])
