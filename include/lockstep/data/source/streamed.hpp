// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/data/dataset.hpp>
#include <lockstep/data/detail/sample_reader.hpp>
#include <lockstep/data/source/stream_dataset.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Turns a stream into a dataset for the loader, with SequentialSampler: position p of an epoch is the next sample of
/// lane p mod lanes. The order is equal for any number of workers, and for any number of ranks that divides the lanes.
/// A state holds the position of each lane. Resume opens the lanes and skips used samples, with the reader's `skip(n)`
/// if it has one.
///
/// An epoch has `samples` positions. After a lane has ended, its rows are left out. A rank whose lanes have all ended
/// gets empty batches of weight 0. If `samples` is given, all ranks take equally many steps. If not, an epoch ends when
/// no rank has a row left: use `DataLoader::next_while_any`, then call `start` for the next epoch. A copy shares the
/// stream, and reads it independently. Thread-safe.
template <StreamDataset Stream>
class Streamed {
 public:
  using Sample = SampleOfStream<Stream>;  ///< type of a sample
  /// More than any epoch has.
  static constexpr Index unknown = detail::unknown_size;

  /// @param samples positions in an epoch; unknown: until all lanes have ended
  explicit Streamed(Stream stream, Index samples = unknown)
      : stream_(std::move(stream)), samples_(samples), count_(stream_.lanes()) {
    if (count_ < 1) throw ConfigError("Streamed: the stream has " + std::to_string(count_) + " lanes; it needs one");
    if (samples_ < 0) throw ConfigError("Streamed: samples is " + std::to_string(samples_) + "; it must be at least 0");
    lanes_ = std::make_unique<Lane[]>(static_cast<std::size_t>(count_));
  }
  /// Shares the stream and starts from the beginning.
  Streamed(Streamed const& other) : Streamed(other.stream_, other.samples_) {}
  /// Takes over the stream and its open lanes.
  Streamed(Streamed&&) noexcept = default;
  /// Takes over the stream of `other`.
  Streamed& operator=(Streamed other) noexcept {
    std::swap(stream_, other.stream_);
    std::swap(samples_, other.samples_);
    std::swap(count_, other.count_);
    std::swap(lanes_, other.lanes_);
    return *this;
  }
  ~Streamed() = default;

  /// Returns the positions of an epoch, or `unknown`.
  [[nodiscard]] Index size() const noexcept { return samples_; }
  /// Returns the number of lanes of the stream.
  [[nodiscard]] Index lanes() const noexcept { return count_; }
  /// Returns the sample at a position of epoch 0. @throws DataError if its lane has ended
  /// @throws ConfigError if the position was passed
  [[nodiscard]] Sample get(Index i) const {
    if (auto sample = take({0, 0, i})) return std::move(*sample);
    throw DataError("Streamed: " + name(i) + " does not exist: its lane has ended");
  }
  /// Returns "sample 17 of lane 2".
  [[nodiscard]] std::string name(Index i) const {
    return "sample " + std::to_string(i / count_) + " of lane " + std::to_string(i % count_);
  }
  /// Returns the stream's fingerprint.
  [[nodiscard]] std::uint64_t fingerprint() const requires requires(Stream const& s) { s.fingerprint(); }
  { return stream_.fingerprint(); }

  /// Returns the sample at a position, or nothing if its lane has ended. Several threads may call in any order if each
  /// position is taken: earlier samples are kept for their callers.
  [[nodiscard]] std::optional<Sample> take(SampleKey const& key) const {
    auto const k = key.position % count_, wanted = key.position / count_;
    auto& lane = lanes_[static_cast<std::size_t>(k)];
    std::lock_guard lock(lane.mutex);
    auto const read_early = std::find_if(lane.read_early.begin(), lane.read_early.end(), [&](auto const& each) {
      return each.epoch == key.epoch && each.number == wanted;
    });
    if (read_early != lane.read_early.end()) {
      auto out = std::move(*read_early);
      lane.read_early.erase(read_early);
      if (out.error) std::rethrow_exception(out.error);
      return std::move(out.sample);
    }
    while (lane.epoch < key.epoch) {
      while (lane.next < samples_in_epoch(k)) read_for_others(lane, k);
      lane.begin(lane.epoch + 1, 0);
    }
    if (lane.epoch > key.epoch || lane.next > wanted)
      throw ConfigError("Streamed: " + name(key.position) +
                        " is before the position of the stream; a stream only moves forward");
    while (lane.next < wanted) read_for_others(lane, k);
    return read(lane, k);
  }
  /// Restarts reading at a position of an epoch. For the loader.
  void rewind(Index epoch, Index position) const {
    for (Index k = 0; k < count_; ++k) {
      auto& lane = lanes_[static_cast<std::size_t>(k)];
      std::lock_guard lock(lane.mutex);
      lane.read_early.clear();
      lane.begin(epoch, position <= k ? 0 : (position - k - 1) / count_ + 1);
    }
  }

 private:
  using Reader = decltype(std::declval<Stream const&>().lane(Index{}, Index{}));
  struct ReadSample {
    Index epoch, number;
    std::optional<Sample> sample;
    std::exception_ptr error;
  };
  struct Lane {
    std::mutex mutex;
    std::optional<Reader> reader{};
    Index epoch = 0, next = 0;
    bool ended = false;
    std::vector<ReadSample> read_early{};  // read for other callers

    void begin(Index at_epoch, Index number) {
      reader.reset();
      epoch = at_epoch;
      next = number;
      ended = false;
    }
  };

  [[nodiscard]] Index samples_in_epoch(Index k) const noexcept {
    return samples_ <= k ? 0 : (samples_ - k - 1) / count_ + 1;
  }

  void read_for_others(Lane& lane, Index k) const {
    ReadSample out{lane.epoch, lane.next, {}, {}};
    try {
      out.sample = read(lane, k);
    } catch (...) {
      out.error = std::current_exception();
    }
    lane.read_early.push_back(std::move(out));
  }
  std::optional<Sample> read(Lane& lane, Index k) const {
    ++lane.next;
    std::optional<Sample> out;
    if (lane.ended) return out;
    if (lane.reader || open(lane, k)) out = lane.reader->next();
    if (!out) {
      lane.ended = true;
      lane.reader.reset();
    }
    return out;
  }
  /// Opens a lane and skips the samples before the next one. Returns false if the lane ends before it.
  bool open(Lane& lane, Index k) const {
    try {
      lane.reader.emplace(stream_.lane(k, lane.epoch));
      return skip_samples(*lane.reader, lane.next - 1);
    } catch (...) {
      lane.reader.reset();               // its position is unknown: the next sample opens the lane again
      lane.ended = samples_ == unknown;  // otherwise an epoch without a number of samples would not end
      throw;
    }
  }
  static bool skip_samples(Reader& reader, Index count) {
    if constexpr (requires { reader.skip(count); }) {
      if (count > 0) reader.skip(count);
      return true;
    } else {
      bool more = true;
      for (; more && count > 0; --count) {
        try {
          more = reader.next().has_value();
        } catch (...) {  // already reported when it was read
        }
      }
      return more;
    }
  }

  Stream stream_;
  Index samples_, count_;
  std::unique_ptr<Lane[]> lanes_;
};

}}}  // namespace lockstep::data
