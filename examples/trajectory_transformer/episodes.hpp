// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/data/source/file_array.hpp>
#include <lockstep/data/source/npz_file.hpp>
#include <lockstep/data/source/open_npy.hpp>
#include <lockstep/data/source/row_ranges.hpp>

#include "hdf5_episodes.hpp"

namespace trajectory_transformer {
namespace data = lockstep::data;
using lockstep::Index;

/// Treatment of an unusable episode.
enum class BadEpisodes { refuse, leave_out };

/// Episodes of a folder, or of an HDF5 file, which is read into memory (Hdf5Episodes). One form of a folder is a .npz
/// file per episode. Its arrays are `observations` [steps, width], `actions` [steps] of integers or [steps, width] of
/// floats, `rewards` [steps], and optionally `terminals` [steps]. The other form is the concatenated episodes in
/// observations.npy, actions.npy and rewards.npy, with episode_lengths.npy or episode_offsets.npy. Only lengths,
/// offsets and names are in memory, and 8 bytes for each 256 steps of a longer episode. A .npz file is opened when it
/// is read, so the number of episodes is not limited. The cost to read a part does not depend on the episode's length.
/// Thread-safe.
/// @throws ConfigError for a folder without episodes; DataError for an unusable episode, except if it is left out
class Episodes {
 public:
  Episodes(std::string folder, BadEpisodes bad) : folder_(std::move(folder)) {
    std::error_code error;
    if (std::filesystem::is_regular_file(folder_, error) && (folder_.ends_with(".hdf5") || folder_.ends_with(".h5"))) {
      read_hdf5(bad);
    } else if (!std::filesystem::is_directory(folder_, error)) {
      throw lockstep::ConfigError(folder_ + ": is neither a folder nor an HDF5 file; give one with episodes, see " +
                                  page);
    } else if (std::filesystem::exists(path("observations.npy"), error)) {
      open_joined(bad);
    } else {
      list_files(bad);
    }
    if (episodes_.empty())
      throw lockstep::ConfigError(folder_ + ": has no episode" +
                                  (left_out_ > 0
                                       ? " that can be used: " + first_left_out_
                                       : std::string(", neither .npz files nor observations.npy; see ") + page));
  }

  [[nodiscard]] Index size() const noexcept { return std::ssize(episodes_); }
  [[nodiscard]] Index steps(Index i) const noexcept { return at(i).steps; }
  [[nodiscard]] Index state_width() const noexcept { return kind_->state_width; }
  /// Returns the numbers per continuous action; 0: actions are integers.
  [[nodiscard]] Index control_width() const noexcept { return kind_->control_width; }
  [[nodiscard]] Index left_out() const noexcept { return left_out_; }
  [[nodiscard]] std::string const& first_left_out() const noexcept { return first_left_out_; }
  [[nodiscard]] std::string name(Index i) const {
    return joined_ ? folder_ + ", episode " + std::to_string(at(i).number) : path(at(i).file);
  }
  [[nodiscard]] std::uint64_t fingerprint() const {
    std::uint64_t hash = 0;
    for (auto const& each : episodes_)
      hash = lockstep::mix(hash, lockstep::mix(each.file), static_cast<std::uint64_t>(each.steps));
    if (joined_) hash = lockstep::mix(hash, joined_->observations.fingerprint(), joined_->actions.fingerprint());
    return hash;
  }

  /// Steps [first, last) of an episode.
  struct Part {
    std::vector<float> states, controls, rewards;
    std::vector<double> to_come;  ///< sum of the rewards from a step to the episode's end, added from the end
    std::vector<std::int32_t> actions;
  };
  /// Reads a part of an episode.
  /// @throws DataError with episode and step for unreadable data, numbers that are not finite, also in later rewards,
  /// or discrete actions outside [0, `actions`)
  [[nodiscard]] Part read(Index i, Index first, Index last, Index actions) const {
    auto const arrays = open(i);
    auto const from = arrays.first + first;
    auto const count = static_cast<std::size_t>(last - first);
    Part part;
    part.states.resize(count * static_cast<std::size_t>(state_width()));
    arrays.observations.convert_rows(from, std::span(part.states));
    auto const summed = std::min(steps(i), (last + block - 1) / block * block);
    part.rewards = rewards(arrays, first, summed);
    if (control_width() == 0) {
      part.actions.resize(count);
      arrays.actions.convert_rows(from, std::span(part.actions));
      for (std::size_t t = 0; t < count; ++t)
        if (part.actions[t] < 0 || part.actions[t] >= actions)
          throw lockstep::DataError(name(i) + ": action " + std::to_string(part.actions[t]) + " at step " +
                                    std::to_string(first + static_cast<Index>(t)) + " is not from 0 to " +
                                    std::to_string(actions - 1) + "; correct the episode, or give a larger --actions");
    } else {
      part.controls.resize(count * static_cast<std::size_t>(control_width()));
      arrays.actions.convert_rows(from, std::span(part.controls));
    }
    expect_finite(i, first, "observations", part.states, state_width());
    expect_finite(i, first, "actions", part.controls, control_width());
    expect_finite(i, first, "rewards", part.rewards, 1);
    auto to_come = summed < steps(i) ? later_rewards(i, arrays)[static_cast<std::size_t>(summed / block - 1)] : 0.0;
    if (!std::isfinite(to_come)) expect_finite(i, summed, "rewards", rewards(arrays, summed, steps(i)), 1);
    part.to_come.resize(part.rewards.size());
    for (auto t = part.rewards.size(); t-- > 0;) part.to_come[t] = to_come += static_cast<double>(part.rewards[t]);
    part.to_come.resize(count);
    part.rewards.resize(count);
    return part;
  }

 private:
  static constexpr Index block = 256;  ///< steps between two kept sums of rewards
  static constexpr char page[] = "docs/explanation/stories/trajectory-transformer.md";

  struct Arrays {
    data::FileArray observations, actions, rewards;
    Index first = 0;  ///< row of the episode's first step
  };
  /// Sums of the rewards from each `block`-th step to the end, computed when they are first needed.
  struct LaterRewards {
    std::once_flag once;
    std::vector<double> sums;
  };
  struct Episode {
    std::string file;  ///< name in the folder; empty for concatenated episodes
    Index number = 0, first = 0, steps = 0;
    std::shared_ptr<LaterRewards> later = {};  ///< null for an episode of at most `block` steps
  };
  /// Properties that all episodes share.
  struct Kind {
    Index state_width = 0, control_width = 0;
    friend bool operator==(Kind const&, Kind const&) = default;
  };

  [[nodiscard]] Episode const& at(Index i) const noexcept { return episodes_[static_cast<std::size_t>(i)]; }
  [[nodiscard]] std::string path(std::string const& file) const { return folder_ + "/" + file; }

  [[nodiscard]] Arrays open(Index i) const {
    auto const& episode = at(i);
    if (joined_) {
      auto arrays = *joined_;
      arrays.first = episode.first;
      return arrays;
    }
    auto arrays = open_file(path(episode.file));
    if (check(arrays) != *kind_ || arrays.observations.rows() != episode.steps)
      throw lockstep::DataError(path(episode.file) + ": has changed since it was listed; leave the files alone");
    return arrays;
  }
  [[nodiscard]] static Arrays open_file(std::string const& path) {
    data::NpzFile const file(path);
    Arrays arrays{file.array("observations"), file.array("actions"), file.array("rewards")};
    if (file.has("terminals")) expect_rows(arrays.observations, file.array("terminals"), "terminals");
    return arrays;
  }
  [[nodiscard]] static std::vector<float> rewards(Arrays const& arrays, Index first, Index last) {
    std::vector<float> out(static_cast<std::size_t>(last - first));
    arrays.rewards.convert_rows(arrays.first + first, std::span(out));
    return out;
  }
  [[nodiscard]] std::vector<double> const& later_rewards(Index i, Arrays const& arrays) const {
    auto& later = *at(i).later;
    std::call_once(later.once, [&] {
      std::vector<double> sums(static_cast<std::size_t>((steps(i) - 1) / block));
      double to_come = 0;
      for (auto k = std::ssize(sums); k > 0; --k) {
        auto const part = rewards(arrays, k * block, std::min(steps(i), (k + 1) * block));
        for (auto t = part.size(); t-- > 0;) to_come += static_cast<double>(part[t]);
        sums[static_cast<std::size_t>(k - 1)] = to_come;
      }
      later.sums = std::move(sums);
    });
    return later.sums;
  }
  static void expect_rows(data::FileArray const& observations, data::FileArray const& other, char const* name) {
    if (observations.rows() != other.rows())
      throw lockstep::DataError(other.path() + ": has " + std::to_string(observations.rows()) + " observations and " +
                                std::to_string(other.rows()) + " " + name +
                                "; each step has one of both (leave out the observation after the last action)");
  }
  /// @throws DataError if the arrays do not fit together
  [[nodiscard]] static Kind check(Arrays const& arrays) {
    auto const& [observations, actions, rewards, first] = arrays;
    expect_rows(observations, actions, "actions");
    expect_rows(observations, rewards, "rewards");
    if (observations.rows() == 0) throw lockstep::DataError(observations.path() + ": has no step; remove the episode");
    if (observations.width() == 0 || rewards.width() != 1)
      throw lockstep::DataError(observations.path() + ": has observations " + observations.extents() + " and rewards " +
                                rewards.extents() +
                                "; a step has at least one number of the former and one of the latter");
    bool const continuous = actions.type().kind == 'f' || actions.type().kind == 'B';
    if (actions.width() < 1 || (!continuous && actions.width() != 1))
      throw lockstep::DataError(actions.path() + ": has actions " + actions.extents() + " of type " +
                                actions.type().name() + "; integers are one choice per step");
    return {observations.width(), continuous ? actions.width() : 0};
  }
  /// Adds an episode. The first one determines the kind of all.
  void enter(Episode episode, Kind const& kind) {
    if (!kind_) kind_ = kind;
    if (kind != *kind_)
      throw lockstep::DataError(path(episode.file) + ": has " + describe(kind) + ", and episodes before it have " +
                                describe(*kind_) + "; train on each kind separately");
    if (episode.steps > block) episode.later = std::make_shared<LaterRewards>();
    episodes_.push_back(std::move(episode));
  }
  static std::string describe(Kind const& kind) {
    return "observations of " + std::to_string(kind.state_width) + " numbers and " +
           (kind.control_width > 0 ? "actions of " + std::to_string(kind.control_width) + " floats"
                                   : std::string("actions that are integers"));
  }
  template <class F>
  void with_policy(BadEpisodes bad, F const& f) {
    try {
      f();
    } catch (lockstep::DataError const& error) {
      if (bad == BadEpisodes::refuse) throw;
      if (left_out_++ == 0) first_left_out_ = error.what();
    }
  }

  void list_files(BadEpisodes bad) {
    std::vector<std::string> files;
    for (auto const& entry : std::filesystem::directory_iterator(folder_))
      if (entry.path().extension() == ".npz") files.push_back(entry.path().filename().string());
    std::sort(files.begin(), files.end());
    for (auto& file : files)
      with_policy(bad, [&] {
        auto const arrays = open_file(path(file));
        auto const kind = check(arrays);
        enter({std::move(file), 0, 0, arrays.observations.rows()}, kind);
      });
  }
  void read_hdf5([[maybe_unused]] BadEpisodes bad) {
#if defined(LOCKSTEP_HDF5)
    auto joined = Hdf5Episodes::read(folder_);
    Arrays arrays{std::move(joined.observations), std::move(joined.actions), std::move(joined.rewards)};
    enter_joined(std::move(arrays), data::RowRanges::of_lengths(joined.lengths), folder_, bad);
#else
    throw lockstep::ConfigError(folder_ +
                                ": this program was built without HDF5; install it (Debian: libhdf5-dev) and "
                                "build again, or convert the file with tools/episodes_to_npz.py");
#endif
  }
  void open_joined(BadEpisodes bad) {
    Arrays arrays{data::open_npy(path("observations.npy")), data::open_npy(path("actions.npy")),
                  data::open_npy(path("rewards.npy"))};
    std::error_code error;
    bool const lengths = std::filesystem::exists(path("episode_lengths.npy"), error);
    auto const file = path(lengths ? "episode_lengths.npy" : "episode_offsets.npy");
    if (!lengths && !std::filesystem::exists(file, error))
      throw lockstep::ConfigError(folder_ +
                                  ": has observations.npy and neither episode_lengths.npy nor episode_offsets.npy, "
                                  "which mark the ends of episodes; see " +
                                  page);
    auto const array = data::open_npy(file);
    std::vector<Index> numbers(static_cast<std::size_t>(array.rows() * array.width()));
    array.convert_rows(0, std::span(numbers));
    enter_joined(std::move(arrays),
                 lengths ? data::RowRanges::of_lengths(numbers) : data::RowRanges::of_offsets(std::move(numbers)), file,
                 bad);
  }
  /// Enters concatenated episodes whose ends `file` gives.
  void enter_joined(Arrays arrays, data::RowRanges const& ranges, std::string const& file, BadEpisodes bad) {
    auto const kind = check(arrays);
    auto const rows = arrays.observations.rows();
    if (ranges.used(rows) != rows)
      throw lockstep::DataError(file + ": gives episodes of " + std::to_string(ranges.used(rows)) +
                                " steps together, and there are " + std::to_string(rows) + " observations");
    for (Index i = 0; i < ranges.samples(rows); ++i)
      with_policy(bad, [&] {
        if (ranges.count(i) == 0)
          throw lockstep::DataError(file + ": episode " + std::to_string(i) + " has no step; remove the episode");
        enter({{}, i, ranges.first(i), ranges.count(i)}, kind);
      });
    joined_ = std::move(arrays);
  }

  void expect_finite(Index i, Index first, char const* what, std::vector<float> const& numbers, Index width) const {
    for (std::size_t k = 0; k < numbers.size(); ++k)
      if (!std::isfinite(numbers[k]))
        throw lockstep::DataError(
            name(i) + ": its " + what + " have " + (std::isnan(numbers[k]) ? "a nan" : "an infinity") + " at step " +
            std::to_string(first + static_cast<Index>(k) / width) + "; correct or remove the episode");
  }

  std::string folder_;
  std::vector<Episode> episodes_;
  std::optional<Arrays> joined_;
  std::optional<Kind> kind_;
  Index left_out_ = 0;
  std::string first_left_out_;
};

}  // namespace trajectory_transformer
