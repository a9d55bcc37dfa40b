// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/data/source/mds_dataset.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

LOCKSTEP_INLINE MdsDataset::MdsDataset(std::string const& folder, MdsCheck check) {
  auto shared = std::make_shared<Shared>();
  auto const path = folder + "/index.json";
  detail::DataFile const file(path);
  auto const index = json::parse(file.read_claimed_text(0, file.size(), detail::max_index_bytes, "the index"), path);
  json::with_file_name(path, [&] {
    if (auto const version = index.at("version").integer(); version != 2)
      file.fail("is of MDS version " + std::to_string(version) + "; version 2 can be read");
    auto const& shards = index.at("shards").array();
    shared->fingerprint = mix(file.fingerprint(), shards.size());
    for (auto const& shard : shards) add(*shared, folder, shard, check, shards.size() <= max_open_shards);
  });
  if (shared->ends.empty() || shared->ends.back() == 0) file.fail("has no sample");
  shared_ = std::move(shared);
}

LOCKSTEP_INLINE MdsSample MdsDataset::get(Index i) const {
  auto const [shard, k] = locate(i);
  auto const begin = shard.offsets[k], end = shard.offsets[k + 1];
  auto data = with_memory_for(shard.path, end - begin, [&] { return std::vector<std::byte>(end - begin); });
  if (shard.file) {
    shard.file->read(begin, data);
  } else {
    detail::DataFile(shard.path).read(begin, data);
  }
  return MdsSample(shard.columns, std::move(data), name(i));
}

LOCKSTEP_INLINE std::string MdsDataset::name(Index i) const {
  auto const [shard, k] = locate(i);
  return "sample " + std::to_string(k) + " of " + shard.path;
}

LOCKSTEP_INLINE MdsDataset::ShardSample MdsDataset::locate(Index i) const noexcept {
  auto const s = std::upper_bound(shared_->ends.begin(), shared_->ends.end(), i) - shared_->ends.begin();
  auto const begin = s == 0 ? 0 : shared_->ends[static_cast<std::size_t>(s - 1)];
  return {shared_->shards[static_cast<std::size_t>(s)], static_cast<std::size_t>(i - begin)};
}

LOCKSTEP_INLINE MdsSample::Columns MdsDataset::columns(json::Value const& shard, std::string const& path) {
  auto const& names = shard.at("column_names").array();
  auto const& encodings = shard.at("column_encodings").array();
  auto const& sizes = shard.at("column_sizes").array();
  if (names.size() != encodings.size() || names.size() != sizes.size())
    throw DataError(path + ": the index lists names, encodings and sizes of different numbers of columns");
  std::vector<detail::MdsColumn> out;
  NameTable known;
  for (std::size_t c = 0; c < names.size(); ++c) {
    auto const bytes = sizes[c].is_null() ? 0 : sizes[c].integer();
    if (bytes < 0 || bytes > std::numeric_limits<std::uint32_t>::max())
      throw DataError(path + ": column \"" + names[c].string() + "\" has values of " + std::to_string(bytes) +
                      " bytes");
    auto const& name = names[c].string();
    if (known.add([&](std::size_t i) -> std::string_view { return names[i].string(); }) != NameTable::none)
      throw DataError(path + ": the index lists the column \"" + name + "\" twice");
    out.push_back({name, encodings[c].string(), static_cast<std::uint32_t>(bytes)});
    if (out.back().encoding == "pkl") {
      throw DataError(path + ": column \"" + out.back().name +
                      "\" is pickled, which only Python can run; write it as str, bytes, json or ndarray");
    }
  }
  return std::make_shared<std::vector<detail::MdsColumn> const>(std::move(out));
}

LOCKSTEP_INLINE std::vector<std::uint32_t> MdsDataset::offsets(detail::DataFile const& file, std::uint64_t samples) {
  constexpr std::size_t piece = std::size_t{1} << 18;
  auto const count = samples + 1;
  auto const expect = [&](bool fits) {
    if (!fits)
      file.fail("has a table of samples that does not fit its " + std::to_string(file.size()) +
                " bytes; it was cut off or is damaged");
  };
  expect(file.read_number<std::uint32_t>(4) >= 4 + 4 * count);
  expect(file.read_number<std::uint32_t>(4 * count) <= file.size());
  return with_memory_for(file.path(), 4 * count, [&] {
    std::vector<std::uint32_t> out;
    while (out.size() < count) {
      auto const begin = out.size();
      out.resize(std::min(begin + piece, count));
      file.read(4 + 4 * begin, std::as_writable_bytes(std::span(out).subspan(begin)));
      expect(std::is_sorted(out.begin() + static_cast<std::ptrdiff_t>(begin == 0 ? 0 : begin - 1), out.end()));
    }
    out.shrink_to_fit();
    return out;
  });
}

LOCKSTEP_INLINE void MdsDataset::add(Shared& shared, std::string const& folder, json::Value const& shard,
                                     MdsCheck check, bool keep_open) {
  auto const& entry = shard.at("raw_data");
  auto const path = detail::mds_file(folder, entry);
  if (shard.at("format").string() != "mds")
    throw DataError(path + ": is of the format " + shard.at("format").string() + "; mds can be read");
  if (!shard.at("compression").is_null() && ::access(path.c_str(), F_OK) != 0)
    throw DataError(path + ": is compressed (" + shard.at("compression").string() +
                    "); decompress the shards first, those of zstd with unpack_mds(folder)");
  auto file = std::make_shared<detail::DataFile const>(path);
  detail::check_mds_size(*file, entry);
  auto const samples = shard.at("samples").integer();
  auto const count = static_cast<std::uint64_t>(file->read_number<std::uint32_t>(0));
  if (samples < 0 || count != static_cast<std::uint64_t>(samples))
    file->fail("holds " + std::to_string(count) + " samples, and the index says " + std::to_string(samples));
  file->require_range(4, 4 * (count + 1), "the table of samples");
  Shard out{path, columns(shard, path), offsets(*file, count), nullptr};
  if (out.offsets.back() != file->size())
    file->fail("has " + std::to_string(file->size() - out.offsets.back()) +
               " bytes after its last sample; it is damaged, write it again");
  if (check == MdsCheck::hashes) {
    auto const* const expected = detail::mds_sha256(entry);
    if (expected == nullptr)
      file->fail(
          "has no SHA-256 in the index to compare; write the shards with hashes=['sha256'], or use MdsCheck::sizes");
    detail::check_mds_hash(*file, {}, 0, *expected);
  }
  if (keep_open) out.file = std::move(file);
  shared.ends.push_back((shared.ends.empty() ? 0 : shared.ends.back()) + samples);
  shared.shards.push_back(std::move(out));
}

}}}  // namespace lockstep::data
