// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/json.hpp>
#include <lockstep/core/thread_pool.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/collate/ragged_collate.hpp>
#include <lockstep/data/source/write_npy.hpp>
#include <lockstep/nn/module/gradient_check.hpp>
#include <lockstep/nn/module/initialize.hpp>
#include <lockstep/train/checkpoint/checkpoint.hpp>

#include "../examples/trajectory_transformer/data.hpp"
#include "../examples/trajectory_transformer/model.hpp"
#include "../examples/trajectory_transformer/synthetic.hpp"
#include "data/source/array_files.hpp"
#include "examples/learned_by_heart.hpp"
#include "examples/program.hpp"
#include "examples/story_commands.hpp"
#include "hdf5_writer.hpp"
#include "temporary_folder.hpp"

using namespace lockstep;
using namespace lockstep_test;
using namespace trajectory_transformer;
namespace fs = std::filesystem;

namespace {

/// Recorded steps; controls are continuous actions of two numbers, and then there are no discrete actions.
struct Steps {
  std::vector<float> states, rewards, controls;
  std::vector<std::int64_t> actions;
};
constexpr Index state_width = 3;
enum class Actions { discrete, continuous };

Steps episode(int number, Index steps, Actions kind) {
  Steps out;
  for (int t = 0; t < static_cast<int>(steps); ++t) {
    auto const action = (3 * number + 2 * t) % 5;
    for (int k = 0; k < state_width; ++k)
      out.states.push_back(static_cast<float>(std::sin(1.0 + action * (k + 1) + 0.1 * number)));
    out.rewards.push_back(static_cast<float>((number + t) % 4));
    if (kind == Actions::discrete) out.actions.push_back(action);
    if (kind == Actions::continuous)
      out.controls.insert(out.controls.end(), {0.2F * static_cast<float>(action), -1.0F + static_cast<float>(t % 2)});
  }
  return out;
}
std::vector<Steps> episodes(int count, Actions kind) {
  std::vector<Steps> all;
  for (int i = 0; i < count; ++i) all.push_back(episode(i, 1 + 7 * i % 12, kind));
  return all;
}

void save_npz(std::string const& path, Steps const& one) {
  auto const steps = std::to_string(one.rewards.size());
  auto const matrix = [](std::size_t rows, std::size_t numbers) {
    return "(" + std::to_string(rows) + ", " + std::to_string(rows == 0 ? 3 : numbers / rows) + ")";
  };
  write_file(
      path,
      zip({{"observations.npy", npy_of("<f4", matrix(one.states.size() / 3, one.states.size()), bytes_of(one.states))},
           {"actions.npy",
            one.controls.empty()
                ? npy_of("<i8", "(" + std::to_string(one.actions.size()) + ",)", bytes_of(one.actions))
                : npy_of("<f4", matrix(one.rewards.size(), one.controls.size()), bytes_of(one.controls))},
           {"rewards.npy", npy_of("<f4", "(" + steps + ",)", bytes_of(one.rewards))},
           {"terminals.npy", npy_of("|b1", "(" + steps + ",)", std::string(one.rewards.size(), '\0'))}}));
}
std::string save_apart(std::string const& folder, std::vector<Steps> const& all) {
  fs::create_directories(folder);
  for (std::size_t i = 0; i < all.size(); ++i)
    save_npz(folder + "/episode_" + std::to_string(100 + i) + ".npz", all[i]);
  return folder;
}
std::string save_joined(std::string const& folder, std::vector<Steps> const& all) {
  fs::create_directories(folder);
  Steps joined;
  std::vector<Index> lengths;
  auto const append = [](auto& to, auto const& from) { to.insert(to.end(), from.begin(), from.end()); };
  for (auto const& each : all) {
    append(joined.states, each.states), append(joined.rewards, each.rewards);
    append(joined.controls, each.controls), append(joined.actions, each.actions);
    lengths.push_back(std::ssize(each.rewards));
  }
  auto const rows = std::ssize(joined.rewards);
  data::write_npy<float>(folder + "/observations.npy", joined.states, {rows, state_width});
  data::write_npy<float>(folder + "/rewards.npy", joined.rewards, {rows});
  if (joined.controls.empty())
    data::write_npy<std::int64_t>(folder + "/actions.npy", joined.actions, {rows});
  else
    data::write_npy<float>(folder + "/actions.npy", joined.controls, {rows, 2});
  data::write_npy<Index>(folder + "/episode_lengths.npy", lengths, {std::ssize(lengths)});
  return folder;
}

Sizes small(Actions kind) {
  return {.actions = kind == Actions::discrete ? 5 : 0,
          .control_width = kind == Actions::discrete ? 0 : 2,
          .state_width = state_width,
          .steps = 4,
          .context = 2,
          .width = 16,
          .layers = 2,
          .heads = 2,
          .feed_forward = 24,
          .dropout = 0};
}
Windows windows_of(std::string const& folder, Sizes const& sizes, Windows::Begin begin) {
  auto const files = std::make_shared<Episodes const>(folder, BadEpisodes::refuse);
  return {files, sizes, Scaling::of(*files, 1 << 20, 0, BadEpisodes::refuse), begin};
}
/// Consecutive windows of episodes in a new folder.
std::vector<Window> windows(int count, Actions kind) {
  TemporaryFolder const folder;
  auto const all =
      windows_of(save_joined(folder / "data", episodes(count, kind)), small(kind), Windows::Begin::in_turn);
  std::vector<Window> out;
  for (Index i = 0; i < all.size(); ++i) out.push_back(all.get(i));
  return out;
}

template <class Collate>
auto batch_of(Collate collate, Actions kind) {
  auto const all = windows(7, kind);
  auto batches = in_order(all, std::ssize(all), collate);
  batches.start({0, 1, 1}, 0, 0, 1);
  return batches;
}

/// Its parameters, with embeddings of size one instead of 0.02, because the norm divides by it.
struct Start {
  TrajectoryTransformer model;
  nn::ParameterLayout layout = nn::ParameterLayout::of(model);
  std::vector<double> values = std::vector<double>(static_cast<std::size_t>(layout.size()));

  explicit Start(Actions kind) : model(small(kind)) {
    nn::initialize(layout, 3, values.data());
    for (auto const& entry : layout.entries())
      if (entry.initializer.kind == nn::Initializer::Kind::normal)
        for (Index i = 0; i < entry.size; ++i) values[static_cast<std::size_t>(entry.offset + i)] *= 50;
  }
};

template <class Collate>
auto check(Collate collate, Actions kind) {
  Start start(kind);
  auto batches = batch_of(collate, kind);
  auto const held = batches.next();
  return nn::check_gradients(start.model, start.layout, start.values, held.batches()[0], {.max_per_parameter = 24});
}

template <class Batch>
auto loss_of(Batch const& batch, Actions kind) {
  Start start(kind);
  ThreadPool pool(1);
  nn::Context<double, HostSpace> context{memory::Stream<HostSpace>(pool)};
  context.parameters().bind(start.values.data(), nullptr, start.layout.entries().size());
  nn::Pass(context).begin_micro_batch(nn::Mode::evaluation, 1);
  return nn::loss_of(start.model, context, batch);
}
template <class Collate>
auto loss(Collate collate, Actions kind) {
  auto batches = batch_of(collate, kind);
  auto const held = batches.next();
  return loss_of(held.batches()[0], kind);
}

constexpr Actions both_kinds[]{Actions::discrete, Actions::continuous};

using Flags = std::vector<std::string>;
/// A short run with these files.
Outcome run(std::string const& folder, Flags const& more) {
  Flags all{"--data",       folder, "--threads",      "1",  "--d-model",    "16", "--num-heads", "2",
            "--num-layers", "1",    "--feed-forward", "24", "--max-length", "4",  "--context",   "2"};
  all.insert(all.end(), more.begin(), more.end());
  return run_example("trajectory_transformer", all);
}
json::Value run_json(std::string const& folder) { return json::parse(read_file(folder + "/run.json"), folder); }

}  // namespace

TEST_CASE("trajectory: gradients are exact, ragged and padded, with discrete and continuous actions") {
  for (auto const kind : both_kinds) {
    auto const ragged = check(data::RaggedCollate{}, kind), padded = check(data::PadCollate{}, kind);
    CAPTURE(ragged.where);
    CAPTURE(padded.where);
    CHECK(ragged.ok());
    CHECK(padded.ok());
  }
}

TEST_CASE("trajectory: padding changes nothing, and the previous region has no loss") {
  for (auto const kind : both_kinds) {
    // Sums over tokens and heads in another order: some thousand roundings of numbers near one.
    auto const ragged = loss(data::RaggedCollate{}, kind), padded = loss(data::PadCollate{}, kind);
    CHECK(std::abs(ragged.mean() - padded.mean()) < 1e-12);
    double steps = 0;
    for (auto const& each : episodes(7, kind)) steps += static_cast<double>(each.rewards.size());
    CHECK(ragged.weight == (kind == Actions::discrete ? steps : 2 * steps));  // each step once, for any context
  }
}

TEST_CASE("trajectory: a few windows are overfitted on one device, two devices and two ranks, bit-identically") {
  for (auto const kind : both_kinds) {
    auto some = windows(8, kind);
    some.resize(14);  // an even number, for two devices
    check_learned_by_heart(TrajectoryTransformer{small(kind)}, some,
                           data::RaggedCollate{.segment_plans = data::SegmentPlans::build}, 40);
  }
}

TEST_CASE("trajectory: consecutive windows have each step once, with the return to go and the previous steps") {
  for (auto const kind : both_kinds) {
    TemporaryFolder const folder;
    auto const all = episodes(6, kind);
    auto const sizes = small(kind);
    auto const joined = windows_of(save_joined(folder / "joined", all), sizes, Windows::Begin::in_turn);
    auto const separate_files = windows_of(save_apart(folder / "apart", all), sizes, Windows::Begin::in_turn);
    auto const files = Episodes(folder / "joined", BadEpisodes::refuse);
    auto const scaling = Scaling::of(files, 1 << 20, 0, BadEpisodes::refuse);
    REQUIRE(joined.size() == separate_files.size());
    CHECK(joined.groups() == 6);
    CHECK(joined.fingerprint() != separate_files.fingerprint());
    CHECK(contains(separate_files.name(0), "episode_100.npz"));
    CHECK(contains(joined.name(0), "joined, episode 0"));
    Index i = 0;
    for (Index e = 0; e < 6; ++e) {
      auto const& episode = all[static_cast<std::size_t>(e)];
      auto const steps = std::ssize(episode.rewards);
      for (Index begin = 0; begin < steps; begin += sizes.steps, ++i) {
        auto const window = joined.get(i), same = separate_files.get(i);
        CHECK(joined.group(i) == e);
        CHECK(window.states == same.states);
        CHECK(window.returns == same.returns);
        CHECK(window.actions == same.actions);
        CHECK(window.controls == same.controls);
        auto const first = std::max<Index>(0, begin - sizes.context), end = std::min(steps, begin + sizes.steps);
        REQUIRE(std::ssize(window.returns) == end - first);
        for (Index t = first; t < end; ++t) {
          auto const at = static_cast<std::size_t>(t - first);
          double to_come = 0;
          for (Index later = t; later < steps; ++later) to_come += episode.rewards[static_cast<std::size_t>(later)];
          CHECK(window.returns[at] == doctest::Approx(to_come / scaling.returns));
          for (std::size_t k = 0; k < state_width; ++k)
            CHECK(window.states[at * state_width + k] / scaling.factor[k] + scaling.mean[k] ==
                  doctest::Approx(episode.states[static_cast<std::size_t>(t) * state_width + k]).epsilon(1e-4));
          if (kind == Actions::discrete) {
            CHECK(window.actions[at] == episode.actions[static_cast<std::size_t>(t)]);
            CHECK(window.targets[at] == (t < begin ? -1 : window.actions[at]));
          } else {
            CHECK(window.counts[at][0] == (t >= begin));
          }
        }
      }
    }
    CHECK(i == joined.size());
  }
}

TEST_CASE("trajectory: a window of a long episode reads few rewards, and has the bits of a sum over all of them") {
  TemporaryFolder const folder;
  constexpr Index steps = 3000;
  auto const all = [] {
    std::vector<Steps> out{episode(0, 700, Actions::discrete), episode(1, steps, Actions::discrete)};
    for (Index t = 0; t < steps; ++t)
      out[1].rewards[static_cast<std::size_t>(t)] = 0.1F * static_cast<float>(t % 97) - 3.7F;
    return out;
  }();
  std::vector<double> expected(steps);
  double to_come = 0;
  for (auto t = expected.size(); t-- > 0;) expected[t] = to_come += static_cast<double>(all[1].rewards[t]);
  for (auto const& data : {save_joined(folder / "joined", all), save_apart(folder / "apart", all)}) {
    Episodes const files(data, BadEpisodes::refuse);
    ThreadPool pool(3);  // the first reads of an episode may be concurrent
    std::vector<std::vector<double>> found(static_cast<std::size_t>(steps));
    pool.run(steps, [&](Index first) {
      found[static_cast<std::size_t>(first)] = files.read(1, first, std::min(steps, first + 9), 5).to_come;
    });
    for (std::size_t first = 0; first < found.size(); ++first)
      REQUIRE(std::ranges::equal(found[first], std::span(expected).subspan(first, found[first].size())));
    auto const whole = files.read(1, 0, steps, 5);
    CHECK(whole.to_come == expected);
    CHECK(whole.rewards == all[1].rewards);
  }

  // A bad reward ends each part before it, and no other, with the episode and the step.
  auto corrupted = all;
  corrupted[1].rewards[2000] = std::numeric_limits<float>::quiet_NaN();
  Episodes const files(save_joined(folder / "spoiled", corrupted), BadEpisodes::refuse);
  for (Index const first : {0, 1700, 1990})
    CHECK_THROWS_WITH_AS(files.read(1, first, first + 5, 5), doctest::Contains("rewards have a nan at step 2000"),
                         DataError);
  CHECK(files.read(1, 2001, 2010, 5).to_come.size() == 9);
  CHECK(files.read(0, 0, 5, 5).to_come.size() == 5);

  // The bytes that a window reads do not grow with the episode.
  auto const bytes_of_a_window = [&](Index length) {
    auto const data = save_joined(folder / std::to_string(length), {episode(0, length, Actions::discrete)});
    Episodes const one(data, BadEpisodes::refuse);
    static_cast<void>(one.read(0, 0, 4, 5));  // sums the rewards once
    auto const read = [] {
      auto const text = read_file("/proc/self/io");
      return std::stol(text.substr(text.find(':') + 1));
    };
    auto const before = read();
    for (int i = 0; i < 100; ++i) static_cast<void>(one.read(0, 10, 30, 5));
    return static_cast<double>(read() - before);
  };
  if (fs::exists("/proc/self/io"))  // some sandboxes have none
    CHECK(bytes_of_a_window(20000) < 2 * bytes_of_a_window(600));
}

TEST_CASE("trajectory: random windows follow from the key, and each step is equally likely") {
  TemporaryFolder const folder;
  auto const sizes = small(Actions::discrete);
  auto const folder_of_one = save_joined(folder / "data", {episode(0, 11, Actions::discrete)});
  auto const drawn = windows_of(folder_of_one, sizes, Windows::Begin::drawn);
  std::map<float, int> seen;  // by the return to go, which differs from step to step if rewards are not 0
  constexpr int draws = 8000;
  Index shortest = 100;
  for (int position = 0; position < draws; ++position) {
    data::SampleKey const key{7, 1, position};
    auto const window = drawn.get(1, key);
    CHECK(window.returns == drawn.get(1, key).returns);
    Index current = 0;
    for (std::size_t t = 0; t < window.returns.size(); ++t)
      if (window.targets[t] >= 0) ++seen[window.returns[t]], ++current;
    REQUIRE(current >= 1);
    CHECK(current <= sizes.steps);
    CHECK(std::ssize(window.returns) - current <= sizes.context);
    shortest = std::min(shortest, current);
  }
  CHECK(shortest == 1);
  // Rewards 0 1 2 3 0 1 2 3 0 1 2: three pairs of steps share a return. Each step is in 4 of the 14 places.
  double const expected = draws * 4.0 / 14, deviation = std::sqrt(expected * (1 - 4.0 / 14));
  for (auto const& [to_come, count] : seen)
    CHECK(std::min(std::abs(count - expected), std::abs(count - 2 * expected)) < 5 * 2 * deviation);
  CHECK(seen.size() == 8);
}

TEST_CASE("trajectory: synthetic episodes match their description") {
  TemporaryFolder const folder;
  fs::create_directory(folder / "data");
  Synthetic const recipe{.episodes = 300, .steps = 20, .actions = 18, .seed = 1};
  recipe(folder / "data");
  Episodes const files(folder / "data", BadEpisodes::refuse);
  CHECK(files.size() == 300);
  CHECK(files.state_width() == 17);
  CHECK(files.control_width() == 0);
  // Returns the symbol that a state shows, by the nearest sines.
  auto const symbol_of = [](std::span<float const> state) {
    Index best = 0;
    double least = 1e9;
    for (Index symbol = 0; symbol < 18; ++symbol) {
      double distance = 0;
      for (std::size_t k = 0; k < state.size(); ++k)
        distance +=
            std::pow(state[k] - 0.1 - std::sin(static_cast<double>(symbol + 1) * static_cast<double>(k + 1)), 2);
      if (distance < least) least = distance, best = symbol;
    }
    return best;
  };
  Index right = 0, steps = 0, of_the_state = 0;
  for (Index i = 0; i < files.size(); ++i) {
    auto const part = files.read(i, 0, files.steps(i), 18);
    CHECK(files.steps(i) <= 40);
    Index before = -1;
    for (std::size_t t = 0; t < part.actions.size(); ++t, ++steps) {
      auto const symbol = symbol_of(std::span(part.states).subspan(t * 17, 17));
      right += part.actions[t] == (part.rewards[t] < 0 && before >= 0 ? before : symbol);
      of_the_state += part.actions[t] == symbol;
      before = symbol;
    }
  }
  double const share = static_cast<double>(right) / static_cast<double>(steps);
  CHECK(std::abs(share - 0.9) < 4 * std::sqrt(0.9 * 0.1 / static_cast<double>(steps)));
  CHECK(static_cast<double>(of_the_state) / static_cast<double>(steps) < 0.6);
}

TEST_CASE("trajectory: both formats train equally by single, dp and ddp, and a run resumes within an epoch") {
  TemporaryFolder const folder;
  for (auto const kind : both_kinds) {
    CAPTURE(static_cast<int>(kind));
    auto const name = [&](std::string const& what) {
      return folder / (what + (kind == Actions::discrete ? "" : "_continuous"));
    };
    auto const data = kind == Actions::discrete ? save_apart(name("data"), episodes(40, kind))
                                                : save_joined(name("data"), episodes(40, kind));
    auto const trained = [&](std::string const& as, Flags flags) {
      flags.insert(flags.end(), {"--epochs", "2", "--save-dir", name(as), "--return-scale", "10"});
      auto const outcome = run(data, flags);
      CAPTURE(outcome.err);
      CHECK(outcome.exit_code == 0);
      CHECK(contains(outcome.out, kind == Actions::discrete ? ", accuracy " : ", r2 "));
      return run_json(name(as));
    };
    auto const single = trained("single", {"--batch-size", "8"});
    CHECK(single.at("steps").integer() > 4);
    auto const dp = trained("dp", {"--batch-size", "4", "--devices", "2"});
    auto const ddp = trained("ddp", {"--batch-size", "4", "--nproc", "2"});
    CHECK(ddp.at("parameters_sha256") == dp.at("parameters_sha256"));
    auto const loss_of_run = [](json::Value const& run) { return run.at("final").at("eval_loss").number(); };
    CHECK(loss_of_run(single) == doctest::Approx(loss_of_run(dp)).epsilon(1e-3));

    // Three steps, which end within the first epoch, and then the rest.
    Flags const flags{"--batch-size", "4", "--devices", "2", "--checkpoint-every", "3"};
    trained("whole", flags);
    fs::create_directories(name("resumed") + "/checkpoints");
    fs::copy(name("whole") + "/checkpoints/step_3.safetensors", name("resumed") + "/checkpoints/step_3.safetensors");
    auto resuming = flags;
    resuming.insert(resuming.end(), {"--resume", "auto"});
    CHECK(trained("resumed", resuming).at("parameters_sha256") == dp.at("parameters_sha256"));
  }
}

#if defined(LOCKSTEP_HDF5)

namespace {

/// Numbers of a dataset by name.
void add(Hdf5Writer const& file, std::string const& name, std::vector<float> const& numbers, ::hsize_t width,
         Hdf5Layout layout) {
  std::vector<::hsize_t> extents{numbers.size() / width};
  if (width > 1) extents.push_back(width);
  file.add(name.c_str(), numbers, extents, layout);
}
void add_actions(Hdf5Writer const& file, std::string const& name, Steps const& steps, Hdf5Layout layout) {
  if (!steps.controls.empty()) return add(file, name, steps.controls, 2, layout);
  file.add(name.c_str(), H5T_STD_I64LE, H5T_NATIVE_INT64, steps.actions.data(), {steps.actions.size()}, layout);
}
/// Returns some columns of states.
std::vector<float> columns(Steps const& steps, std::size_t first, std::size_t last) {
  std::vector<float> out;
  for (std::size_t i = 0; i < steps.states.size(); ++i)
    if (i % state_width >= first && i % state_width < last) out.push_back(steps.states[i]);
  return out;
}

/// All steps in one array, and flags at the ends of episodes.
std::string save_d4rl(std::string const& path, std::vector<Steps> const& all) {
  Steps joined;
  std::vector<std::int8_t> terminals, timeouts;
  auto const append = [](auto& to, auto const& from) { to.insert(to.end(), from.begin(), from.end()); };
  for (auto const& each : all) {
    append(joined.states, each.states), append(joined.rewards, each.rewards);
    append(joined.controls, each.controls), append(joined.actions, each.actions);
    terminals.resize(joined.rewards.size()), timeouts.resize(joined.rewards.size());
    (terminals.size() % 2 == 0 ? terminals : timeouts).back() = 1;
  }
  Hdf5Writer const file(path);
  add(file, "observations", joined.states, 3, Hdf5Layout::compressed);
  add(file, "next_observations", joined.states, 3, Hdf5Layout::compressed);
  add_actions(file, "actions", joined, Hdf5Layout::compressed);
  add(file, "rewards", joined.rewards, 1, Hdf5Layout::contiguous);
  for (bool const terminal : {true, false})
    file.add(terminal ? "terminals" : "timeouts", H5T_STD_I8LE, H5T_NATIVE_INT8,
             (terminal ? terminals : timeouts).data(), {terminals.size()});
  return path;
}
/// A group for each episode, with an observation after the last action.
std::string save_minari(std::string const& path, std::vector<Steps> const& all) {
  Hdf5Writer const file(path);
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto const group = "episode_" + std::to_string(i);
    file.group(group.c_str());
    auto states = all[i].states;
    states.insert(states.end(), {9, 9, 9});
    add(file, group + "/observations", states, 3, Hdf5Layout::chunked);
    add_actions(file, group + "/actions", all[i], Hdf5Layout::chunked);
    add(file, group + "/rewards", all[i].rewards, 1, Hdf5Layout::chunked);
    std::vector<float> ends(all[i].rewards.size(), 1.0F);  // as a task that may be complete before the end
    add(file, group + "/terminations", ends, 1, Hdf5Layout::chunked);
  }
  return path;
}
/// Groups with several observations, next to states of the simulator.
std::string save_robomimic(std::string const& path, std::vector<Steps> const& all) {
  Hdf5Writer const file(path);
  file.group("data");
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto const group = "data/demo_" + std::to_string(i);
    file.group(group.c_str());
    for (auto const* part : {"/obs", "/next_obs"}) {
      file.group((group + part).c_str());
      add(file, group + part + "/arm", columns(all[i], 0, 2), 2, Hdf5Layout::contiguous);
      add(file, group + part + "/hand", columns(all[i], 2, 3), 1, Hdf5Layout::chunked);
    }
    add(file, group + "/states", all[i].states, 3, Hdf5Layout::contiguous);
    add_actions(file, group + "/actions", all[i], Hdf5Layout::contiguous);
    add(file, group + "/rewards", all[i].rewards, 1, Hdf5Layout::contiguous);
  }
  return path;
}

}  // namespace

TEST_CASE("trajectory: HDF5 files of D4RL, Minari and robomimic have the episodes of a folder") {
  TemporaryFolder const folder;
  for (auto const kind : both_kinds) {
    CAPTURE(static_cast<int>(kind));
    auto const number = std::to_string(static_cast<int>(kind));
    auto const all = episodes(13, kind);
    Episodes const expected(save_joined(folder / "data" + number, all), BadEpisodes::refuse);
    for (auto const& path :
         {save_d4rl(folder / "d4rl" + number + ".hdf5", all), save_minari(folder / "minari" + number + ".hdf5", all),
          save_robomimic(folder / "robomimic" + number + ".h5", all)}) {
      CAPTURE(path);
      Episodes const found(path, BadEpisodes::refuse);
      REQUIRE(found.size() == expected.size());
      CHECK(found.state_width() == expected.state_width());
      CHECK(found.control_width() == expected.control_width());
      for (Index i = 0; i < found.size(); ++i) {
        REQUIRE(found.steps(i) == expected.steps(i));
        auto const part = found.read(i, 0, found.steps(i), 5), other = expected.read(i, 0, found.steps(i), 5);
        CHECK(part.states == other.states);
        CHECK(part.controls == other.controls);
        CHECK(part.actions == other.actions);
        CHECK(part.rewards == other.rewards);
        CHECK(part.to_come == other.to_come);
      }
    }
  }
}

TEST_CASE("trajectory: an HDF5 file trains with the bits of a folder, and an unusable one is refused in one sentence") {
  TemporaryFolder const folder;
  auto const all = episodes(20, Actions::continuous);
  auto const trained = [&](std::string const& data, std::string const& as) {
    auto const outcome = run(data, {"--epochs", "1", "--batch-size", "8", "--nproc", "2", "--save-dir", folder / as});
    CAPTURE(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    return run_json(folder / as).at("parameters_sha256");
  };
  CHECK(trained(save_minari(folder / "a.hdf5", all), "a") == trained(save_joined(folder / "data", all), "b"));

  auto const refused = [&](auto const& write) {
    auto const path = folder / "bad.hdf5";
    { write(Hdf5Writer(path)); }
    auto const outcome = run(path, {"--epochs", "1"});
    CHECK(outcome.exit_code == 2);
    return outcome.err;
  };
  CHECK(contains(refused([](Hdf5Writer const&) {}), "bad.hdf5: has no group with observations and actions"));
  CHECK(contains(refused([](Hdf5Writer const& file) {
                   add(file, "observations", {1, 2, 3}, 3, Hdf5Layout::contiguous);
                   add(file, "actions", {1}, 1, Hdf5Layout::contiguous);
                 }),
                 "bad.hdf5: has no rewards"));
  CHECK(contains(refused([](Hdf5Writer const& file) {
                   file.group("episode_7");
                   add(file, "episode_7/observations", {1, 2, 3}, 3, Hdf5Layout::contiguous);
                   add(file, "episode_7/actions", {1, 2, 3}, 1, Hdf5Layout::contiguous);
                   add(file, "episode_7/rewards", {1, 2, 3}, 1, Hdf5Layout::contiguous);
                 }),
                 "bad.hdf5: episode_7 has 1 observations and 3 actions"));
  CHECK(contains(refused([](Hdf5Writer const& file) {
                   for (auto const* group : {"a", "b"}) {
                     file.group(group);
                     bool const wide = *group == 'b';
                     add(file, std::string(group) + "/observations", {1, 2, 3, 4}, 2, Hdf5Layout::contiguous);
                     add(file, std::string(group) + "/actions", {1, 2, 3, 4}, 2, Hdf5Layout::contiguous);
                     add(file, std::string(group) + "/rewards", {1, 2, 3, 4}, wide ? 2 : 1, Hdf5Layout::contiguous);
                   }
                 }),
                 "bad.hdf5: a has 4 rewards and 2 actions"));
}

#endif

TEST_CASE("trajectory: --evaluate scales and divides any data as the run that saved the parameters did") {
  TemporaryFolder const folder;
  auto const known = episodes(20, Actions::discrete);
  auto others = known;
  for (auto& each : others) {
    for (auto& state : each.states) state = 3 * state + 1;
    for (auto& action : each.actions) action = std::min<std::int64_t>(action, 3);  // the last action does not occur
  }
  auto const data = save_joined(folder / "data", known), other = save_joined(folder / "other", others);
  auto const evaluation_of = [](Outcome const& outcome) {
    CAPTURE(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    auto const at = outcome.out.rfind("evaluation loss");
    REQUIRE(at != std::string::npos);
    return outcome.out.substr(at, outcome.out.find('\n', at) - at);
  };
  auto const trained = run(data, {"--epochs", "2", "--batch-size", "8", "--seed", "5", "--save-dir", folder / "run"});
  auto const saved = train::newest_checkpoint(folder / "run/checkpoints");
  Flags const evaluate{"--evaluate", "--init-from", saved},
      on_other{"--evaluate", "--init-from", saved, "--eval-data", other};
  CHECK(evaluation_of(run(data, evaluate)) == evaluation_of(trained));
  CHECK(evaluation_of(run(other, on_other)) == evaluation_of(run(data, on_other)));
  auto const continuous = run(save_joined(folder / "continuous", episodes(9, Actions::continuous)), evaluate);
  CHECK(continuous.exit_code == 2);
  CHECK(contains(continuous.err, "has other observations or actions than the run that saved --init-from"));
}

TEST_CASE("trajectory: the batch sizes of the story, with four workers") {
  TemporaryFolder const folder;
  auto const data = save_joined(folder / "data", episodes(300, Actions::discrete));
  for (auto const* const size : {"512", "1024"}) {
    auto const outcome = run(data, {"--epochs", "1", "--batch-size", size, "--num-workers", "4"});
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == 0);
    CHECK(contains(outcome.out, "batch " + std::string(size) + " per rank or device"));
  }
}

TEST_CASE("trajectory: invalid input is refused in one sentence before any rank starts") {
  TemporaryFolder const folder;
  auto const all = episodes(8, Actions::discrete);
  int number = 0;
  auto const fresh = [&] { return folder / ("data_" + std::to_string(++number)); };
  auto const corrupted = [&](auto const& corrupt) {  // one of many, as files and joined
    auto some = all;
    corrupt(some[3]);
    return some;
  };
  struct Refusal {
    std::string data;
    Flags message, flags = {};
  };
  auto const nan = corrupted([](Steps& s) { s.states[4] = std::numeric_limits<float>::quiet_NaN(); });
  auto const infinite = corrupted([](Steps& s) { s.rewards[2] = std::numeric_limits<float>::infinity(); });
  auto const negative = corrupted([](Steps& s) { s.actions[1] = -1; });
  auto const large = corrupted([](Steps& s) { s.actions[1] = 7; });
  auto const too_large = corrupted([](Steps& s) { s.actions[1] = 20000; });
  auto const none = corrupted([](Steps& s) { s = {}; });
  auto const unequal = corrupted([](Steps& s) { s.actions.pop_back(); });
  std::vector<Refusal> refusals{
      {folder / "missing", {"missing: is neither a folder nor an HDF5 file"}},
      {save(folder, "file.npz", "x"), {"file.npz: is neither a folder nor an HDF5 file"}},
      {save_apart(fresh(), nan), {"episode_103.npz", "observations have a nan at step 1"}},
      {save_joined(fresh(), nan), {"episode 3", "observations have a nan at step 1"}},
      {save_apart(fresh(), infinite), {"episode_103.npz", "rewards have an infinity at step 2"}},
      {save_apart(fresh(), negative), {"episode_103.npz", "action -1 at step 1 is not from 0 to "}},
      {save_joined(fresh(), large), {"episode 3: action 7 at step 1 is not from 0 to 4"}, {"--actions", "5"}},
      {save_joined(fresh(), too_large), {"action 20000", "from 0 to 9999"}},
      {save_apart(fresh(), none), {"episode_103.npz: has no step"}},
      {save_joined(fresh(), none), {"episode_lengths.npy: episode 3 has no step"}},
      {save_apart(fresh(), unequal), {"episode_103.npz: has 10 observations and 9 actions"}},
      {save_joined(fresh(), episodes(8, Actions::continuous)), {"--actions 5", "continuous"}, {"--actions", "5"}},
      {save_joined(fresh(), {all[3]}), {"nothing can be held out of 1 group"}},
  };
  auto const edited = [&](auto const& edit) {
    auto const path = save_apart(fresh(), all);
    edit(path);
    return path;
  };
  fs::create_directory(folder / "empty");
  refusals.push_back({folder / "empty", {"empty: has no episode, neither .npz files nor observations.npy"}});
  refusals.push_back({edited([](auto const& path) { fs::resize_file(path + "/episode_103.npz", 300); }),
                      {"episode_103.npz", "cut off"}});
  refusals.push_back({edited([](auto const& path) { write_file(path + "/episode_103.npz", "corrupt"); }),
                      {"episode_103.npz", "not a zip archive"}});
  refusals.push_back({edited([](auto const& path) {
                        write_file(path + "/episode_103.npz", zip({{"observations.npy", "x"}}, false, 8));
                      }),
                      {"episode_103.npz", "compressed", "np.savez"}});
  refusals.push_back(
      {edited([](auto const& path) { save_npz(path + "/episode_200.npz", episode(0, 4, Actions::continuous)); }),
       {"episode_200.npz: has observations of 3 numbers and actions of 2 floats"}});
  auto const joined = [&](auto const& edit) {
    auto const path = save_joined(fresh(), all);
    edit(path);
    return path;
  };
  refusals.push_back({joined([](auto const& path) { fs::remove(path + "/episode_lengths.npy"); }),
                      {"neither episode_lengths.npy nor episode_offsets.npy"}});
  refusals.push_back({joined([](auto const& path) {
                        fs::remove(path + "/episode_lengths.npy");
                        data::write_npy<Index>(path + "/episode_lengths.npy", std::vector<Index>{3, 4}, {2});
                      }),
                      {"episode_lengths.npy: gives episodes of 7 steps together"}});
  refusals.push_back({joined([](auto const& path) { fs::remove(path + "/rewards.npy"); }), {"rewards.npy"}});
  for (auto const& refusal : refusals) {
    CAPTURE(refusal.data);
    auto flags = refusal.flags;
    flags.insert(flags.end(), {"--save-dir", folder / "saved", "--nproc", "2"});
    auto const outcome = run(refusal.data, flags);
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.lines_of_err() == 1);
    for (auto const& part : refusal.message) CHECK_MESSAGE(contains(outcome.err, part), "not in the output: ", part);
    CHECK(outcome.out.empty());
    CHECK_FALSE(fs::exists(folder / "saved"));
  }

  // If they are skipped, their values do not matter.
  save_npz(folder / "data_1" + "/episode_109.npz", none[3]);
  for (auto const* const policy : {"skip", "substitute"}) {
    auto const outcome = run(folder / "data_1", {"--on-failure", policy, "--epochs", "1"});
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == 0);
    CHECK(contains(outcome.out, "1 episodes cannot be used"));
  }
}

TEST_CASE("trajectory: --help says which lines the player reads") {
  auto const outcome = run_example("trajectory_player", {"--help"});
  CHECK(outcome.exit_code == 0);
  CHECK(contains(outcome.out, "next REWARD OBSERVATION…"));
}

TEST_CASE("trajectory: the player acts by the trained parameters") {
  TemporaryFolder const folder;
  for (auto const kind : both_kinds) {
    auto const save_dir = folder / (kind == Actions::discrete ? "discrete" : "continuous");
    auto const trained = run(save_joined(save_dir + "_data", episodes(10, kind)),
                             {"--epochs", "1", "--save-dir", save_dir, "--batch-size", "32"});
    REQUIRE(trained.exit_code == 0);
    std::string parameters;
    for (auto const& entry : fs::directory_iterator(save_dir + "/checkpoints")) parameters = entry.path().string();
    auto const player = [&](std::string const& lines) {
      auto const file = save(folder, "lines", lines);
      auto const command = example("trajectory_player") + " " + parameters + " < " + file + " > " + (folder / "out") +
                           " 2> " + (folder / "err");
      int const status = std::system(command.c_str());
      return std::pair{WEXITSTATUS(status), read_file(folder / "out")};
    };
    std::string lines = "begin 10 0.5 0.1 -0.2\n";
    for (int i = 0; i < 9; ++i) lines += "next 1 0.5 0.1 " + std::to_string(i) + "\n";  // longer than the positions
    auto const [code, answers] = player(lines + lines);
    CHECK(code == 0);
    REQUIRE(std::ranges::count(answers, '\n') == 20);
    CHECK(answers.substr(0, answers.size() / 2) == answers.substr(answers.size() / 2));  // begins again
    auto const first = answers.substr(0, answers.find('\n'));
    CHECK(std::ranges::count(first, ' ') == (kind == Actions::discrete ? 0 : 1));
    for (auto const* const bad : {"next 1 0.5 0.1 0.2\n", "begin 10 0.5\n", "begin 10 a b c\n", "stop\n"}) {
      CHECK(player(bad).first == 2);
      CHECK(contains(read_file(folder / "err"), "neither \"begin RETURN OBSERVATION\""));
    }
  }
}

TEST_CASE("trajectory: every command in docs/explanation/stories/trajectory-transformer.md runs") {
  TemporaryFolder const folder;
  auto const data = save_joined(folder / "data", episodes(40, Actions::discrete));
  auto const complete = [&](Flags& flags, std::string const& command) {
    flags.insert(flags.end(), {"--threads", "1", "--d-model", "16", "--num-heads", "2", "--num-layers", "1",
                               "--max-steps", contains(command, "--resume") ? "2" : "1"});
    if (!contains(command, "--data")) flags.insert(flags.end(), {"--data", data});
  };
  check_story_commands("trajectory-transformer", "trajectory_transformer",
                       {{"runs/robot", folder / "run"}, {"data/episodes", data}}, complete, 11);
}
