// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/out_of_memory.hpp>
#include <lockstep/data/aggregate.hpp>
#include <lockstep/data/dataset.hpp>
#include <lockstep/data/row.hpp>
#include <lockstep/data/sample_extent.hpp>
#include <lockstep/data/source/file_array.hpp>
#include <lockstep/data/source/row_ranges.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Binds a member of the samples to an array. For a vector whose length differs between samples, and for sliding
/// windows, also gives the rows of each sample.
template <class Sample, class Member>
struct ArrayMember {
  Member Sample::*member;  ///< member that a row fills
  FileArray array;         ///< one row for each sample, or several with `rows`
  RowRanges rows{};        ///< rows of each sample; default: one
};
/// Takes the types of sample and member from the pointer to member.
template <class Sample, class Member>
ArrayMember(Member Sample::*, FileArray, RowRanges = {}) -> ArrayMember<Sample, Member>;

namespace detail {

/// Returns the numbers of a member, or of its cell in a batch.
template <Number Value>
std::span<Value> numbers_of(Value& value) noexcept {
  return {&value, 1};
}
template <Number Value, std::size_t Count>
std::span<Value> numbers_of(std::array<Value, Count>& values) noexcept {
  return values;
}
template <Number Value>
std::span<Value> numbers_of(std::vector<Value>& values) noexcept {
  return values;
}
template <Number Value, std::size_t Count>
std::span<Value> numbers_of(std::vector<std::array<Value, Count>>& values) noexcept {
  return {values.empty() ? nullptr : values.front().data(), values.size() * Count};
}
template <Number Value, std::size_t Count>
std::span<Value> numbers_of(std::span<Value, Count> values) noexcept {
  return values;
}

/// Resizes a vector to the length of `rows` rows of the array.
template <class Member>
void resize_to_rows(Member& member, FileArray const& array, Index rows) {
  if constexpr (variable_length<Member>) {
    typename Member::value_type element{};
    auto const numbers = static_cast<Index>(numbers_of(element).size());
    if (numbers == 0 || array.width() % numbers != 0) return;  // the check of the width reports this error
    auto const elements = static_cast<std::size_t>(rows * (array.width() / numbers));
    with_memory_for(array.path() + " (a sample)", elements * sizeof element, [&] { member.resize(elements); });
  }
}

/// Count of numbers in an element of a vector member that holds arrays; 0 for other members.
template <class Member>
inline constexpr Index array_elements_of = 0;
template <Number Value, std::size_t Count>
inline constexpr Index array_elements_of<std::vector<std::array<Value, Count>>> = static_cast<Index>(Count);

/// Returns whether rows of this shape consist of whole last extents of `count` numbers. A row of one extent is cut
/// anywhere.
[[nodiscard]] inline bool ends_in(std::vector<Index> const& shape, Index count) noexcept {
  if (shape.size() <= 2) return true;
  Index numbers = 1;
  for (std::size_t axis = shape.size(); axis > 1; --axis)
    if ((numbers *= shape[axis - 1]) == count) return true;
  return false;
}

}  // namespace detail

/// Reads samples whose members are rows of arrays in files: sample i is row i of each. Every member is bound to one
/// array: `ArrayDataset{ArrayMember{&Digit::image, open_idx(images)}, ArrayMember{&Digit::label, open_idx(labels)}}`.
/// Reads rows directly into the batch. Sequences of varying length are concatenated in their array, and
/// `ArrayMember::rows` gives their rows: `ArrayMember{&Flight::states, states, RowRanges::of_lengths(lengths)}`.
/// `RowRanges::windows({.length = 48})` makes each 48 consecutive rows a sample; a std::array may hold them, too.
/// Copies share the open files. Thread-safe.
/// @throws DataError from the constructor if an array's type or width differs from the member's, or a member is a
/// vector of arrays and the array's last extents do not have as many numbers
/// @throws DataError from the constructor if arrays differ in samples, or ranges reach beyond their array
/// @throws DataError from reading if a file has been shortened since
template <class Sample, class... Member>
class ArrayDataset {
  static_assert(sizeof...(Member) == member_count<Sample>,
                "Lockstep: ArrayDataset needs one ArrayMember for each member of the sample");

 public:
  /// Takes one ArrayMember for each member of the sample, in any order.
  explicit ArrayDataset(ArrayMember<Sample, Member>... bound)
      : bound_(std::make_shared<std::tuple<ArrayMember<Sample, Member>...> const>(std::move(bound)...)) {
    Sample sample{};
    std::vector<void const*> places;
    int number = 0;
    each([&](auto const& one) {
      auto& member = sample.*one.member;
      auto const who = "member " + std::to_string(number++) + " of ArrayDataset";
      detail::resize_to_rows(member, one.array, 1);
      auto const numbers = detail::numbers_of(member);
      one.array.template expect_type<typename decltype(numbers)::value_type>(who);
      using Bound = std::remove_reference_t<decltype(member)>;
      auto const& windows = one.rows.windows();
      if (auto const rows = windows && !detail::variable_length<Bound> ? windows->length : Index{1};
          static_cast<Index>(numbers.size()) != rows * one.array.width()) {
        throw DataError(one.array.path() + ": has rows of " + std::to_string(one.array.width()) + " numbers " +
                        one.array.extents() + ", but " + who + " takes " + std::to_string(numbers.size()) +
                        (windows ? " for windows of " + std::to_string(rows) + (rows == 1 ? " row" : " rows") : ""));
      }
      if (constexpr Index count = detail::array_elements_of<Bound>;
          count > 0 && !detail::ends_in(one.array.shape(), count)) {
        auto const each = std::to_string(count);
        throw DataError(one.array.path() + ": has rows of " + std::to_string(one.array.width()) + " numbers " +
                        one.array.extents() + ", but " + who + " is a vector of arrays of " + each +
                        ", and the last extents are not; transpose the file to [rows, steps, " + each +
                        "], or change the member's type");
      }
      check_rows(one, who);
      for (auto const* place : places)
        if (place == &member) throw ConfigError("ArrayDataset: " + who + " is bound twice; bind each member once");
      places.push_back(&member);
    });
    extent_ = extent_of(sample);
    // Maps each bound member to its length in the extent: the only positive length of a sample in which only it has
    // room.
    std::size_t part = 0;
    each([&](auto const& one) {
      Sample alone{};
      detail::resize_to_rows(alone.*one.member, one.array, 1);
      auto const lengths = extent_of(alone).lengths;
      if (!one.rows.single()) ranges_ = true;
      length_[part++] = static_cast<std::size_t>(
          std::find_if(lengths.begin(), lengths.end(), [](Index length) { return length > 0; }) - lengths.begin());
    });
  }

  /// Returns the number of samples.
  [[nodiscard]] Index size() const noexcept { return samples_of(std::get<0>(*bound_)); }
  /// Reads sample i of [0, size()).
  [[nodiscard]] Sample get(Index i) const {
    Sample sample{};
    each([&](auto const& one) {
      detail::resize_to_rows(sample.*one.member, one.array, one.rows.count(i));
      one.array.read_rows(one.rows.first(i), detail::numbers_of(sample.*one.member));
    });
    return sample;
  }
  /// Returns the lengths of sample i without reading it.
  [[nodiscard]] SampleExtent<Sample> extent(Index i) const noexcept {
    if (!ranges_) return extent_;
    auto out = extent_;
    std::size_t part = 0;
    each([&](auto const& one) {
      if (auto const at = length_[part++]; at < out.lengths.size()) out.lengths[at] *= one.rows.count(i);
    });
    return out;
  }
  /// Reads sample i into its row of a batch: one copy per byte.
  void read_into(Index i, Row<Sample> row) const {
    each([&](auto const& one) { one.array.read_rows(one.rows.first(i), detail::numbers_of(row[one.member])); });
  }
  /// Returns "row 17 of a.npy, b.npy", or "sequence 17 of …".
  [[nodiscard]] std::string name(Index i) const {
    std::string files, last;  // arrays of one archive share its path
    each([&](auto const& one) {
      if (one.array.path() == last) return;
      last = one.array.path();
      files += (files.empty() ? "" : ", ") + last;
    });
    return std::string(kind(std::get<0>(*bound_).rows)) + " " + std::to_string(i) + " of " + files;
  }
  /// Returns a hash of the files' fingerprints and of the row ranges.
  [[nodiscard]] std::uint64_t fingerprint() const {
    std::uint64_t hash = 0;
    each([&](auto const& one) { hash = mix(hash, one.array.fingerprint(), one.rows.fingerprint()); });
    return hash;
  }

 private:
  [[nodiscard]] static char const* kind(RowRanges const& rows) noexcept {
    return rows.single() ? "row" : rows.windows() ? "window" : "sequence";
  }
  template <class Bound>
  [[nodiscard]] static Index samples_of(Bound const& one) noexcept {
    return one.rows.samples(one.array.rows());
  }
  template <class Member_>
  void check_rows(ArrayMember<Sample, Member_> const& one, std::string const& who) const {
    auto const rows = one.array.rows(), used = one.rows.used(rows);
    if (auto const& windows = one.rows.windows()) {
      if (used > rows)
        throw DataError(one.array.path() + ": has " + std::to_string(rows) + " rows, and the windows of " + who +
                        " end before row " + std::to_string(used) + "; end them at the array's end, or earlier");
    } else if (used != rows) {
      throw DataError(one.array.path() + ": has " + std::to_string(rows) + " rows, and the samples of " + who +
                      " have " + std::to_string(used) + " together; give each row to a sample");
    }
    if (!one.rows.single() && !one.rows.windows() && !detail::variable_length<Member_>)
      throw ConfigError("ArrayDataset: " + who + " is not a vector and cannot hold a varying number of rows");
    auto const& first = std::get<0>(*bound_);
    if (samples_of(one) != size()) {
      throw DataError(one.array.path() + ": has " + std::to_string(samples_of(one)) + " " + kind(one.rows) + "s, and " +
                      first.array.path() + " has " + std::to_string(size()) + " " + kind(first.rows) +
                      "s; each sample needs one of each");
    }
  }
  template <class Function>
  void each(Function&& f) const {
    std::apply([&](auto const&... one) { (f(one), ...); }, *bound_);
  }

  std::shared_ptr<std::tuple<ArrayMember<Sample, Member>...> const> bound_;
  SampleExtent<Sample> extent_{};                        // of one row each
  std::array<std::size_t, sizeof...(Member)> length_{};  // of each bound member: its place in the extent's lengths
  bool ranges_ = false;
};

}}}  // namespace lockstep::data
