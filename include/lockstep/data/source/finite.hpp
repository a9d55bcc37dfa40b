// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/data/aggregate.hpp>
#include <lockstep/data/dataset.hpp>
#include <lockstep/data/detail/part.hpp>
#include <lockstep/data/detail/sample_reader.hpp>
#include <lockstep/data/sample_key.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {
namespace detail {

template <class T>
bool all_finite(T const&) noexcept {
  return true;  // holds no floating-point number
}
template <std::floating_point T>
bool all_finite(T const& value) noexcept {
  return std::isfinite(value);
}
template <class T>
bool all_finite(std::optional<T> const& value) noexcept;
template <class T, std::size_t N>
bool all_finite(std::array<T, N> const& values) noexcept;
template <class T>
bool all_finite(std::vector<T> const& values) noexcept;
template <Aggregate T>
bool all_finite(T const& sample) noexcept;

template <class T>
bool all_finite(std::optional<T> const& value) noexcept {
  return !value || all_finite(*value);
}
template <class T, std::size_t N>
bool all_finite(std::array<T, N> const& values) noexcept {
  for (auto const& each : values)
    if (!all_finite(each)) return false;
  return true;
}
template <class T>
bool all_finite(std::vector<T> const& values) noexcept {
  for (auto const& each : values)
    if (!all_finite(each)) return false;
  return true;
}
template <Aggregate T>
bool all_finite(T const& sample) noexcept {
  return std::apply([](auto const&... member) { return (all_finite(member) && ...); }, members(sample));
}

}  // namespace detail

/// Checks each sample of a dataset when it is read. A sample with an infinity or a NaN is an error, which the loader
/// raises at its batch or skips. Does not read samples directly into batches, even if the dataset can.
/// @throws DataError from `get`; names the member, counted from 0
template <Dataset D>
class Finite {
  static_assert(Aggregate<SampleOf<D>>, "Lockstep: the samples of Finite are aggregates");

 public:
  explicit Finite(D dataset) : dataset_(std::move(dataset)) {}

  [[nodiscard]] Index size() const { return dataset_.size(); }
  [[nodiscard]] decltype(auto) get(Index i) const {
    decltype(auto) sample = dataset_.get(i);
    check(sample, i);
    return sample;
  }
  [[nodiscard]] decltype(auto) get(Index i, SampleKey const& key) const requires DrawsSamples<D> {
    decltype(auto) sample = dataset_.get(i, key);
    check(sample, i);
    return sample;
  }
  /// Returns the next sample of a stream's lane, as Streamed::take.
  [[nodiscard]] auto take(SampleKey const& key) const requires detail::ReadsForward<D> {
    auto sample = dataset_.take(key);
    if (sample) check(*sample, key.position);
    return sample;
  }
  void rewind(Index epoch, Index position) const requires detail::ReadsForward<D> { dataset_.rewind(epoch, position); }
  [[nodiscard]] Index lanes() const requires detail::ReadsForward<D> { return dataset_.lanes(); }
  /// Reads with a reader of the dataset. Valid while the Finite lives.
  class Worker {
   public:
    [[nodiscard]] decltype(auto) get(Index i) {
      decltype(auto) sample = reader_.get(i);
      of_->check(sample, i);
      return sample;
    }
    [[nodiscard]] decltype(auto) get(Index i, SampleKey const& key) requires DrawsSamples<D> {
      decltype(auto) sample = reader_.get(i, key);
      of_->check(sample, i);
      return sample;
    }

   private:
    friend Finite;
    explicit Worker(Finite const& of) : reader_(of.dataset_), of_(&of) {}

    detail::SampleReader<D> reader_;
    Finite const* of_;
  };
  [[nodiscard]] Worker worker() const requires HasWorkers<D> { return Worker(*this); }
  [[nodiscard]] std::string name(Index i) const requires NamesSamples<D> { return dataset_.name(i); }
  [[nodiscard]] std::uint64_t fingerprint() const requires HasFingerprint<D> { return dataset_.fingerprint(); }
  [[nodiscard]] Index groups() const requires GroupedDataset<D> { return dataset_.groups(); }
  [[nodiscard]] Index group(Index i) const requires GroupedDataset<D> { return dataset_.group(i); }

 private:
  void check(SampleOf<D> const& sample, Index i) const {
    int number = 0;
    auto const look = [&](auto const& member) {
      if (!detail::all_finite(member))
        throw DataError(detail::name_of_part(dataset_, i) + ": member " + std::to_string(number) +
                        " holds an infinity or a NaN; correct the data, or skip such samples (on_failure)");
      ++number;
    };
    std::apply([&](auto const&... member) { (look(member), ...); }, members(sample));
  }

  D dataset_;
};

}}}  // namespace lockstep::data
