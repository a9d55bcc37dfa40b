// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "../examples/video_classification/clips.hpp"
#include "examples/program.hpp"
#include "python.hpp"
#include "skip.hpp"
#include "temporary_folder.hpp"

using namespace lockstep;
using lockstep_test::contains;
using video_classification::Clip;

namespace {

using Words = std::vector<std::string>;

lockstep_test::Outcome command(Words const& words) { return lockstep_test::Program("/usr/bin/env", words).wait(120); }

lockstep_test::Outcome cut(Words more) {
  more.insert(more.begin(), {lockstep_test::python(), LOCKSTEP_SOURCE_DIR "/tools/cut_clips.py"});
  return command(more);
}

/// A video of 3 s with 10 frames per second, each brighter than the previous one.
bool made_video(std::string const& path) {
  return command({"ffmpeg", "-v", "error", "-f", "lavfi", "-i",
                  "color=black:size=64x48:rate=10:duration=3,geq=lum='20+N*7':cb=128:cr=128", "-pix_fmt", "yuv420p",
                  path})
             .exit_code == 0;
}

/// Whether the machine has the script's requirements; reports the case as skipped if not.
bool has_tools(lockstep_test::TemporaryFolder const& folder) {
  bool const ready =
      made_video(folder / "mouse.mp4") && command({lockstep_test::python(), "-c", "import numpy"}).exit_code == 0;
  if (!ready) lockstep_test::skip(lockstep_test::Need::python, "numpy, and the command ffmpeg");
  return ready;
}

}  // namespace

TEST_CASE("clips are cut from videos by seconds or frames, and the trainer's reader reads them") {
  lockstep_test::TemporaryFolder const folder;
  if (!has_tools(folder)) return;
  auto const events = lockstep_test::save(folder, "events.csv",
                                          "video,start,frame,label,split\n"
                                          "mouse.mp4,0.5,,up,train\n"
                                          "mouse.mp4,,5,up,train\n"
                                          "mouse.mp4,2.0,,down,train\n"
                                          "mouse.mp4,,3,down,train\n");
  auto const outcome =
      cut({"--events", events, "--out", folder / "clips", "--frames", "4", "--height", "12", "--width", "16"});
  CAPTURE(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK(outcome.out == "mouse.mp4: 4 of 4 clips at 10 frames per second\n");
  video_classification::Clips const clips(folder / "clips");
  REQUIRE(clips.size() == 4);
  CHECK(clips.clip_size().text() == "4 x 12 x 16");
  CHECK(clips.classes().names() == Words{"down", "up"});
  CHECK(clips.videos() == Words{"mouse.mp4"});
  CHECK(clips.part(0) == video_classification::Part::training);
  CHECK(clips.examine().clips == 0);
  auto const half = clips.get(0), fifth = clips.get(1), late = clips.get(2), third = clips.get(3);
  CHECK(half.label == 1);
  CHECK(late.label == 0);
  CHECK(half.pixels == fifth.pixels);  // 0.5 s is frame 5
  auto const frame = [](Clip const& clip, int number) {
    auto const first = clip.pixels.begin() + number * 12 * 16;
    return std::vector<std::uint8_t>(first, first + 12 * 16);
  };
  CHECK(frame(third, 2) == frame(fifth, 0));
  CHECK(frame(third, 3) == frame(fifth, 1));
  for (int k = 0; k + 1 < 4; ++k) CHECK(frame(half, k)[0] < frame(half, k + 1)[0]);
  CHECK(frame(half, 3)[0] < frame(late, 0)[0]);
}

TEST_CASE("a video that is too short, missing or damaged is refused in one sentence") {
  lockstep_test::TemporaryFolder const folder;
  if (!has_tools(folder)) return;
  lockstep_test::save(folder, "text.mp4", "no video");
  int count = 0;
  auto const refused = [&](std::string const& rows, Words const& message, Words more = {}) {
    auto const name = std::to_string(count++);
    auto const events = lockstep_test::save(folder, "events_" + name + ".csv", rows);
    more.insert(more.end(),
                {"--events", events, "--out", folder / name, "--frames", "4", "--height", "8", "--width", "8"});
    auto const outcome = cut(more);
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.lines_of_err() == 1);
    for (auto const& part : message) CHECK_MESSAGE(contains(outcome.err, part), part);
    CHECK_FALSE(std::filesystem::exists(folder / name + "/index.csv"));
  };
  std::string const header = "video,start,label\n", good = "mouse.mp4,0,a\n";
  refused(header, {"holds no events"});
  refused(header + "mouse.mp4,0,\xFC\n", {".csv: cannot be read as a table in UTF-8"});
  refused("video,label\nmouse.mp4,a\n", {"lacks the column start (seconds) or frame"});
  refused("start,label\n1,a\n", {"lacks the column video"});
  refused(header + good + "mouse.mp4,soon,a\n", {".csv:3", "\"soon\" is no number"});
  refused(header + "mouse.mp4,-1,a\n", {".csv:2", "must begin at 0 or later"});
  refused(header + "mouse.mp4,nan,a\n", {".csv:2", "must begin at 0 or later"});
  refused(header + "mouse.mp4,,a\n", {".csv:2", "needs a start"});
  refused(header + "mouse.mp4,1,\n", {".csv:2", "has no label"});
  refused(header + good + "none.mp4,0,a\n", {"none.mp4: there is no such video"});
  refused(header + "text.mp4,0,a\n", {"text.mp4: is no video that ffmpeg can read"});
  refused(header + good + "mouse.mp4,2.7,a\n", {".csv:3: mouse.mp4 ends before frame 31"});
  refused(header + good, {"label \"a\" is none of --classes b,c"}, {"--classes", "b,c"});
  refused("video,start,label,split\nmouse.mp4,0,a,half\n", {".csv:2", "must be train or test"});
  auto const events = lockstep_test::save(folder, "events.csv", header + good + "mouse.mp4,2.7,b\n");
  Words const flags{"--events", events, "--out", folder / "short", "--frames", "4", "--skip-short"};
  CHECK(cut(flags).exit_code == 0);
  CHECK(lockstep_test::read_file(folder / "short/index.csv") ==
        "file,first_frame,frames,label,video\nclips/00000.npy,0,4,a,mouse.mp4\n");
  CHECK(contains(cut(flags).err, "already holds an index.csv"));
}
