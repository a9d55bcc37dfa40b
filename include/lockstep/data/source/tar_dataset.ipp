// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/out_of_memory.hpp>
#include <lockstep/data/source/tar_dataset.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

LOCKSTEP_INLINE std::vector<std::uint8_t> const& TarSample::at(std::string_view extension) const {
  for (auto const& member : members)
    if (member.extension == extension) return member.bytes;
  std::string extensions;
  for (auto const& member : members) extensions += (extensions.empty() ? "" : ", ") + member.extension;
  throw DataError("the sample \"" + key + "\" has no member ." + std::string(extension) + "; it has " + extensions);
}

LOCKSTEP_INLINE TarDataset::TarDataset(std::string path, TarIndex index)
    : file_(std::make_shared<detail::DataFile const>(std::move(path))) {
  auto const index_path = file_->path() + ".index";
  auto members = index == TarIndex::keep ? read_index(index_path) : std::vector<detail::TarEntry>();
  if (members.empty()) {
    members = detail::TarParser(*file_).take();
    if (index == TarIndex::keep && !members.empty()) write_index(index_path, members);
  }
  auto samples = std::make_shared<Samples>();
  std::unordered_map<std::string, std::size_t> known;  // key to sample
  for (auto& member : members) {
    auto const name = std::string_view(member.name).substr(member.name.rfind('/') + 1);
    if (name.starts_with('.') || is_metadata(member.name)) {
      ++samples->skipped;
      continue;
    }
    auto const dot = name.find('.');
    auto const key = member.name.substr(0, member.name.size() - name.size() + std::min(dot, name.size()));
    auto const [found, is_new] = known.try_emplace(key, samples->keys.size());
    if (is_new) {
      samples->keys.push_back(key);
      samples->members.emplace_back();
    }
    member.name.erase(0, std::min(key.size() + 1, member.name.size()));
    samples->members[found->second].push_back(std::move(member));
  }
  if (samples->keys.empty() && samples->skipped > 0) file_->fail("holds no file; it must hold at least one sample");
  for (std::size_t i = 0; i < samples->keys.size(); ++i)
    require_unique_extensions(samples->keys[i], samples->members[i]);
  samples_ = std::move(samples);
}

LOCKSTEP_INLINE TarSample TarDataset::get(Index i) const {
  auto const k = static_cast<std::size_t>(i);
  TarSample out{samples_->keys[k], {}};
  for (auto const& member : samples_->members[k]) {
    auto bytes = with_memory_for(name(i), member.bytes,
                                 [&] { return std::vector<std::uint8_t>(static_cast<std::size_t>(member.bytes)); });
    file_->read(member.offset, std::as_writable_bytes(std::span(bytes)));
    out.members.push_back({member.name, std::move(bytes)});
  }
  return out;
}

LOCKSTEP_INLINE std::string TarDataset::name(Index i) const {
  return samples_->keys[static_cast<std::size_t>(i)] + " in " + file_->path();
}

LOCKSTEP_INLINE bool TarDataset::is_metadata(std::string_view path) noexcept {
  auto const first = path.substr(0, path.find('/'));
  return first.size() >= 4 && first.starts_with("__") && first.ends_with("__");
}

LOCKSTEP_INLINE void TarDataset::require_unique_extensions(std::string const& key,
                                                           std::vector<detail::TarEntry> const& members) const {
  std::vector<std::string_view> extensions;
  for (auto const& member : members) extensions.push_back(member.name);
  std::sort(extensions.begin(), extensions.end());
  auto const twice = std::adjacent_find(extensions.begin(), extensions.end());
  if (twice == extensions.end()) return;
  file_->fail("holds \"" + key + (twice->empty() ? "" : ".") + std::string(*twice) +
              "\" twice; each member of a sample must occur once");
}

LOCKSTEP_INLINE std::string TarDataset::first_line() const {
  return "lockstep tar index 4 " + std::to_string(file_->size()) + " " + std::to_string(file_->modified_ns()) + " " +
         std::to_string(file_->spread_fingerprint()) + "\n";
}

LOCKSTEP_INLINE std::vector<detail::TarEntry> TarDataset::read_index(std::string const& index_path) const {
  std::vector<detail::TarEntry> out;
  if (::access(index_path.c_str(), R_OK) != 0) return out;
  std::optional<detail::DataFile> file;
  try {
    file.emplace(index_path);
  } catch (DataError const&) {
    return out;  // a folder or a pipe, which is no index
  }
  // Another user's index could name any bytes of the archive as any sample.
  if (!file->is_own()) return out;
  detail::ForwardReader text(*file, 0, file->size(), "the index");
  constexpr std::string_view last = "\nend\n";
  if (file->size() < last.size() || file->read_text(file->size() - last.size(), last.size(), "its end") != last)
    return out;  // it was cut off, and is rebuilt
  auto const first = first_line();
  if (text.peek(first.size()) != first) return out;
  text.drop(first.size());
  // A line is at most as long as the headers of its member, so a longer line is no line of an index.
  constexpr std::size_t numbers = 42;
  while (!text.ended()) {
    auto line = text.peek(numbers);
    auto const had = line.size();
    if (line == "end\n") return out;
    detail::TarEntry member;
    auto const take = [&](std::uint64_t& value) {
      auto const [end, error] = std::from_chars(line.data(), line.data() + line.size(), value);
      if (error != std::errc{} || end == line.data() + line.size() || *end != ' ') file->fail("is damaged; remove it");
      line.remove_prefix(static_cast<std::size_t>(end - line.data()) + 1);
    };
    take(member.offset);
    take(member.bytes);
    text.drop(had - line.size());
    auto end = std::string_view::npos;
    for (std::size_t most = 512; end == std::string_view::npos; most *= 2) {
      line = text.peek(most);
      end = line.find('\n');
      if (end == std::string_view::npos && (line.size() < most || most > detail::TarParser::max_header_bytes))
        file->fail("is damaged; remove it");
    }
    member.name = line.substr(0, end);
    text.drop(end + 1);
    file_->require_range(member.offset, member.bytes, "by its index, \"" + member.name + "\"");
    out.push_back(std::move(member));
  }
  file->fail("is damaged; remove it");  // after its last line
}

LOCKSTEP_INLINE bool TarDataset::is_index(std::string const& path) {
  constexpr std::string_view first = "lockstep tar index ", last = "\nend\n";
  try {
    detail::DataFile const file(path);
    auto const size = file.size();
    auto const begins = file.read_text(0, std::min<std::uint64_t>(first.size(), size), "the index");
    auto const rest = std::min<std::uint64_t>(last.size(), size);
    return size == 0 || begins == first || file.read_text(size - rest, rest, "the index") == last;
  } catch (DataError const&) {
    return false;
  }
}

LOCKSTEP_INLINE void TarDataset::write_index(std::string const& index_path,
                                             std::vector<detail::TarEntry> const& members) const {
  auto text = first_line();
  for (auto const& member : members) {
    if (member.name.find('\n') != std::string::npos) return;
    text += std::to_string(member.offset) + " " + std::to_string(member.bytes) + " " + member.name + "\n";
  }
  text += "end\n";
  if (std::error_code error; std::filesystem::exists(index_path, error)) {  // only an index is replaced
    if (!is_index(index_path)) return;
  }
  auto const partial = detail::partial_path(index_path);
  auto* const file = std::fopen(partial.c_str(), "wbx");
  if (file == nullptr) return;  // a read-only folder: the next run reads the headers again
  bool const whole = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  bool const closed = std::fclose(file) == 0;
  if (!whole || !closed || std::rename(partial.c_str(), index_path.c_str()) != 0) std::remove(partial.c_str());
}

}}}  // namespace lockstep::data
