// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/json.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/core/name_table.hpp>
#include <lockstep/core/out_of_memory.hpp>
#include <lockstep/data/dataset.hpp>
#include <lockstep/data/detail/data_file.hpp>
#include <lockstep/data/source/detail/mds_file.hpp>
#include <lockstep/data/source/mds_sample.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Comparison of shards with the index, when an `MdsDataset` opens them.
enum class MdsCheck {
  sizes,   ///< The size of each shard.
  hashes,  ///< Also the SHA-256 of each shard, which reads all data once. The index must have it.
};

/// Reads a folder of MDS shards (version 2, as written by MosaicML's Streaming), uncompressed or unpacked with
/// unpack_mds. The constructor reads the shards' tables; then a sample is one read. Up to 256 shards stay open; with
/// more shards, each `get` opens its shard. Copies share all data. Thread-safe.
/// @throws DataError if index or shards are damaged or compressed, do not belong together, or hold pickled columns,
/// which are programs, not data
/// @source MosaicML Streaming: index.json; shard: u32 n, u32 offsets[n + 1], the columns as JSON, samples; sample: u32
/// sizes of the values that vary, values
class MdsDataset {
 public:
  /// @param folder folder with index.json
  explicit MdsDataset(std::string const& folder, MdsCheck check = MdsCheck::sizes);

  /// Returns the samples of all shards.
  [[nodiscard]] Index size() const noexcept { return shared_->ends.back(); }
  /// Reads sample i of [0, size()).
  [[nodiscard]] MdsSample get(Index i) const;
  /// Returns the sample's number and shard.
  [[nodiscard]] std::string name(Index i) const;
  /// Returns a hash of the index.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept { return shared_->fingerprint; }

 private:
  static constexpr std::size_t max_open_shards = 256;
  struct Shard {
    std::string path;
    MdsSample::Columns columns;
    std::vector<std::uint32_t> offsets;
    std::shared_ptr<detail::DataFile const> file;
  };
  struct Shared {
    std::vector<Shard> shards;
    std::vector<Index> ends;  // number of samples up to each shard's end
    std::uint64_t fingerprint = 0;
  };
  struct ShardSample {
    Shard const& shard;
    std::size_t k;
  };
  [[nodiscard]] ShardSample locate(Index i) const noexcept;

  static MdsSample::Columns columns(json::Value const& shard, std::string const& path);
  /// Reads the table of samples in pieces, and checks it.   @throws DataError if it does not fit its shard
  static std::vector<std::uint32_t> offsets(detail::DataFile const& file, std::uint64_t samples);
  static void add(Shared& shared, std::string const& folder, json::Value const& shard, MdsCheck check, bool keep_open);

  std::shared_ptr<Shared const> shared_;
};

}}}  // namespace lockstep::data

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/source/mds_dataset.ipp>
#endif
