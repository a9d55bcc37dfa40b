#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cuts clips from videos by a table of events and writes them as a folder for `video_classification --data`.

The events are a CSV file with the columns video, label, and start (seconds) or frame, and optionally split (train or
test):

    video,start,label,split
    mouse_07.mp4,12.4,rearing,train
    mouse_07.mp4,31.0,rest,train

Each clip is grayscale, resized and of type uint8. The clips of a video are one .npy file, [clips * frames, height,
width]; index.csv has a row for each clip, classes.txt the names of the classes. Needs numpy and the command ffmpeg, or
the Python package imageio-ffmpeg, which includes it. A video is decoded once, from its beginning to the last frame that
a clip needs."""
import argparse
import csv
import os
import re
import shutil
import subprocess
import sys

try:
    import numpy as np
except ImportError:
    sys.exit("cut_clips.py: needs numpy; install it (Debian: python3-numpy)")


class Refused(Exception):
    """Invalid input, described in one sentence for users."""


def find_ffmpeg():
    found = shutil.which("ffmpeg")
    if found:
        return found
    try:
        import imageio_ffmpeg
        return imageio_ffmpeg.get_ffmpeg_exe()
    except ImportError:
        raise Refused("there is no command ffmpeg; install it (Debian: ffmpeg), or the Python package imageio-ffmpeg")


def read_events(path):
    """Returns events_of(path)."""
    try:
        return events_of(path)
    except (UnicodeDecodeError, csv.Error) as error:
        raise Refused(f"{path}: cannot be read as a table in UTF-8: {error}; convert it") from None


def events_of(path):
    """Returns a dictionary from video to a list of (line, start or None, frame or None, label, split or None)."""
    with open(path, newline="", encoding="utf-8-sig") as file:
        rows = csv.DictReader(file)
        names = rows.fieldnames or []
        missing = [name for name in ("video", "label") if name not in names]
        if missing or not {"start", "frame"} & set(names):
            raise Refused(f"{path}: lacks the column {missing[0] if missing else 'start (seconds) or frame'}")
        by_video = {}
        for row in rows:
            line = rows.line_num
            video, label = (row["video"] or "").strip(), (row["label"] or "").strip()
            if not video or not label:
                raise Refused(f"{path}:{line}: has no {'label' if video else 'video'}")
            split = (row.get("split") or "").strip() if "split" in names else None
            if split is not None and split not in ("train", "test"):
                raise Refused(f"{path}:{line}: split \"{split}\": must be train or test")
            start, frame = (row.get("start") or "").strip(), (row.get("frame") or "").strip()
            try:
                start, frame = float(start) if start else None, int(frame) if frame else None
            except ValueError:
                raise Refused(f"{path}:{line}: \"{start or frame}\" is no number")
            if (start is None) == (frame is None):
                raise Refused(f"{path}:{line}: needs a start in seconds or a frame, and not both")
            if not 0 <= (frame if start is None else start) < 1e9:
                raise Refused(f"{path}:{line}: the clip must begin at 0 or later")
            by_video.setdefault(video, []).append((line, start, frame, label, split))
    if not by_video:
        raise Refused(f"{path}: holds no events")
    return by_video


def frame_rate(ffmpeg, path):
    """Returns the frames per second that ffmpeg reports for the file's first video stream."""
    told = subprocess.run([ffmpeg, "-hide_banner", "-nostdin", "-i", path], capture_output=True, text=True,
                          errors="replace").stderr
    found = re.search(r"Video:.*?([0-9.]+) fps", told)
    if not found:
        raise Refused(f"{path}: is no video that ffmpeg can read: {(told.strip().splitlines() or ['?'])[-1]}")
    return float(found.group(1))


def decoded_frames(ffmpeg, path, rate, height, width):
    """Yields the frames of a video, grayscale and resized, at a constant rate."""
    command = [ffmpeg, "-v", "error", "-nostdin", "-i", path, "-map", "0:v:0", "-an", "-sn",
               "-vf", f"fps={rate},scale={width}:{height}:flags=area,format=gray", "-f", "rawvideo", "-"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as decoder:
        try:
            while True:
                data = decoder.stdout.read(height * width)
                if len(data) < height * width:
                    return
                yield np.frombuffer(data, np.uint8).reshape(height, width)
        finally:
            decoder.kill()


def cut(ffmpeg, path, out, firsts, frames, rate, height, width):
    """Writes the clips that begin at the frames `firsts`, in this order. Returns a list of whether each was written; it is
    False if the video is too short."""
    array = np.lib.format.open_memmap(out, mode="w+", dtype=np.uint8, shape=(len(firsts) * frames, height, width))
    wanted = {}
    for clip, first in enumerate(firsts):
        for k in range(frames):
            wanted.setdefault(first + k, []).append(clip * frames + k)
    last, filled = max(wanted), set()
    for number, frame in enumerate(decoded_frames(ffmpeg, path, rate, height, width)):
        for place in wanted.get(number, ()):
            array[place] = frame
            filled.add(place)
        if number == last:
            break
    array.flush()
    return [all(clip * frames + k in filled for k in range(frames)) for clip in range(len(firsts))]


def run(o):
    ffmpeg, by_video = find_ffmpeg(), read_events(o.events)
    if os.path.exists(os.path.join(o.out, "index.csv")):
        raise Refused(f"{o.out}: already holds an index.csv; name another folder")
    folder = o.videos or os.path.dirname(o.events) or "."
    labels = {label for events in by_video.values() for _, _, _, label, _ in events}
    classes = o.classes.split(",") if o.classes else sorted(labels)
    if not labels <= set(classes):
        raise Refused(f"{o.events}: the label \"{min(labels - set(classes))}\" is none of --classes {o.classes}")
    for video in by_video:
        if not os.path.isfile(os.path.join(folder, video)):
            raise Refused(f"{os.path.join(folder, video)}: there is no such video; --videos names their folder")
    os.makedirs(os.path.join(o.out, "clips"), exist_ok=True)
    has_split = any(event[4] is not None for events in by_video.values() for event in events)
    rows = []
    for number, (video, events) in enumerate(by_video.items()):
        path = os.path.join(folder, video)
        rate = o.fps or frame_rate(ffmpeg, path)
        firsts = [frame if start is None else round(start * rate) for _, start, frame, _, _ in events]
        file = f"clips/{number:05d}.npy"
        written = cut(ffmpeg, path, os.path.join(o.out, file), firsts, o.frames, rate, o.height, o.width)
        for k, ((line, _, _, label, split), is_whole) in enumerate(zip(events, written)):
            if is_whole:
                rows.append([file, k * o.frames, o.frames, label, video] + ([split] if has_split else []))
            elif not o.skip_short:
                raise Refused(f"{o.events}:{line}: {video} ends before frame {firsts[k] + o.frames} at {rate:g} frames "
                              "per second; correct the event, or give --skip-short")
        print(f"{video}: {sum(written)} of {len(events)} clips at {rate:g} frames per second", flush=True)
    if not rows:
        raise Refused(f"{o.events}: no video is long enough for any of its clips")
    with open(os.path.join(o.out, "classes.txt"), "w", encoding="utf-8") as file:
        file.writelines(name + "\n" for name in classes)
    partial = os.path.join(o.out, "index.csv.partial")  # the index is written last: a folder with one is complete
    with open(partial, "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["file", "first_frame", "frames", "label", "video"] + (["split"] if has_split else []))
        table.writerows(rows)
    os.replace(partial, os.path.join(o.out, "index.csv"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", required=True, help="CSV file of events")
    parser.add_argument("--videos", help="folder of the videos (default: that of --events)")
    parser.add_argument("--out", required=True, help="folder to write")
    parser.add_argument("--frames", type=int, default=17, help="frames of a clip (default 17)")
    parser.add_argument("--height", type=int, default=256, help="height in pixels (default 256)")
    parser.add_argument("--width", type=int, default=256, help="width in pixels (default 256)")
    parser.add_argument("--fps", type=float, default=0, help="frames per second of the clips (default: the video's)")
    parser.add_argument("--classes", help="names of the classes in order, with commas (default: the labels, sorted)")
    parser.add_argument("--skip-short", action="store_true", help="leave out clips that the video is too short for")
    o = parser.parse_args()
    if min(o.frames, o.height, o.width) < 1 or o.fps < 0:
        parser.error("--frames, --height and --width must be at least 1, and --fps 0 or more")
    try:
        run(o)
    except (Refused, OSError) as error:
        print(f"cut_clips.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
