// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/data/aggregate.hpp>
#include <lockstep/data/dataset.hpp>
#include <lockstep/data/detail/forwarding.hpp>
#include <lockstep/data/detail/sample_reader.hpp>
#include <lockstep/data/sample_extent.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {
namespace detail {

template <class Value>
std::size_t bytes_beyond(Value const& member) noexcept;

template <class Elements>
std::size_t bytes_beyond_elements(Elements const& elements) noexcept {
  std::size_t out = 0;
  if constexpr (!std::is_trivially_copyable_v<typename Elements::value_type>)
    for (auto const& each : elements) out += bytes_beyond(each);
  return out;
}

/// Returns the heap bytes of a member, including the heap bytes of its elements.
template <class Value>
std::size_t bytes_beyond(Value const& member) noexcept {
  [[maybe_unused]] auto const of_all = [](auto const&... each) { return (std::size_t{0} + ... + bytes_beyond(each)); };
  if constexpr (std::is_trivially_copyable_v<Value>) {
    return 0;
  } else if constexpr (requires { member.heap_bytes(); }) {
    return member.heap_bytes();
  } else if constexpr (requires {
                         member.capacity();
                         member.begin();
                       }) {
    return member.capacity() * sizeof(typename Value::value_type) + bytes_beyond_elements(member);
  } else if constexpr (requires {
                         std::tuple_size<Value>::value;
                         member.begin();
                       }) {
    return bytes_beyond_elements(member);  // an array
  } else if constexpr (requires {
                         member.has_value();
                         *member;
                       }) {
    return member.has_value() ? bytes_beyond(*member) : 0;
  } else if constexpr (Aggregate<Value>) {
    return std::apply(of_all, members(member));
  } else if constexpr (requires { std::tuple_size<Value>::value; }) {
    return std::apply(of_all, member);
  } else {
    static_assert(
        sizeof(Value) == 0,
        "Lockstep: Cache does not know how much memory a member of the sample takes beyond its own size: give "
        "its class `std::size_t heap_bytes() const noexcept`");
  }
}

}  // namespace detail

/// Keeps samples in memory after their first read, up to a budget of bytes. Samples beyond the budget are read each
/// time. Kept samples are never evicted: shuffled epochs use each sample equally often, so eviction would gain nothing.
/// Copies share the cache. Thread-safe and lock-free.
template <Dataset Source>
class Cache : public detail::DatasetAdapter<Source> {
  using Adapter = detail::DatasetAdapter<Source>;
  static_assert(detail::RandomAccess<Source>,
                "Lockstep: Cache keeps samples by number, but a stream (Streamed) yields samples in order");
  static_assert(!DrawsSamples<Source>,
                "Lockstep: Cache would keep one draw of each sample of a dataset that draws random numbers; cache what "
                "is read and draw after it: Transform{Cache{dataset, bytes}, augment}");

 public:
  using Sample = SampleOf<Source>;                      ///< type of a sample
  using Worker = detail::AdapterWorker<Cache, Source>;  ///< reader of one worker

  /// @throws ConfigError if the budget is negative
  Cache(Source dataset, Index budget_bytes)
      : Adapter(std::move(dataset)), kept_(std::make_shared<KeptSamples>(dataset_.size())) {
    if (budget_bytes < 0)
      throw ConfigError("Cache: the budget is " + std::to_string(budget_bytes) + " bytes; it must be at least 0");
    kept_->bytes_left = budget_bytes;
  }

  /// Returns sample i, from memory if it is kept.
  [[nodiscard]] Sample get(Index i) const { return read(dataset_, i); }
  /// Returns the dataset's extent of sample i.
  [[nodiscard]] SampleExtent<Sample> extent(Index i) const requires detail::KnowsExtents<Source> {
    return dataset_.extent(i);
  }
  /// Returns a reader for one worker. Valid while this dataset lives.
  [[nodiscard]] Worker worker() const requires HasWorkers<Source> { return Worker(*this, dataset_); }
  /// Returns the bytes of the budget that are still free.
  [[nodiscard]] Index bytes_left() const noexcept { return kept_->bytes_left.load(std::memory_order_relaxed); }
  /// Returns a hash of the dataset's size and, if there is one, its fingerprint.
  [[nodiscard]] std::uint64_t fingerprint() const { return detail::size_and_fingerprint(dataset_); }

 private:
  friend Worker;
  using Adapter::dataset_;
  using Slot = std::atomic<Sample const*>;
  struct KeptSamples {
    std::vector<Slot> slots;
    std::atomic<Index> bytes_left{0};

    explicit KeptSamples(Index size) : slots(static_cast<std::size_t>(size)) {}
    KeptSamples(KeptSamples const&) = delete;
    KeptSamples& operator=(KeptSamples const&) = delete;
    ~KeptSamples() {
      for (auto& slot : slots) delete slot.load(std::memory_order_relaxed);
    }
  };
  template <class Reader>
  [[nodiscard]] Sample read(Reader& reader, Index i) const {
    auto& slot = kept_->slots[static_cast<std::size_t>(i)];
    if (auto const* sample = slot.load(std::memory_order_acquire)) return *sample;
    Sample sample = reader.get(i);
    keep(slot, sample);
    return sample;
  }
  void keep(Slot& slot, Sample const& sample) const {
    if (bytes_left() <= 0) return;
    auto copy = std::make_unique<Sample const>(sample);  // the copy has no spare capacity, even if the original has
    auto const bytes = static_cast<Index>(sizeof(Sample) + detail::bytes_beyond(*copy));
    auto left = bytes_left();
    do {
      if (left < bytes) return;
    } while (!kept_->bytes_left.compare_exchange_weak(left, left - bytes, std::memory_order_relaxed));
    Sample const* expected = nullptr;
    if (slot.compare_exchange_strong(expected, copy.get(), std::memory_order_release, std::memory_order_relaxed)) {
      static_cast<void>(copy.release());
    } else {
      kept_->bytes_left.fetch_add(bytes, std::memory_order_relaxed);  // another thread was first
    }
  }

  std::shared_ptr<KeptSamples> kept_;
};

}}}  // namespace lockstep::data
