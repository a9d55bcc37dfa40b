// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/json.hpp>
#include <lockstep/core/json_writer.hpp>
#include <lockstep/data/loader/loader_state.hpp>
#include <lockstep/nn/autograd/loss.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/optim/loss_scaler.hpp>
#include <lockstep/parallel/policy.hpp>
#include <lockstep/train/detail/saved_state_reader.hpp>
#include <lockstep/train/files/safetensors.hpp>
#include <lockstep/train/logs/observer.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Says where a fit saves checkpoints and which one it resumes from. With several ranks the first rank's settings
/// count, and only the first rank reads and writes.
struct Checkpoints {
  std::string folder = {};  ///< receives step_N.safetensors; created before the first step. Empty: nothing is saved
  Index every = 0;          ///< optimizer steps between checkpoints; one more is saved after the last step. 0: only
                            ///< after the last step
  Index keep = 0;           ///< newest checkpoints of the run to keep; older ones are removed once a new one is on the
                            ///< disk. 0: all
  std::string resume = {};  ///< file to resume from; empty: start from the beginning
  Metadata metadata = {};   ///< strings saved with the parameters
};

/// Work of a trainer over all of its fits. Each fit continues after the one before it.
struct TrainerSteps {
  Index steps = 0;   ///< of the optimizer
  Index epochs = 0;  ///< epochs that were begun
};

/// State of training when a checkpoint was made.
struct Progress {
  Index steps = 0;
  Index effective_batch_size = 0;
  int reproducible = 0;  ///< shards of a micro-step under parallel::Reproducible, or 0
  std::uint64_t seed = 0;
  nn::Loss<HostSpace> epoch_loss;  ///< of the current epoch so far
  double seconds = 0;              ///< of the run so far
  std::vector<Index> resumed_at;   ///< steps at which the run was resumed, ascending
  std::vector<EvaluationReport> evaluations;
  data::LoaderState data;                    ///< position in the data from which the run resumes
  optim::LossScaler::State loss_scale = {};  ///< with float16 activations
  std::string timed_products = {};           ///< GEMM algorithms chosen by timing on GPUs; empty if none were
  TrainerSteps before = {};                  ///< work of the trainer before this fit
  std::string optimizer = {};                ///< the optimizer's name(), if it has one

  [[nodiscard]] std::string to_json() const {
    json::Writer out;
    out.begin_object().member("version", version).member("steps", steps);
    out.member("effective_batch_size", effective_batch_size).member("reproducible", reproducible);
    out.member("seed", std::to_string(seed));
    if (loss_scale) {
      out.member("loss_scale", static_cast<double>(loss_scale.scale)).member("good_steps", loss_scale.good_steps);
      out.member("skipped_steps", loss_scale.skipped);
    }
    if (!timed_products.empty()) out.member("timed_products", timed_products);
    if (before.steps > 0 || before.epochs > 0)
      out.member("steps_before", before.steps).member("epochs_before", before.epochs);
    if (!optimizer.empty()) out.member("optimizer", optimizer);
    out.member("loss_sum", epoch_loss.sum).member("loss_weight", epoch_loss.weight).member("seconds", seconds);
    out.member("resumed_at", resumed_at).key("evaluations").begin_array();
    for (auto const& each : evaluations) {
      out.begin_object().member("step", each.step).member("epoch", each.epoch).member("samples", each.samples);
      out.member("seconds", each.seconds).member("best", each.best).key("loss").value_or_null(each.loss);
      out.key("metrics").begin_object();
      for (auto const& [name, value] : each.metrics) out.key(name).value_or_null(value);
      out.end_object().end_object();
    }
    out.end_array().member("data", data.to_json()).end_object();
    return std::move(out).text();
  }
  /// @throws DataError if the string is not a valid state, or has another version; `where` names its origin
  [[nodiscard]] static Progress from_json(std::string_view text, std::string const& where) {
    detail::SavedStateReader const in({"the state of training", "run", "resume from another checkpoint", version}, text,
                                      where);
    Progress out;
    out.steps = in.integer("steps", 0, most_steps);
    out.effective_batch_size = in.integer("effective_batch_size", 1, most_steps);
    if (in.has("reproducible")) out.reproducible = in.integer<int>("reproducible", 0, most_steps);
    if (in.has("loss_scale")) out.loss_scale = in.loss_scale(out.steps, detail::SavedStateReader::ZeroScale::refused);
    out.timed_products = in.string_or_empty("timed_products");
    if (in.has("steps_before")) {
      out.before.steps = in.integer("steps_before", 0, most_steps);
      out.before.epochs = in.integer("epochs_before", 0, most_steps);
    }
    out.optimizer = in.string_or_empty("optimizer");
    out.seed = in.seed();
    out.epoch_loss = {in.value().at("loss_sum").number(), in.non_negative("loss_weight")};
    out.seconds = in.non_negative("seconds");
    Index earlier = 0;
    for (auto const& step : in.value().at("resumed_at").array()) {
      earlier = in.within("resumed_at", step.integer(), earlier, out.steps);
      out.resumed_at.push_back(earlier);
    }
    earlier = 0;
    for (auto const& each : in.value().at("evaluations").array()) {
      out.evaluations.push_back(read_evaluation(each));
      auto const& report = out.evaluations.back();
      earlier = in.within("an evaluation's step", report.step, earlier, out.steps);
      in.within("an evaluation's epoch", report.epoch, 0, out.steps);
      in.within("an evaluation's samples", report.samples, 0, most_steps);
    }
    out.data = data::LoaderState::from_json(in.value().at("data").string());
    return out;
  }

  static constexpr int version = 1;
  static constexpr char const* key = "lockstep.progress";  ///< key in the file's metadata
  static constexpr Index most_steps = Index{1} << 48;      ///< upper bound of any run

 private:
  [[nodiscard]] static EvaluationReport read_evaluation(json::Value const& value) {
    auto const number_or_nan = [](json::Value const& v) {
      return v.is<double>() || v.is<std::int64_t>() ? v.number() : std::nan("");
    };
    EvaluationReport report{value.at("step").integer(),
                            value.at("epoch").integer(),
                            value.at("samples").integer(),
                            number_or_nan(value.at("loss")),
                            {},
                            value.at("seconds").number(),
                            value.at("best").boolean()};
    for (auto const& [name, metric] : value.at("metrics").object())
      report.metrics.emplace_back(name.c_str(), number_or_nan(metric));
    return report;
  }
};

/// Saves all that a run needs to resume with bit-identical results. The file has parameters and buffers as
/// `save_parameters` writes them, so `load_parameters` can read it. It also has the optimizer's moments as
/// "optimizer.I.NAME", and the progress.
/// The file appears complete or not at all. Moments are requested and written one at a time.
/// @shape values and each of the moments [layout.size()]   @shape buffers [layout.buffer_size()]
/// @throws DataError if the file cannot be written
inline void save_checkpoint(std::string const& path, nn::ParameterLayout const& layout, std::span<float const> values,
                            std::span<float const> buffers, detail::Moments<float const> const& moments,
                            Progress const& progress, Metadata metadata = {}) {
  detail::check_arenas("save_checkpoint", layout, values.size(), buffers.size());
  metadata.emplace_back(Progress::key, progress.to_json());
  detail::write_safetensors(path, layout, values.data(), buffers.data(), moments, metadata);
}

namespace detail {
/// Reads parameters, buffers and moments into `state`. Returns parse(string) for the string with `key` in the metadata.
/// `state` changes only if all is valid.
/// @throws DataError if the file cannot be read, belongs to another model or optimizer, or has no such string; that
/// message ends in `remedy`
template <class Parse>
auto load_state_of(std::string const& path, nn::ParameterLayout const& layout, std::string_view key, char const* remedy,
                   parallel::SessionState& state, Parse const& parse) {
  return with_file_name(path, [&] {
    SafetensorsFile const file(path);
    std::string const* text = nullptr;
    auto const all = file.metadata();
    for (auto const& [name, value] : all)
      if (name == key) text = &value;
    if (!text) throw DataError(path + ": holds parameters without the state of training; " + remedy);
    auto parsed = parse(*text);
    auto const moment = [](void* to, std::size_t i) {
      return static_cast<parallel::SessionState*>(to)->moments(i).data();
    };
    auto const held = file.header.value.object().size() - 1,  // without the metadata
        tensors = (1 + state.states()) * layout.entries().size() + layout.buffers().size();
    if (held > tensors)
      throw DataError(path + ": holds " + std::to_string(held) + " tensors, and the model with its optimizer has " +
                      std::to_string(tensors) + "; use the model and the optimizer that it was saved with");
    file.read(path, layout, state.values().data(), state.buffers().data(), {state.states(), moment, &state});
    return parsed;
  });
}
}  // namespace detail

/// Reads a file of `save_checkpoint` into `state`, which changes only if all is valid.
/// @throws DataError if the file cannot be read, belongs to another model or optimizer, or has parameters only
inline Progress load_checkpoint(std::string const& path, nn::ParameterLayout const& layout,
                                parallel::SessionState& state) {
  return detail::load_state_of(path, layout, Progress::key, "resume from a checkpoint of a run", state,
                               [&](std::string const& text) { return Progress::from_json(text, path); });
}

/// Returns the steps of a folder's checkpoints, ascending. Empty if the folder has none or does not exist.
/// @throws DataError if the folder exists and cannot be read
[[nodiscard]] inline std::vector<Index> checkpoint_steps(std::string const& folder) {
  constexpr std::string_view prefix = "step_", suffix = ".safetensors";
  std::vector<Index> all;
  auto* const open = ::opendir(folder.c_str());
  if (!open && errno != ENOENT)
    throw DataError(folder + ": cannot look for checkpoints there: " + std::strerror(errno));
  while (auto const* entry = open ? ::readdir(open) : nullptr) {
    std::string_view const name = entry->d_name;
    if (!name.starts_with(prefix) || !name.ends_with(suffix)) continue;
    auto const digits = name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
    Index steps = -1;
    auto const read = std::from_chars(digits.data(), digits.data() + digits.size(), steps);
    if (read.ec == std::errc{} && steps >= 0 && digits == std::to_string(steps)) all.push_back(steps);
  }
  if (open) ::closedir(open);
  for (std::size_t i = 1; i < all.size(); ++i)  // few elements: std::sort would increase compile time
    for (auto at = i; at > 0 && all[at - 1] > all[at]; --at) std::swap(all[at - 1], all[at]);
  return all;
}

namespace detail {
inline std::string step_name(Index step) { return "step_" + std::to_string(step); }
}  // namespace detail

/// Returns the path of the checkpoint with the most steps in a folder. Empty if the folder has none or does not exist.
/// @throws DataError like checkpoint_steps
[[nodiscard]] inline std::string newest_checkpoint(std::string const& folder) {
  auto const all = checkpoint_steps(folder);
  return all.empty() ? "" : folder + "/" + detail::step_name(all.back()) + ".safetensors";
}

/// Removes all except the `keep` newest checkpoints of a folder up to `step`, whose checkpoint must be on the disk.
/// Checkpoints of later steps belong to another run and stay. Files that cannot be removed stay.
inline void remove_old_checkpoints(std::string const& folder, Index step, Index keep) {
  std::vector<Index> all;
  try {
    all = checkpoint_steps(folder);
  } catch (DataError const&) {
    return;
  }
  while (!all.empty() && all.back() > step) all.pop_back();
  for (Index i = 0; i + keep < std::ssize(all); ++i)
    ::unlink((folder + "/" + detail::step_name(all[static_cast<std::size_t>(i)]) + ".safetensors").c_str());
}

namespace detail {
/// Returns the absolute path. An empty path stays empty.
inline std::string absolute_path(std::string const& path) {
  char here[PATH_MAX];
  bool const unchanged = path.empty() || path.front() == '/' || !::getcwd(here, sizeof here);
  return unchanged ? path : here + ("/" + path);
}

/// Returns whether a file is in a folder. Compares the folders' device and inode, not their names.
inline bool is_in_folder(std::string const& path, std::string const& folder) {
  auto const slash = path.rfind('/');
  struct ::stat parent {};
  struct ::stat target {};
  return ::stat(slash == std::string::npos ? "." : path.substr(0, slash + 1).c_str(), &parent) == 0 &&
         ::stat(folder.c_str(), &target) == 0 && parent.st_dev == target.st_dev && parent.st_ino == target.st_ino;
}

/// Removes the partial files of runs that were killed. Files that cannot be removed stay.
inline void remove_partial_checkpoints(std::string const& folder) {
  auto* const open = ::opendir(folder.c_str());
  if (!open) return;
  while (auto const* entry = ::readdir(open)) {
    std::string_view const name = entry->d_name;
    if (name.starts_with("step_") && name.ends_with(".partial")) ::unlinkat(::dirfd(open), entry->d_name, 0);
  }
  ::closedir(open);
}

/// Creates a folder for checkpoints with its parents, if missing.
/// @throws DataError with the system's reason, also if the folder is not writable
inline void create_folder(std::string const& folder) {
  auto const made = [&] { return ::mkdir(folder.c_str(), 0777) == 0 || errno == EEXIST; };
  bool exists = made();
  if (auto const slash = folder.find_last_of('/');
      !exists && errno == ENOENT && slash != std::string::npos && slash > 0) {
    create_folder(folder.substr(0, slash));
    exists = made();
  }
  if (exists && ::access((folder + "/.").c_str(), W_OK | X_OK) == 0) return;
  throw DataError(folder + ": " +
                  (exists ? "checkpoints cannot be written there: " : "cannot make the folder for checkpoints: ") +
                  std::strerror(errno));
}
}  // namespace detail

/// Returns the path of the checkpoint `name`, such as "step_500", in `folder`. Creates the folder if it is missing.
/// @throws DataError with the system's reason
[[nodiscard]] inline std::string checkpoint_path(std::string const& folder, std::string const& name) {
  detail::create_folder(folder);
  return folder + "/" + name + ".safetensors";
}

}}}  // namespace lockstep::train
