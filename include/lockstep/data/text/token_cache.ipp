// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/data/text/token_cache.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

LOCKSTEP_INLINE CacheLock::CacheLock(std::string path, Progress* progress, std::stop_token stop)
    : path_(std::move(path)) {
  if (progress) progress->begin("waiting for another process that prepares the texts", 0);
  for (;;) {
    file_ = FileDescriptor(::open(path_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
    if (file_.get() < 0)
      throw DataError(path_ + ": cannot be created: " + system_message(errno) + "; choose another folder");
    while (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno != EWOULDBLOCK) return;
      if (stop.stop_requested())
        throw DataError(path_ + ": a stop was requested while another process prepared the texts");
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      if (progress) progress->add(0);
    }
    // The previous holder has removed the file, perhaps after it was opened here.
    struct ::stat mine {
    }, named{};
    if (::fstat(file_.get(), &mine) == 0 && ::stat(path_.c_str(), &named) == 0 && mine.st_ino == named.st_ino &&
        mine.st_dev == named.st_dev)
      return;
  }
}

}}}  // namespace lockstep::data::detail

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

LOCKSTEP_INLINE void TextSources::add_file(std::string const& path) {
  detail::DataFile const file(path);
  struct ::stat status {};
  if (::fstat(file.descriptor(), &status) != 0) file.fail("cannot be examined");
  std::error_code error;
  auto const absolute = std::filesystem::canonical(path, error);
  path_hash_ = mix(path_hash_, mix(std::string_view(error ? path : absolute.string())));
  auto const nanoseconds = [](timespec const& time) {
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
  };
  file_hash_ = mix(file_hash_, file.size(), status.st_ino, nanoseconds(status.st_mtim), nanoseconds(status.st_ctim));
  bytes_ += file.size();
}

LOCKSTEP_INLINE void TextSources::add_files(LabelledFilesDataset const& files) {
  add(hexadecimal(files.fingerprint()));
  for (Index i = 0; i < files.groups(); ++i) add_file(files.path(i));
}

LOCKSTEP_INLINE std::vector<std::string> TokenCache::classes() const {
  std::vector<std::string> out;
  for (auto text = file_->classes(); !text.empty();) {
    auto const end = text.find('\n');
    out.emplace_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return out;
}

LOCKSTEP_INLINE Index TokenCache::truncated() const noexcept {
  return static_cast<Index>(file_->header().parts[0].truncated + file_->header().parts[1].truncated);
}

LOCKSTEP_INLINE Index TokenCache::empty() const noexcept {
  return static_cast<Index>(file_->header().parts[0].empty + file_->header().parts[1].empty);
}

LOCKSTEP_INLINE std::optional<std::int32_t> TokenCache::only_label(std::size_t part) const noexcept {
  auto const& found = file_->header().parts[part];
  if (found.rows == 0 || found.least_label != found.largest_label) return {};
  return found.least_label;
}

LOCKSTEP_INLINE std::string TokenCache::one_per_line(std::vector<std::string> const& names) {
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (auto const at = names[i].find('\n'); at != std::string::npos)
      throw ConfigError("TokenCache: the name of class " + std::to_string(i) + " has a line break after \"" +
                        names[i].substr(0, at) + "\", and names are kept one per line; replace it, as by a space");
    out += names[i] + "\n";
  }
  return out;
}

LOCKSTEP_INLINE std::optional<TokenCache> TokenCache::try_open(std::string const& path, detail::TokenKey const& key,
                                                               TokenCacheOptions const& options) {
  if (::access(path.c_str(), F_OK) != 0) return {};
  try {
    auto file = std::make_shared<detail::TokenFile const>(path, key);
    if (!file->is_own()) return {};
    if (options.verify) {
      ThreadPool pool(options.threads);
      file->verify(pool, options.progress);
    }
    ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);  // used now
    return TokenCache(std::move(file));
  } catch (DataError const&) {
    return {};  // prepared again
  }
}

LOCKSTEP_INLINE void TokenCache::remove_partial(std::string const& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  auto const name = fs::path(path).filename().string() + ".";
  std::vector<fs::path> old;
  for (auto const& entry : fs::directory_iterator(fs::path(path).parent_path(), error)) {
    auto const other = entry.path().filename().string();
    if (other.starts_with(name) && !other.ends_with(".lock")) old.push_back(entry.path());
  }
  for (auto const& each : old) fs::remove(each, error);
}

LOCKSTEP_INLINE void TokenCache::remove_old_files(std::string const& folder, std::string const& newest,
                                                  std::string const& place, std::string const& state) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  for (auto const& entry : fs::directory_iterator(folder, error)) {
    auto const name = entry.path().filename().string();
    bool const partial = name.find(std::string(file_extension) + ".") != std::string::npos && !name.ends_with(".lock");
    if (partial && fs::file_time_type::clock::now() - entry.last_write_time(error) > std::chrono::hours(24))
      fs::remove(entry.path(), error);  // of a process that was killed
    if (name.size() != 3 * 17 - 1 + std::string_view(file_extension).size() || !name.ends_with(file_extension))
      continue;
    if (name.starts_with(place) && name.substr(17, 16) != state)
      fs::remove(entry.path(), error);  // the files have changed
    else if (entry.path() != fs::path(newest))
      files.emplace_back(entry.last_write_time(error), entry.path());
  }
  std::sort(files.begin(), files.end(), std::greater<>());
  for (auto i = max_files - 1; i < files.size(); ++i) fs::remove(files[i].second, error);
}

}}}  // namespace lockstep::data
