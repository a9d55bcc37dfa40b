# SPDX-License-Identifier: Apache-2.0
"""A Python trainer's work before its first step, with the standard library: count_words.py FILE [encode]. Reads a CSV file of
label, title and text (csv), splits each text into lower-case words (re) and counts them (Counter). With `encode` it also
assigns ids to the 20,000 most frequent words and encodes the first 128 words of each text, in a second pass. Wall-clock
time: `echo 1 | python3 count_words.py train.csv` runs once."""
import csv
import re
import sys
import time
from collections import Counter

from turns import take_turns

WORDS = re.compile("[a-z0-9\x80-\U0010ffff]+")


def texts(path):
    with open(path, newline="", encoding="utf-8") as file:
        for _, title, text in csv.reader(file):
            yield WORDS.findall((title + " " + text).lower())


def start(path, encodes):
    counts = Counter()
    for words in texts(path):
        counts.update(words)
    if encodes:
        ids = {word: i + 2 for i, (word, count) in enumerate(counts.most_common(19998)) if count > 1}
        return [[ids.get(word, 1) for word in words[:128]] for words in texts(path)]
    return counts


def main(path, *rest):
    take_turns(lambda: start(path, "encode" in rest), per_call=300_000, clock=time.perf_counter)


if __name__ == "__main__":
    main(*sys.argv[1:])
