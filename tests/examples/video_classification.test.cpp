// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/json.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/source/write_npy.hpp>
#include <lockstep/nn/module/gradient_check.hpp>
#include <lockstep/train/files/safetensors.hpp>
#include <lockstep/train/metrics/accuracy.hpp>
#include <lockstep/train/prediction/predictor.hpp>
#include <lockstep/train/trainer/evaluation.hpp>

#include "../examples/video_classification/augment.hpp"
#include "../examples/video_classification/data.hpp"
#include "../examples/video_classification/model.hpp"
#include "../examples/video_classification/synthetic.hpp"
#include "examples/learned_by_heart.hpp"
#include "examples/program.hpp"
#include "examples/story_commands.hpp"
#include "temporary_folder.hpp"

using namespace lockstep;
using video_classification::Clip;
using video_classification::VideoClassifier;

namespace {
video_classification::Sizes const small{
    .frames = 3, .height = 12, .width = 10, .channels = {4, 6, 8}, .class_weights = {1, 3}};

// A bright square that moves to the right in clips of class 1 and to the left in clips of class 0.
std::vector<Clip> clips(int count) {
  std::vector<Clip> all;
  for (int i = 0; i < count; ++i) {
    Clip clip{std::vector<std::uint8_t>(static_cast<std::size_t>(small.frames * small.height * small.width)),
              i / 2 % 2};
    for (Index f = 0; f < small.frames; ++f)
      for (Index y = 0; y < small.height; ++y)
        for (Index x = 0; x < small.width; ++x) {
          Index const left = clip.label == 1 ? 2 * f + i % 3 : 6 - 2 * f - i % 3;
          bool const inside = x >= left && x < left + 3 && y > i % 5 && y < i % 5 + 5;
          clip.pixels[static_cast<std::size_t>((f * small.height + y) * small.width + x)] =
              static_cast<std::uint8_t>((inside ? 200 : 40) + (7 * i + 13 * x + 5 * y + 3 * f) % 30);
        }
    all.push_back(std::move(clip));
  }
  return all;
}
auto loader(int count, Index batch_size) {
  return lockstep_test::in_order(clips(count), batch_size, data::PadCollate{});
}
}  // namespace

TEST_CASE("the model has the documented size") {
  VideoClassifier model;
  auto const layout = nn::ParameterLayout::of(model);
  CHECK(layout.parameters() == 2'947'476);
  CHECK(layout.entries()[0].name == "stages.0.convolution.weight");
  CHECK(layout.buffers()[0].name == "stages.0.norm.running_mean");
}

TEST_CASE("gradients are exact, with BatchNorm in training mode") {
  VideoClassifier model(small);
  auto const layout = nn::ParameterLayout::of(model);
  std::vector<double> values(static_cast<std::size_t>(layout.size()));
  nn::initialize(layout, 3, values.data());
  auto batches = loader(5, 5);
  batches.start({0, 1, 1}, 0, 0, 1);
  auto const held = batches.next();
  auto const result = nn::check_gradients(model, layout, values, held.batches()[0]);
  CAPTURE(result.where);
  CHECK(result.ok());
}

TEST_CASE("a few clips are overfitted on one device, two devices and two ranks, with bit-identical results") {
  // After 30 steps the mean loss is far below ln 2 = 0.69, the loss of guessing: 0.1 leaves at most one clip in doubt.
  auto const evaluate = [](auto& trainer) {  // with rank zero's running statistics, which all ranks have
    auto held = loader(16, 16);
    auto const report = trainer.evaluate(train::Evaluation{held, train::Accuracy{&Clip::label}});
    return std::pair(report.loss, report.metrics.at(0).second);
  };
  lockstep_test::check_learned_by_heart(VideoClassifier{small}, clips(16), data::PadCollate{}, 30, evaluate,
                                        [](auto const& loss_and_accuracy) { return loss_and_accuracy.second == 1; });
}

TEST_CASE("saved parameters predict as the trainer evaluates, including running statistics") {
  lockstep_test::TemporaryFolder const folder;
  Trainer trainer{VideoClassifier{small}, optim::AdamW{.learning_rate = 1e-2}, parallel::SingleDevice{.threads = 1}};
  auto batches = loader(16, 16);
  trainer.fit(batches, {}, {.epochs = 3});
  train::save_parameters(folder / "model", trainer.layout(), trainer.values(), {}, trainer.buffers());
  train::Predictor loaded(VideoClassifier{small}, folder / "model"),
      handed_over(VideoClassifier{small}, trainer.values(), trainer.buffers());
  batches.start({0, 1, 1}, 0, 0, 1);
  auto const held = batches.next();
  auto const a = loaded.predict(held.batches()[0]), b = handed_over.predict(held.batches()[0]);
  CHECK(std::ranges::equal(a.value.span(), b.value.span()));
  std::vector<float> const untouched(trainer.buffers().size(), 0.0f);
  train::Predictor other(VideoClassifier{small}, trainer.values(), untouched);
  CHECK_FALSE(std::ranges::equal(a.value.span(), other.predict(held.batches()[0]).value.span()));
}

namespace {
using Flags = std::vector<std::string>;
constexpr video_classification::ClipSize tiny{.frames = 3, .height = 8, .width = 10};

/// Frames of one brightness each: frame f of file number `file` has the value 10 * file + f.
void write_frames(std::string const& path, int file, Index frames, Index height = 8, Index width = 10) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::vector<std::uint8_t> pixels;
  for (Index f = 0; f < frames; ++f)
    pixels.insert(pixels.end(), static_cast<std::size_t>(height * width), static_cast<std::uint8_t>(10 * file + f));
  data::write_npy<std::uint8_t>(path, pixels, {frames, height, width});
}

/// A folder of 48 clips in 12 videos of three classes, one of them rare: three files of four clips each, with a split.
std::string write_clips(lockstep_test::TemporaryFolder const& folder, std::string const& name) {
  auto const root = folder / name;
  std::string index = "file,first_frame,frames,label,video,split\n";
  for (int file = 0; file < 12; ++file) {
    auto const path = "videos/" + std::to_string(file) + ".npy";
    write_frames(root + "/" + path, file, 12);
    for (int k = 0; k < 4; ++k)
      index += path + "," + std::to_string(3 * k) + ",3," + (k == 3 ? (file % 3 == 0 ? "jump" : "walk") : "rest") +
               ",mouse_" + std::to_string(file) + "," + (file % 4 == 3 ? "test" : "train") + "\n";
  }
  lockstep_test::write_file(root + "/index.csv", index);
  return root;
}
std::string index_of(lockstep_test::TemporaryFolder const& folder, std::string const& name, std::string const& rows) {
  std::filesystem::create_directories(folder / name);
  lockstep_test::write_file(folder / name + "/index.csv", rows);
  return folder / name;
}
}  // namespace

TEST_CASE("clips are read from one array or from one file each, with classes by name, number or classes.txt") {
  lockstep_test::TemporaryFolder const folder;
  auto const one = index_of(folder, "one", "label,video,first_frame,file\nb,v,3,all.npy\na,w,0,all.npy\n");
  write_frames(one + "/all.npy", 1, 6);
  video_classification::Clips const clips(one, {.frames = 3});
  REQUIRE(clips.size() == 2);
  CHECK(clips.clip_size().text() == "3 x 8 x 10");
  CHECK(clips.classes().names() == Flags{"a", "b"});
  CHECK(clips.get(0).label == 1);
  CHECK(clips.get(0).pixels[0] == 13);
  CHECK(clips.get(0).pixels.back() == 15);
  CHECK(clips.get(1).pixels[80] == 11);
  CHECK(clips.groups() == 2);
  CHECK(clips.name(0) == one + "/all.npy, frames 3 to 5");

  // Numbers, more files than remain mapped, and the files' own length.
  std::string rows = "file,first_frame,label,video\n";
  for (int i = 0; i < 70; ++i) rows += std::to_string(i) + ".npy,0," + std::to_string(i % 3) + ",v\n";
  auto const many = index_of(folder, "many", rows);
  for (int i = 0; i < 70; ++i) write_frames(many + "/" + std::to_string(i) + ".npy", i % 20, 2);
  video_classification::Clips const numbered(many);
  CHECK(numbered.clip_size().frames == 2);
  CHECK(numbered.classes().names() == Flags{"0", "1", "2"});
  CHECK(numbered.get(65).label == 2);
  CHECK(numbered.get(65).pixels[80] == 51);
  CHECK(numbered.examine().clips == 0);
  CHECK(numbered.fingerprint() == video_classification::Clips(many).fingerprint());
  CHECK(numbered.fingerprint() != clips.fingerprint());

  lockstep_test::write_file(one + "/classes.txt", "b\nc\na\n");
  CHECK(video_classification::Clips(one, {.frames = 3}).classes().names() == Flags{"b", "c", "a"});
  CHECK(video_classification::Clips(one, {.frames = 3}).get(0).label == 0);
}

TEST_CASE("no video is in both parts of a split, by the index or by the seed") {
  lockstep_test::TemporaryFolder const folder;
  auto const root = write_clips(folder, "data");
  auto const check_apart = [&](video_classification::Parts const& parts, Index training) {
    auto const& clips = parts.folders.front();
    CHECK(parts.training.size() == training);
    CHECK(parts.training.size() + parts.evaluation.size() == 48);
    for (Index i = 0; i < parts.evaluation.size(); ++i)
      for (Index k = 0; k < parts.training.size(); ++k)
        CHECK(clips.group(parts.evaluation.original(i)) != clips.group(parts.training.original(k)));
  };
  check_apart(video_classification::read_parts(root, "", {}, 1), 36);
  auto text = lockstep_test::read_file(root + "/index.csv");
  text.replace(text.find(",split"), 6, ",other");
  lockstep_test::write_file(root + "/index.csv", text);
  check_apart(video_classification::read_parts(root, "", {}, 1), 40);  // a tenth of 12 videos: 2
  auto const chosen = video_classification::read_parts(root, "", {}, 1).evaluation.original(0);
  bool differs = false;
  for (std::uint64_t seed = 2; seed < 9; ++seed)
    differs |= video_classification::read_parts(root, "", {}, seed).evaluation.original(0) != chosen;
  CHECK(differs);
}

TEST_CASE("augmentation depends only on the sample's key") {
  Clip clip{std::vector<std::uint8_t>(static_cast<std::size_t>(tiny.pixels())), 1};
  for (std::size_t i = 0; i < clip.pixels.size(); ++i) clip.pixels[i] = static_cast<std::uint8_t>(i);
  using video_classification::Change;
  auto const changed = [&](std::vector<Change> const& changes, Index position) {
    video_classification::Augment const augment(changes, tiny);
    auto const result = augment(clip, {7, 2, position});
    CHECK(result.pixels == augment(clip, {7, 2, position}).pixels);
    CHECK(result.label == 1);
    return result.pixels;
  };
  int flipped = 0, brighter = 0, darker = 0, earlier = 0, later = 0;
  for (Index i = 0; i < 60; ++i) {
    CHECK(changed({}, i) == clip.pixels);
    if (auto const p = changed({Change::flip}, i); p != clip.pixels) {
      ++flipped;
      CHECK(p[0] == 9);
      CHECK(p[239] == 230);
    }
    auto const b = changed({Change::brightness}, i);
    brighter += b[100] > 100, darker += b[100] < 100;
    CHECK(std::abs(b[100] - 100) <= 26);
    CHECK(b[100] - b[90] == 10);
    auto const s = changed({Change::shift}, i);
    CHECK(s[80] == (s[0] == 80 ? 160 : s[160] == 80 ? 0 : 80));
    earlier += s[0] == 80, later += s[160] == 80;
  }
  for (int const count : {flipped, brighter, darker, earlier, later}) {
    CHECK(count >= 10);  // out of 60, with the probability 1/3 or 1/2
    CHECK(count <= 45);
  }
}

TEST_CASE("synthetic clips have their shares of classes, and every twentieth label is another class's") {
  lockstep_test::TemporaryFolder const folder;
  video_classification::synthetic::Recipe const recipe{
      .size = {.frames = 4, .height = 12, .width = 12}, .training = 200, .evaluation = 100, .seed = 3};
  for (auto const* name : {"a", "b"}) {
    std::filesystem::create_directory(folder / name);
    video_classification::synthetic::write(folder / name, recipe);
  }
  CHECK(lockstep_test::read_file(folder / "a/index.csv") == lockstep_test::read_file(folder / "b/index.csv"));
  CHECK(lockstep_test::read_file(folder / "a/videos/video_00007.npy") ==
        lockstep_test::read_file(folder / "b/videos/video_00007.npy"));
  auto const parts = video_classification::read_parts(folder / "a", "", {}, 1);
  CHECK(parts.training.size() == 200);
  CHECK(parts.evaluation.size() == 100);
  CHECK(parts.folders.front().groups() == 60);
  CHECK(parts.folders.front().examine().clips == 0);
  std::array<int, 4> counts{};
  for (Index i = 0; i < 200; ++i) ++counts[static_cast<std::size_t>(parts.training.get(i).label)];
  constexpr std::array<int, 4> expected{110, 50, 28, 12};  // and at most one in twenty moved
  for (std::size_t i = 0; i < 4; ++i) CHECK(std::abs(counts[i] - expected[i]) <= 10);
  // The clip differs if the seed differs.
  std::filesystem::create_directory(folder / "c");
  video_classification::synthetic::write(folder / "c",
                                         {.size = recipe.size, .training = 200, .evaluation = 100, .seed = 4});
  CHECK(lockstep_test::read_file(folder / "a/videos/video_00007.npy") !=
        lockstep_test::read_file(folder / "c/videos/video_00007.npy"));
}

namespace {
/// Runs the program on tiny networks; `flags` come last.
lockstep_test::Outcome run(Flags const& flags) {
  Flags all{"--channels", "4,4", "--batch-size", "4", "--threads", "1"};
  all.insert(all.end(), flags.begin(), flags.end());
  return lockstep_test::run_example("video_classification", all);
}
json::Value trained(std::string const& save_dir, Flags flags) {
  flags.insert(flags.end(), {"--save-dir", save_dir});
  auto const outcome = run(flags);
  CAPTURE(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  return json::parse(lockstep_test::read_file(save_dir + "/run.json"), save_dir);
}
}  // namespace

TEST_CASE("the program trains, reports classes, and evaluates its saved parameters") {
  lockstep_test::TemporaryFolder const folder;
  auto const data = write_clips(folder, "data"), saved = folder / "saved";
  auto const outcome =
      run({"--data", data, "--epochs", "2", "--augment", "flip,brightness,shift", "--save-dir", saved});
  CAPTURE(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  for (auto const* printed :
       {"36 clips of 3 x 8 x 10 for training\n", "12 clips of other videos for evaluation: jump 1, rest 9, walk 2\n",
        "    0  jump         3   8.33 %     4.0000\n", "    1  rest        27  75.00 %     0.4444\n",
        "    2  walk         6  16.67 %     2.0000\n", "new best f1 0.", " at step 9, saved to ", "macro mean",
        "confusion matrix"})
    CHECK_MESSAGE(lockstep_test::contains(outcome.out, printed), printed);
  auto const best = saved + "/checkpoints/best.safetensors";
  CHECK(std::filesystem::exists(best));
  CHECK(train::load_text(best, "classes") == "jump\nrest\nwalk\n");
  auto const table = folder / "table.csv";
  auto const again = lockstep_test::run_example(  // the network's channels are those of the saved run
      "video_classification", {"--data", data, "--evaluate", "--init-from", best, "--predictions", table});
  CAPTURE(again.err);
  CHECK(again.exit_code == 0);
  CHECK(lockstep_test::contains(again.out, "confusion matrix"));
  auto const predictions = lockstep_test::read_file(table);
  CHECK(predictions.starts_with("clip,label,predicted\n"));
  CHECK(std::ranges::count(predictions, '\n') == 1 + 12);
  CHECK(lockstep_test::contains(predictions, ".npy, frames 0 to 2\",rest,"));
  auto const before = lockstep_test::read_file(data + "/index.csv");
  auto const refused = run({"--data", data, "--predictions", data + "/index.csv"});
  CHECK(refused.exit_code == 2);
  CHECK(lockstep_test::contains(refused.err, "is a file that the run reads"));
  CHECK(lockstep_test::read_file(data + "/index.csv") == before);
  CHECK(run({"--data", data, "--epochs", "1", "--class-weights", "none", "--precision", "bf16"}).exit_code == 0);
}

TEST_CASE("--evaluate has the classes of the saved parameters, not those of the data") {
  lockstep_test::TemporaryFolder const folder;
  auto const saved = folder / "saved";
  REQUIRE(run({"--data", write_clips(folder, "data"), "--max-steps", "1", "--save-dir", saved}).exit_code == 0);
  auto const evaluated = [&](std::string const& name, std::string const& rows) {
    auto const root = index_of(folder, name, "file,first_frame,label,video\n" + rows);
    for (auto const* const file : {"/a.npy", "/b.npy", "/c.npy"}) write_frames(root + file, 1, 3);
    return run({"--data", root, "--evaluate", "--init-from", saved + "/checkpoints/best.safetensors"});
  };
  auto const fewer = evaluated("fewer", "a.npy,0,walk,u\nb.npy,0,walk,v\n");  // and a single one
  CAPTURE(fewer.err);
  CHECK(fewer.exit_code == 0);
  CHECK(lockstep_test::contains(fewer.out, "1 clips of other videos for evaluation: jump 0, rest 0, walk 1\n"));
  auto const others = evaluated("others", "a.npy,0,run,u\nb.npy,0,swim,v\nc.npy,0,walk,w\n");
  CHECK(others.exit_code == 2);
  CHECK(lockstep_test::contains(others.err, "others/index.csv:2: label \"run\" is not one of the 3 classes"));
}

TEST_CASE("the program resumes in the middle of an epoch with equal bits") {
  lockstep_test::TemporaryFolder const folder;
  Flags const flags{"--data", write_clips(folder, "data"), "--epochs", "2", "--augment", "flip,shift"};
  auto whole_flags = flags;  // 9 steps per epoch
  whole_flags.insert(whole_flags.end(), {"--checkpoint-every", "5"});
  auto const whole = trained(folder / "whole", whole_flags);
  auto rest = flags;
  rest.insert(rest.end(), {"--resume", folder / "whole/checkpoints/step_5.safetensors"});
  auto const resumed = trained(folder / "resumed", rest);
  CHECK(resumed.at("resumed_at").array().size() == 1);
  CHECK(resumed.at("parameters_sha256") == whole.at("parameters_sha256"));
  CHECK(resumed.at("final").at("eval_loss") == whole.at("final").at("eval_loss"));
}

TEST_CASE("dp and ddp give equal parameters from files, and three ranks train") {
  lockstep_test::TemporaryFolder const folder;
  Flags const flags{"--data", write_clips(folder, "data"), "--epochs", "1", "--augment", "flip"};
  auto const with = [&](std::string const& name, Flags more) {
    more.insert(more.end(), flags.begin(), flags.end());
    return trained(folder / name, more);
  };
  auto const dp = with("dp", {"--parallel", "dp", "--devices", "3"}),
             ddp = with("ddp", {"--parallel", "ddp", "--nproc", "3"});
  CHECK(dp.at("parameters_sha256") == ddp.at("parameters_sha256"));
  CHECK(dp.at("final").at("eval_loss") == ddp.at("final").at("eval_loss"));
  CHECK(dp.at("final").at("eval_samples").integer() == 12);
  auto const sync_dp = with("sync_dp", {"--parallel", "dp", "--devices", "2", "--sync-batch-norm"}),
             sync_ddp = with("sync_ddp", {"--nproc", "2", "--sync-batch-norm"});
  CHECK(sync_dp.at("parameters_sha256") == sync_ddp.at("parameters_sha256"));
  CHECK(sync_dp.at("parameters_sha256") != dp.at("parameters_sha256"));
}

TEST_CASE("without --data the program writes synthetic clips and reads them back") {
  lockstep_test::TemporaryFolder const folder;
  auto const saved = folder / "saved";
  Flags const flags{"--samples", "40", "--frames", "4", "--height", "16", "--epochs", "1", "--save-dir", saved};
  auto const outcome = run(flags);
  CAPTURE(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK(lockstep_test::contains(outcome.out, "note: the class circle has no clips for evaluation; "));
  CHECK(
      lockstep_test::contains(outcome.out, "wrote synthetic data (40 + 10 clips of 4 x 16 x 32, seed 1) to " + saved));
  auto const parameters = json::parse(lockstep_test::read_file(saved + "/run.json"), saved).at("parameters_sha256");
  auto const read_back = trained(folder / "again", {"--data", saved + "/data", "--epochs", "1"});
  CHECK(read_back.at("parameters_sha256") == parameters);
}

TEST_CASE("one unreadable clip among many is an error by default, and skipped or replaced by flags") {
  lockstep_test::TemporaryFolder const folder;
  auto const data = write_clips(folder, "data"), broken = data + "/videos/2.npy";
  auto const whole = lockstep_test::read_file(broken);
  lockstep_test::write_file(broken, whole.substr(0, whole.size() / 2));
  auto const refused = run({"--data", data, "--save-dir", folder / "refused"});
  CHECK(refused.exit_code == 2);
  CHECK(refused.lines_of_err() == 1);
  CHECK(lockstep_test::contains(refused.err, "videos/2.npy"));
  CHECK(lockstep_test::contains(refused.err, "(4 of 48 clips cannot be read)"));
  CHECK_FALSE(std::filesystem::exists(folder / "refused"));
  for (auto const* policy : {"skip", "substitute"}) {
    CAPTURE(policy);
    auto const outcome = run({"--data", data, "--epochs", "1", "--on-failure", policy});
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == 0);
    CHECK(lockstep_test::contains(outcome.out, "note: 4 of 48 clips cannot be read, the first one with the error: "));
    auto const* const printed = policy[1] == 'k' ? "note: 4 samples were skipped:" : " samples were replaced";
    CHECK(lockstep_test::contains(outcome.out, printed));  // a substitute may be unreadable, too
  }
}

TEST_CASE("invalid data are refused in one sentence") {
  lockstep_test::TemporaryFolder const folder;
  struct Refusal {
    Flags flags, message;
  };
  std::vector<Refusal> refusals;
  std::string const header = "file,first_frame,label,video\n";
  int count = 0;
  auto const with_index = [&](std::string const& rows, Flags message, Flags flags = {}) {
    auto const name = "data_" + std::to_string(count++);
    auto const root = index_of(folder, name, rows);
    write_frames(root + "/a.npy", 1, 3);
    write_frames(root + "/b.npy", 2, 3);
    write_frames(root + "/small.npy", 1, 3, 6, 10);
    write_frames(root + "/short.npy", 1, 2);
    lockstep_test::write_file(root + "/text.npy", "no array");
    data::write_npy<float>(root + "/float.npy", std::vector<float>(240), {3, 8, 10});
    data::write_npy<std::uint8_t>(root + "/flat.npy", std::vector<std::uint8_t>(240), {240});
    flags.insert(flags.begin(), {"--data", root});
    refusals.push_back({flags, std::move(message)});
    return root;
  };
  std::string const a = "a.npy,0,x,v\n", b = "b.npy,0,y,w\n";
  refusals.push_back({{"--data", folder / "none"}, {"none", "there is no such folder"}});
  std::filesystem::create_directory(folder / "empty");
  refusals.push_back({{"--data", folder / "empty"}, {"empty: holds no index.csv", "file,first_frame,label,video"}});
  lockstep_test::write_file(folder / "file", "");
  refusals.push_back({{"--data", folder / "file"}, {"file: is not a folder"}});
  with_index(header, {"index.csv", "at least one sample"});
  with_index("file,label\na.npy,x\n", {"index.csv", "first_frame"});
  with_index(header + a, {"single class"});
  with_index(header + a + "b.npy,-1,y,w\n", {"index.csv:3", "first_frame -1"});
  with_index(header + a + "b.npy,one,y,w\n", {"index.csv:3", "one"});
  with_index(header + a + "b.npy,0,,w\n", {"index.csv:3: the label is empty"});
  with_index(header + a + "b.npy,0,\"y\nz\",w\n", {"index.csv:3: the label has a line break"});
  with_index(header + a + b + "none.npy,0,x,u\n", {"none.npy: cannot be opened"});
  with_index(header + a + b + "text.npy,0,x,u\n", {"text.npy", ".npy"});
  with_index(header + a + b + "float.npy,0,x,u\n", {"float.npy: holds float32", "uint8"});
  with_index(header + a + b + "flat.npy,0,x,u\n", {"flat.npy: has the extents [240]", "[frames, height, width]"});
  with_index(header + a + b + "small.npy,0,x,u\n", {"small.npy: has the extents [3, 6, 10]", "3 x 8 x 10"});
  with_index(header + a + b + "short.npy,0,x,u\n", {"short.npy: has the extents [2, 8, 10]", "3 x 8 x 10", "frame 0"});
  with_index(header + a + b + "a.npy,1,x,u\n", {"a.npy", "begins at frame 1", "--frames"});
  with_index(header + a + b, {"--height 6: the clips have 8 (", "a.npy [3, 8, 10])", "leave the flag out"},
             {"--height", "6"});
  with_index(header + a + b, {"a.npy", "4 x 8 x 10"}, {"--frames", "4"});
  with_index("file,first_frame,label,video,frames\na.npy,0,x,v,3\nb.npy,0,y,w,2\n",
             {"index.csv:3", "a clip of 2 frames"});
  with_index("file,first_frame,label,video,frames\na.npy,0,x,v,3\nb.npy,0,y,w,3\n",
             {"--frames 2: the clips have 3 (", "leave the flag out"}, {"--frames", "2"});
  with_index("file,first_frame,label,video,split\na.npy,0,x,v,train\nb.npy,0,y,w,test\nb.npy,0,x,v,test\n",
             {"index.csv:4", "video \"v\" has clips in train and in test"});
  with_index("file,first_frame,label,video,split\na.npy,0,x,v,train\nb.npy,0,y,w,train\n",
             {"all clips have the split train"});
  with_index("file,first_frame,label,video,split\na.npy,0,x,v,train\nb.npy,0,y,w,later\n",
             {"index.csv:3", "\"later\": must be"});
  with_index(header + a + "b.npy,0,y,v\n", {"nothing can be held out of 1 group"});
  auto const named = with_index(header + a + "b.npy,0,wlak,w\n",
                                {"index.csv:3: label \"wlak\" is not one of the 2 classes; the nearest is \"walk\""});
  lockstep_test::write_file(named + "/classes.txt", "x\nwalk\n");
  auto const other = index_of(folder, "other", header + "a.npy,0,z,u\n"),
             shared = index_of(folder, "shared", header + "a.npy,0,x,w\n");
  for (auto const& root : {other, shared}) write_frames(root + "/a.npy", 1, 3);
  with_index(header + a + b, {"other/index.csv:2: label \"z\" is not one of the 2 classes"}, {"--eval-data", other});
  with_index(header + a + b, {"the video \"w\" is in --data ", " and in --eval-data "}, {"--eval-data", shared});
  refusals.push_back({{"--eval-data", other}, {"--eval-data", "without --data"}});
  refusals.push_back({{"--augment", "flop"},
                      {"--augment flop: \"flop\" must be one of none, flip, brightness, shift; the nearest is flip"}});
  for (auto const& refusal : refusals) {
    auto flags = refusal.flags;
    flags.insert(flags.end(), {"--save-dir", folder / "saved"});
    auto const outcome = run(flags);
    std::string line;
    for (auto const& flag : refusal.flags) line += " " + flag;
    CAPTURE(line);
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.lines_of_err() == 1);
    for (auto const& part : refusal.message) CHECK_MESSAGE(lockstep_test::contains(outcome.err, part), part);
    CHECK_FALSE(std::filesystem::exists(folder / "saved"));
  }
}

TEST_CASE("video: every command in docs/explanation/stories/video-classification.md runs") {
  lockstep_test::TemporaryFolder const folder;
  auto const complete = [](Flags& flags, std::string const& command) {
    flags.insert(flags.end(), {"--batch-size", "4", "--threads", "1", "--max-steps",
                               lockstep_test::contains(command, "--resume") ? "2" : "1"});
  };
  lockstep_test::check_story_commands("video-classification", "video_classification",
                                      {{"runs/mice", folder / "run"}, {"clips", write_clips(folder, "clips")}},
                                      complete, 14);
}
