// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/app/save_dir.hpp>
#include <lockstep/core/folder.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app {

LOCKSTEP_INLINE void check_save_dir(std::string const& directory, std::string const& resume) {
  namespace fs = std::filesystem;
  bool const resumes = resume == Options::automatic;
  if (std::error_code error; !resumes && resume != Options::never && !fs::is_regular_file(resume, error))
    throw ConfigError(
        "--resume " + resume +
        (fs::is_directory(resume, error)
             ? ": is a directory; name a checkpoint in it, or resume a run with --save-dir DIR --resume auto"
             : ": there is no such file; name a checkpoint, or auto for the newest one in --save-dir"));
  if (directory.empty()) return;
  std::error_code error;
  auto const there = fs::status(directory, error);
  if (fs::exists(there) && !fs::is_directory(there))
    throw ConfigError("--save-dir " + directory + ": is not a directory; name another");
  if (fs::exists(there) && ::faccessat(AT_FDCWD, directory.c_str(), W_OK | X_OK, AT_EACCESS) != 0)
    throw ConfigError("--save-dir " + directory + ": cannot be written to: " + std::strerror(errno) +
                      "; change its permissions, or name another directory");
  if ((directory == "~" || directory.starts_with("~/")) && !fs::exists("~", error))
    throw ConfigError("--save-dir " + directory +
                      ": ~ is not expanded after = or in a configuration file, and would be the name of a directory "
                      "here; write the path of your home directory");
  if (!fs::exists(there)) {
    auto const whole = fs::absolute(directory, error);
    for (auto part = whole; part.has_relative_path() && !fs::exists(part, error); part = part.parent_path())
      if (fs::is_symlink(fs::symlink_status(part, error)))
        throw ConfigError("--save-dir " + directory + ": cannot be created, because " + part.string() +
                          " is a link to " + fs::read_symlink(part, error).string() +
                          ", which does not exist; create that directory, or name another");
    auto const parent = nearest_existing(fs::absolute(directory, error).string());
    if (::faccessat(AT_FDCWD, (parent + "/.").c_str(), W_OK | X_OK, AT_EACCESS) != 0)
      throw ConfigError("--save-dir " + directory + ": cannot be created in " + parent + ": " + std::strerror(errno) +
                        "; name another directory");
  }
  if (resumes) return;
  for (char const* sign : {"run.json", "metrics.jsonl", "metrics.csv", "checkpoints"})
    if (fs::exists(fs::path(directory) / sign, error))
      throw ConfigError("--save-dir " + directory + ": already holds a run (" + sign +
                        "); name another directory, remove that run, or resume it with --resume auto");
}

LOCKSTEP_INLINE void check_init_from(std::string const& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  auto const there = fs::status(path, error);
  if (!path.empty() && !fs::exists(there))
    throw ConfigError("--init-from " + path + ": there is no such file; name a .safetensors file of this program");
  if (!path.empty() && fs::is_directory(there))
    throw ConfigError("--init-from " + path +
                      ": is a directory; name a file in it, such as checkpoints/best.safetensors of a run");
}

LOCKSTEP_INLINE void check_output_file(std::string const& flag, std::string const& path,
                                       std::vector<std::string> const& inputs, std::string const& save_dir) {
  std::error_code missing;
  bool const replaces = std::filesystem::is_regular_file(path, missing);
  auto const whole = [&](std::string const& name) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(name, missing), missing);
  };
  auto const file = whole(path);
  auto const is_or_has = [&](std::string const& input) {
    std::error_code error;
    if (!std::filesystem::is_directory(input, error)) return std::filesystem::equivalent(path, input, error) && !error;
    auto const folder = std::filesystem::canonical(input, error);
    return std::mismatch(folder.begin(), folder.end(), file.begin(), file.end()).first == folder.end();
  };
  for (auto const& input : inputs) {
    if (replaces && !input.empty() && is_or_has(input))
      throw ConfigError(flag + " " + path + ": is a file that the run reads, and would be replaced; name another file");
  }
  if (!save_dir.empty() && !std::filesystem::exists(save_dir, missing) && file.has_filename() &&
      file.parent_path() / "" == whole(save_dir) / "")
    return;  // `check_save_dir` has checked that the folder can be created
  try {
    AtomicFile const trial(path);
  } catch (DataError const& error) {
    throw DataError(flag + " " + error.what());
  }
}

LOCKSTEP_INLINE bool create_save_dir(std::string const& directory) {
  std::error_code error;
  bool const is_new = std::filesystem::create_directories(directory, error);
  if (error)
    throw ConfigError("--save-dir " + directory + ": cannot be created: " + error.message() +
                      "; name another directory");
  return is_new;
}

LOCKSTEP_INLINE SaveDirLock::SaveDirLock(std::string const& directory)
    : created_(create_save_dir(directory) ? std::filesystem::absolute(directory).string() : ""),
      file_(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (file_ < 0 || ::flock(file_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  ::close(file_);
  throw ConfigError("--save-dir " + directory +
                    ": another process is using it; wait until that process has ended, or name another directory");
}

LOCKSTEP_INLINE SaveDirLock& SaveDirLock::operator=(SaveDirLock&& other) noexcept {
  std::swap(created_, other.created_), std::swap(file_, other.file_);
  return *this;
}

LOCKSTEP_INLINE SaveDirLock::~SaveDirLock() {
  if (!created_.empty()) ::rmdir(created_.c_str());  // fails for a directory that is not empty
  if (file_ >= 0) ::close(file_);
}

}}}  // namespace lockstep::app
