#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Converts pickled poses into the folder that pose_to_text trains on.

    tools/poses_to_npy.py train.pkl dev.pkl test.pkl --out poses
    tools/poses_to_npy.py clips/*.pkl --texts texts.tsv --out poses

A pickle (or .pkl.gz) holds one sample, a list of samples, or a dictionary of them by name. A sample is an array
[frames, joints, 2 to 4], a list with an entry for each frame, or a dictionary with some of these keys:

    keypoints, keypoint, poses       all joints, with scores in keypoint_scores, keypoint_score, scores or confidence
    pose, body, pose_landmarks, pose_keypoints_2d                 the body
    face, face_landmarks, face_keypoints_2d                       the face
    left_hand, left_hand_landmarks, hand_left_keypoints_2d        the left hand
    right_hand, right_hand_landmarks, hand_right_keypoints_2d     the right hand
    frames, people                   a list with such a dictionary for each frame, or each person (the first is used)
    text, translation, sentence, caption, gloss, label            the text
    name, id, video, file, split                                  name and split of the sample

Parts are written in the order body, face, left hand, right hand (or all joints), as many joints as the largest
sample has. Numbers are x, y and confidence: a fourth column replaces the third (x, y, z, visibility), two columns get
confidence 1. Missing values, None and NaN become 0 with confidence 0. Needs Python 3.8 and numpy.
"""
import argparse
import csv
import gzip
import io
import os
import pickle
import re
import sys

try:
    import numpy as np
except ImportError:
    sys.exit("poses_to_npy.py: needs numpy; install it (Debian: python3-numpy)")

PARTS = {
    "all": ("keypoints", "keypoint", "poses"),
    "body": ("pose", "body", "pose_landmarks", "pose_keypoints_2d"),
    "face": ("face", "face_landmarks", "face_keypoints_2d"),
    "left hand": ("left_hand", "left_hand_landmarks", "hand_left_keypoints_2d"),
    "right hand": ("right_hand", "right_hand_landmarks", "hand_right_keypoints_2d"),
}
SCORES = ("keypoint_scores", "keypoint_score", "scores", "confidence", "confidences")
TEXTS = ("text", "translation", "sentence", "caption", "gloss", "label")
NAMES = ("name", "id", "video", "file", "video_id", "filename")
CHANNELS = 3


EXTENSIONS = re.compile(r"(\.(pkl|pickle|gz|npy|npz|json|csv|txt|pose|h5|hdf5|avi|flv|m4v|mkv|mov|mp4|mpe?g|webm|wmv))+$",
                        re.IGNORECASE)


class Refused(Exception):
    """Input that cannot be converted, with the reason."""


class Unpickler(pickle.Unpickler):
    """Reads numbers, texts, containers and numpy arrays; a pickle that would run other code is refused."""

    ALLOWED = {"collections": {"OrderedDict", "defaultdict"}, "builtins": {"dict", "list", "set", "tuple", "complex"},
               "_codecs": {"encode"}}

    def find_class(self, module, name):
        if name in self.ALLOWED.get(module, ()):
            return super().find_class(module, name)
        if re.fullmatch(r"numpy(\._?core(\.(multiarray|numeric|_internal))?|\.dtypes)?", module) and name in (
                "_reconstruct", "ndarray", "dtype", "scalar", "_frombuffer", "float32", "float64") or (
                    module == "numpy.dtypes" and name.endswith("DType")):
            return super().find_class(module, name)
        raise Refused(f"holds an object of {module}.{name}; save numpy arrays and plain Python containers only")


def load(path):
    """Returns a pickle's contents."""
    try:
        with open(path, "rb") as file:
            data = file.read()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        return Unpickler(io.BytesIO(data)).load()
    except Refused as error:
        raise Refused(f"{path}: {error}") from None
    except Exception as error:  # unpickling fails in many ways
        raise Refused(f"{path}: cannot be read as a pickle: {error}") from None


def numbers_of(landmark):
    """Returns the coordinates of one landmark, which may be a dictionary, a list or None."""
    if isinstance(landmark, dict):
        keys = [k for k in ("x", "y", "z", "visibility", "confidence", "score") if k in landmark]
        values = [landmark[k] for k in keys]
        if "z" in keys and len(values) == 3:  # a hand of MediaPipe has no visibility
            values = values[:2]
        return values
    return landmark


def joints_of(frame):
    """Returns one part of one frame as an array [joints, columns]; no joints if it is missing."""
    if frame is not None and not hasattr(frame, "__len__") or np.ndim(frame) == 0 and isinstance(frame, np.ndarray):
        raise Refused("has a single number where a frame was expected")
    if frame is None or len(frame) == 0:
        return np.zeros((0, CHANNELS), np.float32)
    if isinstance(frame, dict):  # of MediaPipe's {"landmark": [...]}
        frame = frame.get("landmark", frame.get("landmarks", []))
        return joints_of(frame)
    if not isinstance(frame, np.ndarray):
        rows = [numbers_of(each) for each in frame]
        if any(np.ndim(row) > 0 for row in rows):
            width = max(len(row) for row in rows if row is not None)
            frame = np.array([[np.nan] * width if row is None else list(row) for row in rows], np.float64)
        else:
            frame = np.array(rows, np.float64)
    if frame.ndim == 1:  # OpenPose: x, y, confidence, x, y, confidence, ...
        if frame.size % CHANNELS != 0:
            raise Refused(f"has {frame.size} numbers in a frame; x, y and confidence of each joint were expected")
        frame = frame.reshape(-1, CHANNELS)
    if frame.ndim != 2 or not 2 <= frame.shape[1] <= 4:
        raise Refused(f"has a frame of shape {frame.shape}; [joints, 2 to 4] was expected")
    return frame


def channels_of(joints, scores=None):
    """Returns x, y and confidence of an array [joints, columns]."""
    joints = np.asarray(joints, np.float64)
    out = np.zeros((len(joints), CHANNELS), np.float64)
    if len(joints) == 0:
        return out.astype(np.float32)
    out[:, :2] = joints[:, :2]
    if scores is not None:
        out[:, 2] = np.asarray(scores, np.float64).reshape(-1)[: len(joints)]
    elif joints.shape[1] > 2:
        out[:, 2] = joints[:, -1]
    else:
        out[:, 2] = np.any(joints != 0, axis=1)
    out[~np.isfinite(out).all(axis=1)] = 0
    return out.astype(np.float32)


def frames_of(value):
    """Returns a list with one entry for each frame."""
    if value is None:
        return []
    if isinstance(value, np.ndarray) and value.ndim == 4:  # MMAction: [persons, frames, joints, columns]
        value = value[0]
    return list(value)


def scores_of(value):
    if value is None:
        return None
    if isinstance(value, np.ndarray) and value.ndim == 3:
        value = value[0] if value.shape[-1] != 1 else value[..., 0]
    return list(value)


def parts_of(sample):
    """Returns the parts of a sample: a dictionary of lists of arrays [joints, 3], one for each frame."""
    if not isinstance(sample, dict):
        frames = frames_of(sample)
        if frames and isinstance(frames[0], dict):
            return parts_of_frames(frames)
        return {"all": [channels_of(joints_of(each)) for each in frames]}
    if "frames" in sample and isinstance(sample["frames"], (list, tuple)):
        return parts_of_frames(sample["frames"])
    out, scores = {}, next((scores_of(sample[k]) for k in SCORES if sample.get(k) is not None), None)
    for part, keys in PARTS.items():
        key = next((k for k in keys if sample.get(k) is not None), None)
        if key is None:
            continue
        frames = frames_of(sample[key])
        if frames and isinstance(frames[0], dict) and any(k in frames[0] for keys in PARTS.values() for k in keys):
            return parts_of_frames(frames)
        given = scores if part == "all" and scores is not None and len(scores) == len(frames) else [None] * len(frames)
        out[part] = [channels_of(joints_of(each), of) for each, of in zip(frames, given)]
    if not out:
        raise Refused(f"has none of the keys {', '.join(k for keys in PARTS.values() for k in keys)}; "
                      f"its keys are {', '.join(map(str, sample))}")
    if "all" in out and len(out) > 1:
        del out["all"]  # the same joints, in parts
    lengths = {len(frames) for frames in out.values() if frames}
    if len(lengths) > 1:
        raise Refused("its parts have " + ", ".join(f"{len(f)} ({p})" for p, f in out.items()) +
                      " frames; all parts need the same number")
    return out


def parts_of_frames(frames):
    """Returns the parts of frames that are dictionaries, any of which may lack some."""
    out = {}
    for number, frame in enumerate(frames):
        if isinstance(frame, dict) and "people" in frame:  # OpenPose; the first person signs
            frame = frame["people"][0] if frame["people"] else {}
        scores = next((frame[k] for k in SCORES if frame and frame.get(k) is not None), None)
        for part, keys in PARTS.items():
            key = next((k for k in keys if frame and frame.get(k) is not None), None)
            if key is None:
                continue
            joints = joints_of(frame[key])
            mine = scores if part == "all" and scores is not None and np.size(scores) == len(joints) else None
            out.setdefault(part, {})[number] = channels_of(joints, mine)
    if not out:
        raise Refused("no frame has a pose")
    if "all" in out and len(out) > 1:
        del out["all"]
    nothing = np.zeros((0, CHANNELS), np.float32)
    return {part: [of.get(i, nothing) for i in range(len(frames))] for part, of in out.items()}


def stem_of(name):
    """Returns a name without folders and without the extension of a file; clip.01 remains."""
    base = os.path.basename(name)
    return EXTENSIONS.sub("", base) or base


def depth_of(value):
    """Returns how many levels of lists and arrays a value has; a landmark {x, y, ...} is one."""
    if isinstance(value, np.ndarray):
        return value.ndim
    if isinstance(value, (list, tuple)):
        return 1 + next((depth_of(each) for each in value if each is not None), 0)
    return int(isinstance(value, dict) and "x" in value)


def samples_of(path, split):
    """Yields (name, text, split, sample) of a pickle."""
    data, base = load(path), re.sub(r"(\.(pkl|pickle|gz))+$", "", os.path.basename(path))
    known = {k for keys in PARTS.values() for k in keys} | {"frames", "people"}
    many = isinstance(data, dict) and not known & set(data)
    if isinstance(data, (list, tuple)) and len(data) > 0:
        if isinstance(data[0], dict):
            many = any(k in data[0] for k in TEXTS + NAMES)
        else:
            many = depth_of(data) > 3  # more than frames, joints and columns
    if not many:
        data = {base: data}
    for number, (key, sample) in enumerate(data.items() if isinstance(data, dict) else enumerate(data)):
        of = sample if isinstance(sample, dict) else {}
        name = next((str(of[k]) for k in NAMES if of.get(k) is not None),
                    key if isinstance(key, str) else f"{base}-{number}")
        text = next((of[k] for k in TEXTS if of.get(k) is not None), None)
        if text is not None and not isinstance(text, str):
            text = " ".join(map(str, text)) if isinstance(text, (list, tuple)) else str(text)
        yield name, text, of.get("split") or split, sample


def split_of(path):
    """Returns the split in a file's name, or an empty string."""
    words = re.split(r"[^a-z]+", os.path.basename(path).lower())
    return next((s for s in ("train", "dev", "val", "valid", "validation", "test") if s in words), "")


def read_table(path):
    """Returns {name: (text, split)} of a TSV or CSV file with a header."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, delimiter="," if path.endswith(".csv") else "\t")
            rows = [(reader.line_num, row) for row in reader]
    except (UnicodeDecodeError, csv.Error) as error:
        raise Refused(f"{path}: cannot be read as a table in UTF-8: {error}; convert it") from None
    if not rows:
        raise Refused(f"{path}: has no rows")
    name = next((k for k in NAMES if k in rows[0][1]), None)
    text = next((k for k in TEXTS if k in rows[0][1]), None)
    if name is None or text is None:
        raise Refused(f"{path}: needs a column {' or '.join(NAMES)} and a column {' or '.join(TEXTS)}")
    for line, row in rows:
        if row[name] is None or row[text] is None:
            raise Refused(f"{path}:{line}: has no cell for the column {name if row[name] is None else text}; add it")
    return {stem_of(row[name]): (row[text], row.get("split") or "") for _, row in rows}


def joined(parts, sizes):
    """Returns a sample [frames, joints, 3], with zeros for missing parts and joints."""
    frames = max(len(of) for of in parts.values())
    out = np.zeros((frames, sum(sizes.values()), CHANNELS), np.float32)
    first = 0
    for part, size in sizes.items():
        for i, joints in enumerate(parts.get(part, ())):
            out[i, first : first + len(joints)] = joints
        first += size
    return out


def normalized(pose):
    """Returns a pose whose visible joints have mean 0 and mean square 1 over the sample; others stay 0."""
    seen = pose[..., 2] > 0
    if not seen.any():
        return pose
    out = pose.copy()
    out[..., :2] -= pose[seen][:, :2].mean(axis=0)
    scale = np.sqrt((out[seen][:, :2] ** 2).mean())
    out[..., :2] /= scale if scale > 0 else 1
    out[~seen] = 0
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pickles", nargs="+", metavar="PICKLE")
    parser.add_argument("--out", required=True, help="new folder for index.tsv and poses/")
    parser.add_argument("--texts", help="TSV or CSV with name, text and split, for pickles without texts")
    parser.add_argument("--scale", choices=("box", "none"), default="box",
                        help="box: mean 0 and mean square 1 of x and y in each sample; none: as they are (default box)")
    parser.add_argument("--dtype", choices=("float32", "float16"), default="float32")
    options = parser.parse_args()
    try:
        if os.path.exists(options.out):
            raise Refused(f"{options.out}: exists already; name a new folder")
        table = read_table(options.texts) if options.texts else {}
        sizes = {}
        for path in options.pickles:  # number of joints of each part
            for name, _, _, sample in samples_of(path, ""):
                try:
                    for part, frames in parts_of(sample).items():
                        sizes[part] = max([sizes.get(part, 0)] + [len(joints) for joints in frames])
                except Refused as error:
                    raise Refused(f"{path}: sample {name} {error}") from None
                except (TypeError, ValueError, IndexError, KeyError, AttributeError) as error:
                    raise Refused(f"{path}: sample {name} is laid out in another way than --help says: {error}") from None
        sizes = {part: sizes[part] for part in PARTS if sizes.get(part)}
        if "all" in sizes and len(sizes) > 1:
            raise Refused("some samples have all joints in one array, and others in parts; convert them by themselves")
        os.makedirs(os.path.join(options.out, "poses"))
        rows, taken = [], set()
        for path in options.pickles:
            for name, text, split, sample in samples_of(path, split_of(path)):
                stem = re.sub(r"[^\w.-]+", "_", stem_of(name)) or "sample"
                while stem in taken:
                    stem += "_"
                taken.add(stem)
                more = table.get(stem_of(name), ("", ""))
                pose = joined(parts_of(sample), sizes)
                if len(pose) == 0:
                    print(f"note: {path}: sample {name} has no frames and is left out", file=sys.stderr)
                    continue
                if options.scale == "box":
                    pose = normalized(pose)
                file = f"poses/{stem}.npy"
                np.save(os.path.join(options.out, file), pose.astype(options.dtype))
                text = text if text is not None else more[0]
                rows.append((file, re.sub(r"\s+", " ", text).strip(), split or more[1] or "train"))
        with open(os.path.join(options.out, "index.tsv"), "w", encoding="utf-8", newline="") as out:
            writer = csv.writer(out, delimiter="\t", lineterminator="\n")
            writer.writerow(("file", "text", "split"))
            writer.writerows(rows)
        without = sum(not row[1] for row in rows)
        print(f"{len(rows)} samples of {sum(sizes.values())} joints ({', '.join(f'{p} {n}' for p, n in sizes.items())}) "
              f"in {options.out}" + (f"; {without} without a text (see --texts)" if without else ""))
    except (Refused, OSError) as error:
        sys.exit(f"poses_to_npy.py: {error}")


if __name__ == "__main__":
    main()
