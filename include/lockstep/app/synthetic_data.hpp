// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <concepts>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

#include <lockstep/app/options.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/file_descriptor.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/core/random_suffix.hpp>
#include <lockstep/core/regular_file.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app {

/// Returns a folder for files that programs can make again: $XDG_CACHE_HOME/lockstep, else $HOME/.cache/lockstep, else
/// lockstep-UID in the folder for temporary files. It may not exist yet.
[[nodiscard]] std::filesystem::path cache_folder();

namespace detail {

/// Returns the recipe of a complete synthetic data set, or an empty string for any other folder, also for one of
/// another user than this process's or root.
std::string recipe_of(std::filesystem::path const& folder);

/// Whether a folder belongs to the user of this process or to root, and not everybody may write there. Others could
/// replace the files of any other folder, such as one that they made under /tmp first.
bool is_own_folder(std::filesystem::path const& folder);

}  // namespace detail

/// Returns the folder with the training data: --data if it is given, else a synthetic data set, which write(folder)
/// makes on the first call. Its folder is SAVE_DIR/data or, without --save-dir and for a dry run, in `cache_folder()`.
/// It appears complete or not at all: several processes may call this concurrently.
/// @param recipe names everything on which the files depend, such as "500 clips of 8 frames, seed 1". It is kept in
/// synthetic.txt next to them, and a folder with an equal recipe is reused.
/// @param write fills the empty folder whose path it receives; the files must depend only on the recipe
/// @throws ConfigError if SAVE_DIR/data exists and is not a synthetic data set of this recipe, or cannot be written
template <std::invocable<std::filesystem::path const&> Write>
std::string data_folder(Options const& options, std::string const& recipe, Write const& write) {
  namespace fs = std::filesystem;
  if (!options.data.empty()) return options.data;
  bool const saves = !options.save_dir.empty() && !options.dry_run;
  auto const folder = saves ? fs::path(options.save_dir) / "data"
                            : cache_folder() / (options.program + "-" + hexadecimal(mix(std::string_view(recipe))));
  auto const text = recipe + "\n";
  if (detail::recipe_of(folder) == text) return folder.string();
  std::error_code error;
  if (fs::exists(folder, error))
    throw ConfigError(folder.string() + ": exists and is not the synthetic data set \"" + recipe +
                      "\"; remove it, name another --save-dir, or give --data");
  auto const partial = folder.string() + ".partial-" + random_suffix();
  fs::create_directories(folder.parent_path(), error);
  if (!error && !saves && !detail::is_own_folder(folder.parent_path()))
    throw ConfigError(folder.parent_path().string() +
                      ": belongs to another user, or everybody may write there; set XDG_CACHE_HOME to a folder of your "
                      "own, name a --save-dir, or give --data");
  if (error || !fs::create_directory(partial, error))
    throw ConfigError(partial + ": cannot be created for synthetic data: " + error.message() +
                      "; name another --save-dir, or give --data");
  try {
    write(fs::path(partial));
    if (!(std::ofstream(fs::path(partial) / "synthetic.txt", std::ios::binary) << text).flush())
      throw ConfigError(partial + "/synthetic.txt: cannot be written: " + system_message(errno) +
                        "; name another --save-dir, or give --data");
    fs::rename(partial, folder, error);
    if (error && detail::recipe_of(folder) != text)  // another process may have been faster
      throw ConfigError(folder.string() + ": cannot be created: " + error.message());
  } catch (...) {
    fs::remove_all(partial, error);
    throw;
  }
  fs::remove_all(partial, error);
  std::printf("%s: no --data: wrote synthetic data (%s) to %s\n", options.program.c_str(), recipe.c_str(),
              folder.c_str());
  std::fflush(stdout);
  return folder.string();
}

}}}  // namespace lockstep::app

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/app/synthetic_data.ipp>
#endif
