// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <lockstep/data/source/csv_dataset.hpp>
#include <lockstep/data/source/open_npy.hpp>

#include "python.hpp"
#include "temporary_folder.hpp"

using namespace lockstep;
using namespace lockstep_test;

namespace {

/// Pickles as written by tools for sign language.
constexpr char make_pickles[] = R"(
import collections, gzip, os, pickle, sys
import numpy as np
folder = sys.argv[1]
def save(name, value):
    with (gzip.open if name.endswith(".gz") else open)(os.path.join(folder, name), "wb") as file:
        pickle.dump(value, file)
def grid(frames, joints, columns, scale=1):  # joint j of frame f has x = f, y = j
    out = np.ones((frames, joints, columns)) * 0.5
    out[..., 0], out[..., 1] = np.arange(frames)[:, None] * scale, np.arange(joints)[None] * scale
    return out
# MMPose: all joints with scores beside them; and a list for each frame, with confidence
save("train.pkl", [
    {"name": "first", "text": "the  rain\n", "keypoints": grid(4, 5, 2), "keypoint_scores": np.full((4, 5), 0.25)},
    {"name": "second", "translation": "the \"sun\"", "keypoints": [frame for frame in grid(3, 5, 3)]}])
# MMAction: [persons, frames, joints, columns], gzipped, in a dictionary by name
save("dev.pkl.gz", collections.OrderedDict(
    third={"keypoint": grid(2, 5, 2)[None].astype(np.float16), "keypoint_score": np.full((1, 2, 5), 0.75),
           "gloss": ["WIND", "NORTH"]}))
# MediaPipe: parts, some of which are missing in a frame; z is not kept
def landmarks(count, **more):
    return [dict(x=float(j), y=2.0 * j, z=9.0, **more) for j in range(count)]
save("parts.pkl", {
    "pose": [landmarks(3, visibility=0.5), None], "left_hand": [None, landmarks(2)], "right_hand": [None, None],
    "face": [np.array([[1, np.nan], [3, 4.0]]), np.zeros((2, 2))], "text": "in parts", "split": "test"})
# OpenPose: people in frames, numbers one after the other
save("openpose.pkl", {"frames": [
    {"people": [{"pose_keypoints_2d": [1, 2, 0.5, 3, 4, 0.5], "hand_left_keypoints_2d": [5, 6, 0.5]}]},
    {"people": []}], "label": "open"})
save("bare.pkl", grid(2, 5, 2))
save("arrays.pkl", [grid(2, 5, 3), grid(3, 5, 3)])
save("lists.pkl", [grid(2, 5, 3).tolist(), grid(4, 5, 3).tolist()])
save("dots.pkl", {"clip.01": grid(2, 5, 3), "clip.02": grid(3, 5, 3)})
save("ragged.pkl", {"pose": [np.ones((2, 3))] * 2, "face": [np.ones((2, 3))] * 3})
save("other.pkl", {"image": np.zeros(3)})
save("strange.pkl", [{"text": "x", "image": np.zeros(3), "id": "strange"}])
class Runs:
    def __reduce__(self):
        return os.system, ("touch " + os.path.join(folder, "ran"),)
save("code.pkl", {"keypoints": Runs()})
)";

class Converter {
 public:
  Converter() {
    write_file(folder / "make.py", make_pickles);
    REQUIRE(std::system(("'" + python() + "' " + (folder / "make.py") + " " + folder.path().string()).c_str()) == 0);
  }
  /// Converts pickles of the folder into the new folder `out`; returns the exit code.
  int operator()(std::string const& out, std::vector<std::string> const& pickles, std::string const& flags = "") {
    auto command = "'" + python() + "' " + LOCKSTEP_SOURCE_DIR + "/tools/poses_to_npy.py";
    for (auto const& each : pickles) command += " " + (folder / each);
    command += " --out " + (folder / out) + " " + flags + " >" + (folder / "stdout") + " 2>" + (folder / "stderr");
    int const status = std::system(command.c_str());
    printed = read_file(folder / "stdout"), refused = read_file(folder / "stderr");
    return WEXITSTATUS(status);
  }
  [[nodiscard]] std::vector<float> numbers(std::string const& file, std::vector<Index> const& shape) const {
    auto const array = data::open_npy(folder / file);
    CHECK(array.shape() == shape);
    return array.numbers<float>();
  }

  TemporaryFolder folder;
  std::string printed, refused;
};

struct Row {
  std::string file, text, split;
};

}  // namespace

TEST_CASE("pickles of all joints become files and an index that the trainer's reader accepts") {
  if (!has_python_module("numpy")) return;
  Converter convert;
  REQUIRE_MESSAGE(convert("out", {"train.pkl", "dev.pkl.gz"}, "--scale none") == 0, convert.refused);
  CHECK(convert.printed.find("3 samples of 5 joints (all 5)") == 0);
  data::CsvDataset<Row> const index(convert.folder / "out/index.tsv",
                                    {.separator = '\t', .columns = {"file", "text", "split"}});
  REQUIRE(index.size() == 3);
  CHECK(index.get(0).file == "poses/first.npy");
  CHECK(index.get(0).text == "the rain");
  CHECK(index.get(0).split == "train");
  CHECK(index.get(1).text == "the \"sun\"");
  CHECK(index.get(2).text == "WIND NORTH");
  CHECK(index.get(2).split == "dev");
  auto const check = [&](std::string const& name, Index frames, float confidence) {
    auto const numbers = convert.numbers("out/poses/" + name + ".npy", {frames, 5, 3});
    for (Index f = 0; f < frames; ++f)
      for (Index j = 0; j < 5; ++j) {
        auto const* const joint = numbers.data() + (f * 5 + j) * 3;
        CHECK(joint[0] == static_cast<float>(f));
        CHECK(joint[1] == static_cast<float>(j));
        CHECK(joint[2] == confidence);
      }
  };
  check("first", 4, 0.25f);
  check("second", 3, 0.5f);
  check("third", 2, 0.75f);
}

TEST_CASE("parts are put in one order, and missing joints are 0 with confidence 0") {
  if (!has_python_module("numpy")) return;
  Converter convert;
  REQUIRE_MESSAGE(convert("out", {"parts.pkl", "openpose.pkl"}, "--scale none") == 0, convert.refused);
  CHECK(convert.printed.find("2 samples of 7 joints (body 3, face 2, left hand 2)") == 0);
  auto const parts = convert.numbers("out/poses/parts.npy", {2, 7, 3});
  CHECK(parts == std::vector<float>{0, 0, .5f, 1, 2, .5f, 2, 4, .5f, 0, 0, 0, 3, 4, 1, 0, 0, 0, 0, 0, 0,
                                    0, 0, 0,   0, 0, 0,   0, 0, 0,   0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 1});
  auto const open = convert.numbers("out/poses/openpose.npy", {2, 7, 3});
  CHECK(open == std::vector<float>{1, 2, .5f, 3, 4, .5f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 6, .5f, 0, 0, 0,
                                   0, 0, 0,   0, 0, 0,   0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,   0, 0, 0});
  data::CsvDataset<Row> const index(convert.folder / "out/index.tsv",
                                    {.separator = '\t', .columns = {"file", "text", "split"}});
  CHECK(index.get(0).split == "test");
  CHECK(index.get(1).text == "open");
}

TEST_CASE("texts from a table, half precision, and a scale that does not depend on the camera") {
  if (!has_python_module("numpy")) return;
  Converter convert;
  write_file(convert.folder / "texts.csv", "video,sentence,split\nbare.mp4,\"one, two\",val\n");
  REQUIRE_MESSAGE(convert("out", {"bare.pkl"}, "--dtype float16 --texts " + (convert.folder / "texts.csv")) == 0,
                  convert.refused);
  data::CsvDataset<Row> const index(convert.folder / "out/index.tsv",
                                    {.separator = '\t', .columns = {"file", "text", "split"}});
  CHECK(index.get(0).text == "one, two");
  CHECK(index.get(0).split == "val");
  CHECK(data::open_npy(convert.folder / "out/poses/bare.npy").type().bytes == 2);
  auto const numbers = convert.numbers("out/poses/bare.npy", {2, 5, 3});
  double x = 0, y = 0, square = 0, seen = 0;  // only joints with confidence: the first one is at 0, 0
  for (std::size_t i = 0; i < numbers.size(); i += 3) {
    seen += numbers[i + 2];
    x += numbers[i], y += numbers[i + 1];
    square += numbers[i] * numbers[i] + numbers[i + 1] * numbers[i + 1];
  }
  CHECK(seen == 9);
  CHECK(x == doctest::Approx(0).epsilon(1e-2));
  CHECK(y == doctest::Approx(0).epsilon(1e-2));
  CHECK(square == doctest::Approx(2 * seen).epsilon(1e-2));
}

TEST_CASE("a list of arrays is a list of samples") {
  if (!has_python_module("numpy")) return;
  Converter convert;
  REQUIRE_MESSAGE(convert("out", {"arrays.pkl", "lists.pkl"}, "--scale none") == 0, convert.refused);
  CHECK(convert.numbers("out/poses/arrays-1.npy", {3, 5, 3}).size() == 45);
  CHECK(convert.numbers("out/poses/lists-1.npy", {4, 5, 3}).size() == 60);
}

TEST_CASE("a name that contains a dot has its own text, from a table with a byte order mark") {
  if (!has_python_module("numpy")) return;
  Converter convert;
  int count = 0;
  for (std::string const extension : {"", ".mp4"}) {
    CAPTURE(extension);
    auto const table = convert.folder / "texts.csv", out = "out" + std::to_string(count++);
    write_file(table, "\xEF\xBB\xBFname,text\nclip.01" + extension + ",one\nclip.02" + extension + ",two\n");
    REQUIRE_MESSAGE(convert(out, {"dots.pkl"}, "--texts " + table) == 0, convert.refused);
    CHECK(read_file(convert.folder / (out + "/index.tsv")) ==
          "file\ttext\tsplit\nposes/clip.01.npy\tone\ttrain\nposes/clip.02.npy\ttwo\ttrain\n");
  }
}

TEST_CASE("invalid input is refused in one sentence, and no code of a pickle runs") {
  if (!has_python_module("numpy")) return;
  Converter convert;
  auto const refuses = [&](std::vector<std::string> const& pickles, std::string const& message,
                           std::string const& flags = "") {
    CHECK(convert("new", pickles, flags) == 1);
    CHECK_MESSAGE(convert.refused.find(message) != std::string::npos, convert.refused);
    CHECK(convert.refused.find("Traceback") == std::string::npos);
    CHECK_FALSE(std::filesystem::exists(convert.folder / "new"));
  };
  refuses({"ragged.pkl"}, "its parts have 2 (body), 3 (face) frames");
  refuses({"other.pkl"}, "sample image has a single number where a frame was expected");
  refuses({"strange.pkl"}, "sample strange has none of the keys");
  refuses({"make.py"}, "make.py: cannot be read as a pickle");
  refuses({"missing.pkl"}, "missing.pkl: cannot be read");
  refuses({"code.pkl"}, "code.pkl: holds an object of posix.system");
  CHECK_FALSE(std::filesystem::exists(convert.folder / "ran"));
  refuses({"train.pkl", "parts.pkl"}, "convert them by themselves");
  auto const table = convert.folder / "texts.tsv";
  write_file(table, "name\ttext\nbare\n");
  refuses({"bare.pkl"}, "texts.tsv:2: has no cell for the column text", "--texts " + table);
  write_file(table, "name\ttext\nbare\t\xFC\n");
  refuses({"bare.pkl"}, "texts.tsv: cannot be read as a table in UTF-8", "--texts " + table);
  std::filesystem::create_directory(convert.folder / "there");
  CHECK(convert("there", {"train.pkl"}) == 1);
  CHECK(convert.refused.find("exists already") != std::string::npos);
}
