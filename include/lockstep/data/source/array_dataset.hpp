// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/data/aggregate.hpp>
#include <lockstep/data/dataset.hpp>
#include <lockstep/data/row.hpp>
#include <lockstep/data/sample_extent.hpp>
#include <lockstep/data/source/file_array.hpp>

namespace lockstep::inline LOCKSTEP_ABI::data {

/// Says which array a member of the samples comes from.
template <class Sample, class Member>
struct ArrayMember {
  Member Sample::*member;
  FileArray array;
};
template <class Sample, class Member>
ArrayMember(Member Sample::*, FileArray) -> ArrayMember<Sample, Member>;

namespace detail {

/// The numbers of a member, or of its cell in a batch.
template <Number T>
std::span<T> numbers_of(T& value) noexcept {
  return {&value, 1};
}
template <Number T, std::size_t N>
std::span<T> numbers_of(std::array<T, N>& values) noexcept {
  return values;
}
template <Number T>
std::span<T> numbers_of(std::vector<T>& values) noexcept {
  return values;
}
template <Number T, std::size_t N>
std::span<T> numbers_of(std::vector<std::array<T, N>>& values) noexcept {
  return {values.empty() ? nullptr : values.front().data(), values.size() * N};
}
template <Number T, std::size_t N>
std::span<T> numbers_of(std::span<T, N> values) noexcept {
  return values;
}

/// Gives a vector the length that a row of the array has. @throws DataError when the row is no whole number of elements
template <class Member>
void make_room(Member& member, FileArray const& array) {
  if constexpr (variable_length<Member>) {
    using Element = typename Member::value_type;
    Index const numbers = sizeof(Element) / static_cast<std::size_t>(array.type().bytes);
    if (numbers == 0 || array.width() % numbers != 0) return;  // the check of the type or of the width says so
    member.resize(static_cast<std::size_t>(array.width() / numbers));
  }
}

}  // namespace detail

/// Samples whose members are the rows of arrays in files: sample i is row i of each. Every member is bound to one
/// array: `ArrayDataset{ArrayMember{&Digit::image, open_idx(images)}, ArrayMember{&Digit::label, open_idx(labels)}}`. A
/// row is read straight into the batch. Copies share the open files. Thread-safe.
/// @throws DataError at construction when an array's type or width is not the member's, or arrays differ in rows; from
/// reading when a file was shortened meanwhile
template <class Sample, class... Member>
class ArrayDataset {
  static_assert(sizeof...(Member) == member_count<Sample>,
                "Lockstep: ArrayDataset needs one ArrayMember for each member of the sample");

 public:
  explicit ArrayDataset(ArrayMember<Sample, Member>... bound)
      : bound_(std::make_shared<std::tuple<ArrayMember<Sample, Member>...> const>(std::move(bound)...)) {
    Sample sample{};
    std::vector<void const*> places;
    int number = 0;
    each([&](auto const& one) {
      auto& member = sample.*one.member;
      auto const who = "member " + std::to_string(number++) + " of ArrayDataset";
      detail::make_room(member, one.array);
      auto const numbers = detail::numbers_of(member);
      one.array.template expect_type<typename decltype(numbers)::value_type>(who);
      if (static_cast<Index>(numbers.size()) != one.array.width()) {
        throw DataError(one.array.path() + ": has rows of " + std::to_string(one.array.width()) + " numbers " +
                        one.array.extents() + ", and " + who + " takes " + std::to_string(numbers.size()));
      }
      if (one.array.rows() != first().rows()) {
        throw DataError(one.array.path() + ": has " + std::to_string(one.array.rows()) + " rows, and " +
                        first().path() + " has " + std::to_string(first().rows()) +
                        "; each sample needs a row of both");
      }
      for (auto const* place : places)
        if (place == &member) throw ConfigError("ArrayDataset: " + who + " is bound twice; bind each member once");
      places.push_back(&member);
    });
    extent_ = extent_of(sample);
  }

  [[nodiscard]] Index size() const noexcept { return first().rows(); }
  [[nodiscard]] Sample get(Index i) const {
    Sample sample{};
    each([&](auto const& one) {
      detail::make_room(sample.*one.member, one.array);
      one.array.read_rows(i, detail::numbers_of(sample.*one.member));
    });
    return sample;
  }
  [[nodiscard]] SampleExtent<Sample> extent(Index) const noexcept { return extent_; }
  void read_into(Index i, Row<Sample> row) const {
    each([&](auto const& one) { one.array.read_rows(i, detail::numbers_of(row[one.member])); });
  }
  [[nodiscard]] std::string name(Index i) const { return "row " + std::to_string(i) + " of " + first().path(); }
  [[nodiscard]] std::uint64_t fingerprint() const {
    std::uint64_t hash = 0;
    each([&](auto const& one) { hash = mix(hash, one.array.fingerprint()); });
    return hash;
  }

 private:
  [[nodiscard]] FileArray const& first() const noexcept { return std::get<0>(*bound_).array; }
  template <class F>
  void each(F&& f) const {
    std::apply([&](auto const&... one) { (f(one), ...); }, *bound_);
  }

  std::shared_ptr<std::tuple<ArrayMember<Sample, Member>...> const> bound_;
  SampleExtent<Sample> extent_{};
};

}  // namespace lockstep::inline LOCKSTEP_ABI::data
