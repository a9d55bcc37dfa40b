# SPDX-License-Identifier: Apache-2.0
"""PyTorch's DataLoader on a folder of poses in the format of pose_to_text: pose_files.py FOLDER BATCH KIND. Answers as
loader.py does.

The kind `before` is the team's own: four worker processes, each of which holds an exclusive lock of one file while it reads a
sample, and a collate that appends padding to each sample and stacks the copies. `after` takes no lock and fills one array; the
fastest of 0, 1, 2 and 4 workers is used. Texts are encoded as bytes, which costs less than pieces."""
import csv
import fcntl
import os
import sys

import numpy
import torch
from torch.utils.data import Dataset

from loader import Forever, answer_with_fastest


class Poses(Dataset):
    def __init__(self, folder, kind):
        with open(os.path.join(folder, "index.tsv"), newline="") as file:
            self.rows = [(os.path.join(folder, row["file"]), row["text"]) for row in csv.DictReader(file, delimiter="\t")]
        self.lock = os.path.join(folder, "lock") if kind == "before" else None

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        path, text = self.rows[i]
        if self.lock:
            with open(self.lock, "a") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                pose = numpy.load(path)
        else:
            pose = numpy.load(path)
        return torch.from_numpy(pose).flatten(1), torch.tensor(list(text.encode()))


def append_and_stack(samples):
    """A team's first version."""
    out = []
    for column in zip(*samples):
        longest, rows = max(len(x) for x in column), []
        for x in column:
            rows.append(torch.cat([x, torch.zeros(longest - len(x), *x.shape[1:], dtype=x.dtype)]))
        out.append(torch.stack(rows))
    return out


def fill(samples):
    out = []
    for column in zip(*samples):
        filled = torch.zeros(len(column), max(len(x) for x in column), *column[0].shape[1:], dtype=column[0].dtype)
        for row, x in zip(filled, column):
            row[: len(x)] = x
        out.append(filled)
    return out


def main(folder, batch, kind):
    collate = append_and_stack if kind == "before" else fill
    answer_with_fastest("poses", [
        (f"{kind} with {workers} workers",
         lambda workers=workers: Forever(Poses(folder, kind), int(batch), workers, collate))
        for workers in ((4,) if kind == "before" else (0, 1, 2, 4))])


if __name__ == "__main__":
    main(*sys.argv[1:])
