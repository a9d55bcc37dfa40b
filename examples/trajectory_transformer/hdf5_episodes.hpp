// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/data/source/file_array.hpp>
#include <lockstep/data/source/hdf5_file.hpp>
#include <lockstep/data/source/in_memory_array.hpp>

namespace trajectory_transformer {
namespace data = lockstep::data;
using lockstep::Index;

/// Concatenated episodes: rows of observations, actions and rewards for each step, and the steps of each episode.
struct JoinedEpisodes {
  data::FileArray observations, actions, rewards;
  std::vector<Index> lengths;
};

#if defined(LOCKSTEP_HDF5)

/// Reads the episodes of an HDF5 file into memory, as D4RL (all steps in one array, with flags at the ends of
/// episodes), Minari and robomimic (a group for each episode) write them. Names follow tools/episodes_to_npz.py.
/// Observations may be a group of datasets, which become columns in the order of their names. An observation after an
/// episode's last action is left out. Observations and rewards become float32; actions become float32, or int64 if they
/// are integers.
class Hdf5Episodes {
 public:
  /// @throws DataError if the file has no episodes, or they do not fit together
  [[nodiscard]] static JoinedEpisodes read(std::string const& path) { return Hdf5Episodes(path).joined(); }

 private:
  enum Field { observations, actions, rewards, terminals, timeouts };
  static constexpr int fields = 5;
  /// Names of each field, the preferred first.
  static constexpr std::array<std::array<std::string_view, 5>, fields> names{
      {{"observations", "observation", "obs", "states", "state"},
       {"actions", "action", "acts"},
       {"rewards", "reward"},
       {"terminals", "terminations", "terminated", "dones", "done"},
       {"timeouts", "truncations", "truncated"}}};

  /// Datasets of a field, which become columns.
  struct Columns {
    std::size_t name = names[0].size();  ///< place in `names`
    std::vector<std::string> datasets;
  };
  struct Group {
    std::string prefix;  ///< path of the group with a slash, or empty
    std::array<Columns, fields> columns;
    Index steps = 0;
  };

  explicit Hdf5Episodes(std::string const& path) : file_(path) {
    std::map<std::string, Group> found;
    for (auto const& dataset : file_.names()) enter(found, dataset);
    for (auto& [key, group] : found)
      if (!group.columns[observations].datasets.empty() && !group.columns[actions].datasets.empty())
        groups_.push_back(std::move(group));
    if (groups_.empty())
      throw lockstep::DataError(path +
                                ": has no group with observations and actions; --help says which files are read");
    for (auto& group : groups_) {
      if (group.columns[rewards].datasets.empty()) fail(group, "has no rewards");
      group.steps = rows(group, actions);
      auto const seen = rows(group, observations);
      if (seen != group.steps && seen != group.steps + 1)
        fail(group, "has " + std::to_string(seen) + " observations and " + std::to_string(group.steps) + " actions");
      if (rows(group, rewards) != group.steps)
        fail(group, "has " + std::to_string(rows(group, rewards)) + " rewards and " + std::to_string(group.steps) +
                        " actions");
      for (auto const field : {observations, actions, rewards})
        if (width(group, field) != width(groups_[0], field))
          fail(group, "has " + std::to_string(width(group, field)) + " numbers per step in its " +
                          std::string(names[field][0]) + ", and the first episode has " +
                          std::to_string(width(groups_[0], field)));
    }
  }

  /// Adds a dataset to its group if a part of its path is the name of a field: "data/demo_0/obs/joints" belongs to the
  /// observations of "data/demo_0/". Groups are sorted by name, with numbers by value.
  static void enter(std::map<std::string, Group>& found, std::string const& dataset) {
    for (std::size_t begin = 0; begin < dataset.size();) {
      auto const end = std::min(dataset.find('/', begin), dataset.size());
      auto const part = std::string_view(dataset).substr(begin, end - begin);
      for (std::size_t field = 0; field < fields; ++field) {
        auto const& known = names[field];
        auto const at = static_cast<std::size_t>(std::find(known.begin(), known.end(), part) - known.begin());
        if (at == known.size()) continue;
        auto& group = found[sorted_by_value(dataset.substr(0, begin))];
        group.prefix = dataset.substr(0, begin);
        auto& columns = group.columns[field];
        if (at > columns.name) return;
        if (at < columns.name) columns = {at, {}};
        columns.datasets.push_back(dataset);
        return;
      }
      begin = end + 1;
    }
  }
  /// Returns the name with leading zeros in its numbers, so that names sort by them.
  static std::string sorted_by_value(std::string const& name) {
    constexpr std::size_t digits = 20;
    std::string out, number;
    auto const add = [&] {
      if (!number.empty()) out += std::string(digits - std::min(digits, number.size()), '0') + number;
      number.clear();
    };
    for (char const c : name) {
      if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
        number += c;
      } else {
        add();
        out += c;
      }
    }
    add();
    return out;
  }
  [[noreturn]] void fail(Group const& group, std::string const& why) const {
    throw lockstep::DataError(file_.path() + ": " +
                              (group.prefix.empty() ? "" : group.prefix.substr(0, group.prefix.size() - 1) + " ") +
                              why);
  }

  [[nodiscard]] Index rows(Group const& group, Field field) const {
    Index out = -1;
    for (auto const& dataset : group.columns[field].datasets) {
      auto const shape = file_.shape(dataset);
      if (shape.empty()) fail(group, "has a single value as " + dataset + "; an array with a row per step is needed");
      if (out >= 0 && shape[0] != out)
        fail(group, "has " + std::to_string(shape[0]) + " rows in " + dataset + ", and " + std::to_string(out) +
                        " in datasets next to it");
      out = shape[0];
    }
    return out;
  }
  /// Returns the numbers of a step.
  [[nodiscard]] Index width(Group const& group, Field field) const {
    Index out = 0;
    for (auto const& dataset : group.columns[field].datasets) {
      auto const shape = file_.shape(dataset);
      Index numbers = 1;
      for (std::size_t axis = 1; axis < shape.size(); ++axis) numbers *= shape[axis];
      out += numbers;
    }
    return out;
  }

  /// Returns the field of all groups as one array of Value in memory.
  template <class Value>
  [[nodiscard]] data::FileArray together(Field field) const {
    auto const wide = width(groups_[0], field);
    Index steps = 0;
    for (auto const& group : groups_) steps += group.steps;
    return data::in_memory_array(
        file_.path(), data::NumberType::of<Value>(), {steps, wide},
        [&](std::span<std::byte> bytes) {
          auto* out = reinterpret_cast<Value*>(bytes.data());
          for (auto const& group : groups_) {
            Index before = 0;
            for (auto const& dataset : group.columns[field].datasets)
              before += read(dataset, group.steps, out + before, wide);
            out += group.steps * wide;
          }
        },
        "convert it with tools/episodes_to_npz.py to files, which are read step by step");
  }
  /// Reads a dataset as columns of rows that are `stride` numbers apart. Returns the number of columns.
  template <class Value>
  Index read(std::string const& dataset, Index steps, Value* out, Index stride) const {
    auto const array = file_.array(dataset);
    auto const wide = array.width();
    if (wide == stride) {
      array.convert_rows(0, std::span(out, static_cast<std::size_t>(steps * wide)));
      return wide;
    }
    std::vector<Value> columns(static_cast<std::size_t>(steps * wide));
    array.convert_rows(0, std::span(columns));
    for (Index t = 0; t < steps; ++t) std::copy_n(columns.data() + t * wide, wide, out + t * stride);
    return wide;
  }

  [[nodiscard]] JoinedEpisodes joined() const {
    auto const is_float = [&](std::string const& dataset) {
      auto const kind = file_.type(dataset).kind;
      return kind == 'f' || kind == 'B';
    };
    auto const& chosen = groups_[0].columns[actions].datasets;
    bool const continuous = std::any_of(chosen.begin(), chosen.end(), is_float);
    return {together<float>(observations), continuous ? together<float>(actions) : together<std::int64_t>(actions),
            together<float>(rewards), lengths()};
  }
  [[nodiscard]] std::vector<Index> lengths() const {
    std::vector<Index> out;
    if (groups_.size() > 1) {
      for (auto const& group : groups_) out.push_back(group.steps);
      return out;
    }
    auto const& group = groups_[0];  // flags mark the ends of its episodes
    std::vector<bool> ends(static_cast<std::size_t>(group.steps));
    for (auto const field : {terminals, timeouts})
      for (auto const& dataset : group.columns[field].datasets) {
        if (file_.shape(dataset) != std::vector<Index>{group.steps} &&
            file_.shape(dataset) != std::vector<Index>{group.steps, 1})
          fail(group,
               "has " + dataset + " that is not one flag for each of its " + std::to_string(group.steps) + " actions");
        std::vector<float> flags(ends.size());
        file_.array(dataset).convert_rows(0, std::span(flags));
        for (std::size_t t = 0; t < ends.size(); ++t) ends[t] = ends[t] || flags[t] != 0;
      }
    Index begin = 0;
    for (Index t = 0; t < group.steps; ++t)
      if (t + 1 == group.steps || ends[static_cast<std::size_t>(t)]) out.push_back(t + 1 - std::exchange(begin, t + 1));
    return out;
  }

  data::Hdf5File file_;
  std::vector<Group> groups_;
};

#endif

}  // namespace trajectory_transformer
