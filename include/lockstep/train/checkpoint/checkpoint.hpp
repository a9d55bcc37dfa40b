// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lockstep/core/atomic_file.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/free_memory.hpp>
#include <lockstep/core/json.hpp>
#include <lockstep/core/json_writer.hpp>
#include <lockstep/core/random_suffix.hpp>
#include <lockstep/data/loader/loader_state.hpp>
#include <lockstep/nn/autograd/loss.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/optim/loss_scaler.hpp>
#include <lockstep/parallel/policy.hpp>
#include <lockstep/train/detail/saved_state_reader.hpp>
#include <lockstep/train/files/safetensors.hpp>
#include <lockstep/train/logs/observer.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Folder in which a fit saves checkpoints, and the checkpoint that it resumes from. Only the first rank reads and
/// writes, and only its settings count.
struct Checkpoints {
  std::string folder = {};  ///< receives step_N.safetensors; created before the first step. Empty: nothing is saved
  Index every = 0;          ///< optimizer steps between checkpoints; one more is saved after the last step. 0: only
                            ///< after the last step
  Index keep = 0;           ///< newest checkpoints of the run to keep; older ones are removed once a new one is on the
                            ///< disk, and the step after it had a finite loss. 0: all
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
  Index steps = 0;                                 ///< optimizer steps of the run so far
  Index effective_batch_size = 0;                  ///< samples of an optimizer step; a resumed run must have the same
  int reproducible = 0;                            ///< shards of a micro-step under parallel::Reproducible, or 0
  std::uint64_t seed = 0;                          ///< the trainer's
  nn::Loss<HostSpace> epoch_loss = {};             ///< of the current epoch so far
  double seconds = 0;                              ///< of the run so far
  std::vector<Index> resumed_at = {};              ///< steps at which the run was resumed, ascending
  std::vector<EvaluationReport> evaluations = {};  ///< in order; a saved one lacks large metrics, see to_json
  data::LoaderState data = {};                     ///< position in the data from which the run resumes
  optim::LossScaler::State loss_scale = {};        ///< with float16 activations
  std::string gemm_algorithms = {};                ///< GEMM algorithms chosen by timing on GPUs; empty if none were
  TrainerSteps before = {};                        ///< work of the trainer before this fit
  std::string optimizer = {};                      ///< the optimizer's name(), if it has one
  std::vector<std::string> loss_parts = {};        ///< parts of the loss that logged steps have reported

  /// Returns the state as JSON. An evaluation keeps its loss, the value named `best_by`, and the values of metrics that
  /// have at most `max_earlier_values`. The last and the best evaluation also keep those of up to `max_values`: a
  /// matrix of each evaluation would soon exceed the largest header that readers of safetensors take.
  [[nodiscard]] std::string to_json(std::string_view best_by = "loss") const;
  /// Reads a string of `to_json`.
  /// @throws DataError if the string is not a valid state, or has another version; `where` names its origin
  [[nodiscard]] static Progress from_json(std::string_view text, std::string const& where);

  static constexpr int version = 1;                         ///< of the format
  static constexpr char const* key = "lockstep.progress";   ///< key in the file's metadata
  static constexpr Index max_total_steps = Index{1} << 48;  ///< upper bound of any run
  /// Largest number of values of a metric that earlier evaluations keep. Values whose names share the part before the
  /// first dot, as "confusion.0.1" does, belong to one metric.
  static constexpr Index max_earlier_values = 16;
  /// Largest number of values of a metric that the last and the best evaluation keep.
  static constexpr Index max_values = Index{1} << 18;

 private:
  [[nodiscard]] static EvaluationReport read_evaluation(json::Value const& value);
};

/// Saves all that a run needs to resume with bit-identical results. The file has parameters and buffers as
/// `save_parameters` writes them, so `load_parameters` can read it. It also has the optimizer's moments as
/// "optimizer.I.NAME", except for frozen parameters, and the progress.
/// The file appears complete or not at all. Moments are requested and written one at a time.
/// @shape values and each of the moments [layout.size()]   @shape buffers [layout.buffer_size()]
/// @throws DataError if the file cannot be written; ConfigError if `metadata` cannot be saved, as for save_parameters
void save_checkpoint(std::string const& path, nn::ParameterLayout const& layout, std::span<float const> values,
                     std::span<float const> buffers, detail::Moments<float const> const& moments,
                     Progress const& progress, Metadata metadata = {},
                     detail::SavedNumbers numbers = detail::SavedNumbers::any, std::string_view best_by = "loss");

namespace detail {
/// Refuses a file that has moments of other parameters, but not of one that is learned now, and a file with tensors of
/// other parameters or more moments. Frozen parameters may have moments in a file.   @throws DataError
void expect_tensors(std::string const& path, SafetensorsFile const& file, nn::ParameterLayout const& layout,
                    std::size_t moments);

/// Reads parameters, buffers and moments into `state`. Returns parse(string) for the string with `key` in the metadata.
/// `state` changes only if all is valid.
/// @throws DataError if the file cannot be read, belongs to another model or optimizer, or has no such string; that
/// message ends in `remedy`
template <class Parse>
auto load_state_of(std::string const& path, nn::ParameterLayout const& layout, std::string_view key, char const* remedy,
                   parallel::SessionState& state, Parse const& parse) {
  return json::with_file_name(path, [&] {
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
    expect_tensors(path, file, layout, state.states());
    file.read(path, layout, state.values().data(), state.buffers().data(), {state.states(), moment, &state});
    return parsed;
  });
}
}  // namespace detail

/// Reads a file of `save_checkpoint` into `state`, which changes only if all is valid.
/// @throws DataError if the file cannot be read, belongs to another model or optimizer, or has parameters only
Progress load_checkpoint(std::string const& path, nn::ParameterLayout const& layout, parallel::SessionState& state);

/// Returns the steps of a folder's checkpoints, ascending. Empty if the folder has none or does not exist.
/// @throws DataError if the folder exists and cannot be read
[[nodiscard]] std::vector<Index> checkpoint_steps(std::string const& folder);

namespace detail {
inline std::string step_name(Index step) { return "step_" + std::to_string(step); }
}  // namespace detail

/// Returns the path of the checkpoint with the most steps in a folder. Empty if the folder has none or does not exist.
/// @throws DataError like checkpoint_steps
[[nodiscard]] std::string newest_checkpoint(std::string const& folder);

/// Removes all except the `keep` newest checkpoints of a folder up to `step`, whose checkpoint must be on the disk.
/// Checkpoints of later steps belong to another run and stay. Files that cannot be removed stay.
void remove_old_checkpoints(std::string const& folder, Index step, Index keep);

namespace detail {
/// Returns the absolute path. An empty path stays empty.
std::string absolute_path(std::string const& path);

/// Returns whether a file is in a folder. Compares the folders' device and inode, not their names.
bool is_in_folder(std::string const& path, std::string const& folder);

/// Removes the partial files of runs that were killed. Files that cannot be removed stay.
void remove_partial_checkpoints(std::string const& folder);

/// Creates a folder for checkpoints with its parents, if missing.
/// @throws DataError with the system's reason, also if the folder is not writable
void create_folder(std::string const& folder);

/// Checks the free space at `where` for one more file in `folder`.   @throws DataError with both sizes
void expect_room(std::string const& folder, std::string const& where, std::size_t bytes);

/// Checks without changes whether a folder for checkpoints exists and is writable, or could be created.
/// @param bytes of one checkpoint, for which there must be room
/// @throws DataError with the system's reason and a remedy
void check_folder(std::string const& folder, std::size_t bytes);

/// Creates a folder if missing, and writes, renames and removes a small file there, as a save does, since
/// permissions do not say whether a file system can rename and synchronize.
/// @param bytes of one checkpoint, for which there must be room
/// @throws DataError with the system's reason and a remedy
void try_folder(std::string const& folder, std::size_t bytes);
}  // namespace detail

/// Returns the path of the checkpoint `name`, such as "step_500", in `folder`. Creates the folder if it is missing.
/// @throws DataError with the system's reason
[[nodiscard]] std::string checkpoint_path(std::string const& folder, std::string const& name);

}}}  // namespace lockstep::train

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/checkpoint/checkpoint.ipp>
#endif
