// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <cstddef>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/core/tensor_view.hpp>
#include <lockstep/data/column.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {
namespace detail {

// A separate template for each member, so that the compiler's note next to the message names sample, member and type.
template <class Sample, std::size_t Member, class Type>
struct CheckMember {
  static constexpr bool value = Collatable<Type>;
  static_assert(
      !std::same_as<Type, std::vector<bool>>,
      "Lockstep: std::vector<bool> holds bits, which a batch cannot view as elements: make this member of the "
      "sample a std::vector<std::uint8_t>. Sample and member (counted from 0) are in this line's "
      "CheckMember<Sample, member, type>");
  static_assert(value || std::same_as<Type, std::vector<bool>>,
                "Lockstep: this member of the sample cannot be collated: it is none of number, enum, std::array, "
                "std::optional, std::vector (of numbers or of std::array), std::string, or an aggregate of these; "
                "docs/reference/collate.md says how to write others, such as a grid. Sample, member (counted from 0) "
                "and type are in this line's CheckMember<Sample, member, type>");
};

/// The columns of a sample; empty if one of its members has no column, so that the message above is the only error.
template <class Sample, class Members, class Space, Sequences sequences,
          class = std::make_index_sequence<std::tuple_size_v<Members>>>
struct ColumnTuple {
  using type = std::tuple<>;
};
template <class Sample, class... Member, class Space, Sequences sequences, std::size_t... Indices>
requires(CheckMember<Sample, Indices, Member>::value&&...) struct ColumnTuple<
    Sample, std::tuple<Member&...>, Space, sequences, std::index_sequence<Indices...>> {
  using type = std::tuple<ColumnOf<Member, Space, sequences>...>;
};

/// Replaces a sample that is no aggregate, or that a metric lacks, so that the message about it is the only error.
struct NoSample {
  int none = 0;
};

/// Result of an expression that a message rejects.
template <class Column>
inline Column const no_column{};

/// Only the addresses of its members are used, to find a member's place from a pointer to member.
template <class Sample>
inline Sample const prototype{};

}  // namespace detail

/// A batch of samples, column by column: `batch[&Article::tokens]` is the column of all samples' tokens. The member's
/// type determines the column's type: see column.hpp. A view: the collate's slab owns the memory.
/// @cost `operator[]` compares the addresses of members of the same type, at run time
template <class Sample, class Space, Sequences sequences>
class Columns {
  static constexpr bool is_aggregate = Aggregate<Sample>;
  static_assert(is_aggregate || std::is_aggregate_v<Sample>,
                "Lockstep: the sample is not an aggregate: make it a struct without constructors, private members and "
                "virtual functions; see docs/reference/dataset.md");
  static_assert(is_aggregate || !std::is_aggregate_v<Sample>,
                "Lockstep: the sample has no default value: a member is a reference, or its type has no default "
                "constructor; see docs/reference/dataset.md");

 public:
  /// Columns of all members, in their order.
  using Tuple =
      typename detail::ColumnTuple<Sample, MembersOf<std::conditional_t<Aggregate<Sample>, Sample, detail::NoSample>>,
                                   Space, sequences>::type;

  Columns() = default;
  /// Makes a batch without columns, for a collate.
  /// @shape positions [rows]
  Columns(Index rows, TensorView<Index const, 1, Space> positions, Index epoch) noexcept
      : rows_(rows), epoch_(epoch), positions_(positions) {}

  /// Returns the number of samples; it may be 0.
  [[nodiscard]] Index rows() const noexcept { return rows_; }
  /// Returns each row's position in the epoch's global order. Random numbers are keyed on it.
  [[nodiscard]] TensorView<Index const, 1, Space> positions() const noexcept { return positions_; }  // [rows]
  /// Returns the epoch. A batch on a device does not know it, so that a pass recorded in one epoch is replayed in
  /// others.
  [[nodiscard]] Index epoch() const noexcept {
    static_assert(
        Space::host_accessible,
        "Lockstep: a batch on a device does not know its epoch, because recorded passes are replayed in later "
        "epochs; make the epoch a member of the sample");
    return epoch_;
  }

  /// Returns the column of a member; for a nested aggregate, its columns.
  template <class Member>
  [[nodiscard]] typename detail::ColumnFor<Member, Space, sequences>::type const& operator[](
      Member Sample::*member) const noexcept {
    if constexpr (is_aggregate)
      return find(member, std::make_index_sequence<std::tuple_size_v<Tuple>>{});
    else
      return detail::no_column<typename detail::ColumnFor<Member, Space, sequences>::type>;
  }
  /// Rejects a member of another struct at compile time.
  template <class Member, class Other>
  requires(!std::same_as<Other, Sample>) [[nodiscard]] typename detail::ColumnFor<Member, Space, sequences>::type const&
  operator[](Member Other::*) const noexcept {
    static_assert(std::same_as<Other, Sample> || std::same_as<Other, detail::NoSample>,
                  "Lockstep: batch[&Other::member] names a member of another struct than the batch's samples: use a "
                  "member of the sample type, which is the first type in this line's Columns<Sample, ...>");
    return detail::no_column<typename detail::ColumnFor<Member, Space, sequences>::type>;
  }

  /// Rejects the name or number of a member at compile time.
  template <class Name>
  requires(std::is_convertible_v<Name const&, std::string_view> || std::is_integral_v<Name>) [[nodiscard]] auto const&
  operator[](Name const&) const noexcept {
    static_assert(!std::same_as<Name, Name>,
                  "Lockstep: batch[...] takes a pointer to a member of the sample: batch[&Sample::member]");
    return std::get<0>(columns_);
  }

  /// Returns all columns in the order of the members, for collates, which write them.
  [[nodiscard]] Tuple& columns() noexcept { return columns_; }
  /// Returns all columns in the order of the members.
  [[nodiscard]] Tuple const& columns() const noexcept { return columns_; }

  /// Whether both batches refer to the same memory and are equal otherwise. Does not compare the memory's content.
  bool operator==(Columns const&) const = default;

 private:
  template <class Member, std::size_t... Indices>
  auto const& find(Member Sample::*member, std::index_sequence<Indices...>) const noexcept {
    auto const& sample = detail::prototype<Sample>;
    using Members = decltype(members(sample));
    Members const all = members(sample);
    typename detail::ColumnFor<Member, Space, sequences>::type const* found = nullptr;
    auto const look = [&]<std::size_t Tried>(std::integral_constant<std::size_t, Tried>) {
      if constexpr (std::same_as<std::tuple_element_t<Tried, Members>, Member const&>) {
        if (&std::get<Tried>(all) == &(detail::prototype<Sample>.*member)) found = &std::get<Tried>(columns_);
      }
    };
    (look(std::integral_constant<std::size_t, Indices>{}), ...);
    return *found;  // NOLINT(clang-analyzer-*): a pointer to member names one of them
  }

  Index rows_ = 0;
  Index epoch_ = 0;
  TensorView<Index const, 1, Space> positions_;
  Tuple columns_;
};

/// Returns the batch in another space, `Copy::Space`, without its epoch unless that is the host's: `copy(view)` returns
/// the copy of each tensor. Define such a function in the namespace of your own batch type to copy its batches to a
/// device.
template <class Sample, class Space, Sequences sequences, class Copy>
[[nodiscard]] Columns<Sample, typename Copy::Space, sequences> copied(Columns<Sample, Space, sequences> const& batch,
                                                                      Copy const& copy) {
  Index epoch = 0;
  if constexpr (Copy::Space::host_accessible && Space::host_accessible) epoch = batch.epoch();
  Columns<Sample, typename Copy::Space, sequences> to(batch.rows(), copy(batch.positions()), epoch);
  [&]<std::size_t... Indices>(std::index_sequence<Indices...>) {
    ((std::get<Indices>(to.columns()) = copied(std::get<Indices>(batch.columns()), copy)), ...);
  }
  (std::make_index_sequence<std::tuple_size_v<typename Columns<Sample, Space, sequences>::Tuple>>{});
  return to;
}

}}}  // namespace lockstep::data
