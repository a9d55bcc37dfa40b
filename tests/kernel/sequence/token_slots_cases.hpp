// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include <lockstep/core/index.hpp>
#include <lockstep/kernel/sequence_layout.hpp>
#include <lockstep/memory/space.hpp>

namespace lockstep_test {

/// Sequences of these lengths, padded or ragged.
struct Sequences {
  std::vector<std::int32_t> lengths;
  bool ragged = false;
  lockstep::Index length = 0;              // the longest
  std::vector<lockstep::Index> offsets;    // also of padded sequences: the first slot of each, and the end
  std::vector<lockstep::Index> positions;  // of each

  Sequences(std::vector<std::int32_t> of, bool is_ragged) : lengths(std::move(of)), ragged(is_ragged) {
    for (auto each : lengths) length = std::max<lockstep::Index>(length, each);
    offsets.push_back(0);
    for (auto each : lengths) offsets.push_back(offsets.back() + (ragged ? each : length));
    positions.resize(lengths.size());
  }
  [[nodiscard]] lockstep::Index slots() const { return offsets.back(); }
  /// Returns the layout with these arrays in any space.
  template <class Space, class View>
  [[nodiscard]] lockstep::kernel::SequenceLayout<Space> layout(View const& view) const {
    using Layout = lockstep::kernel::SequenceLayout<Space>;
    if (ragged) return Layout::ragged(slots(), length, view(offsets), view(positions));
    return Layout::padded(length, view(lengths), view(positions));
  }
};

/// Cases that every backend's slots must satisfy. A backend has
///   std::vector<std::int32_t> find(Sequences x, Sequences names, std::vector<std::int32_t> places);
///   std::vector<Index> offsets(Sequences x, Sequences names, std::vector<std::int32_t> firsts);
template <class Backend>
void token_slots_cases(Backend& backend) {
  using lockstep::Index;
  using Ints = std::vector<std::int32_t>;
  std::vector<Ints> const pairs[] = {{{3, 0, 1, 33}, {2, 0, 4, 70}}, {{5}, {0}}, {{}, {}}, {{1, 1}, {31, 32}}};
  for (auto const& pair : pairs)
    for (bool x_ragged : {false, true})
      for (bool names_ragged : {false, true}) {
        Sequences const x(pair[0], x_ragged), names(pair[1], names_ragged);
        Ints places(static_cast<std::size_t>(names.slots()), 1 << 30), expected(places.size(), -1);
        for (std::size_t row = 0; row < names.lengths.size(); ++row)
          for (std::int32_t i = 0; i < names.lengths[row]; ++i) {
            auto const slot = static_cast<std::size_t>(names.offsets[row] + i);
            places[slot] = (7 * i + 2) % x.lengths[row];
            expected[slot] = static_cast<std::int32_t>(x.offsets[row]) + places[slot];
          }
        CHECK(backend.find(x, names, places) == expected);
      }
  // Groups of 0, 1 and several tokens; sequences without tokens; sequences without groups.
  Sequences const x({4, 0, 2, 0}, true), groups({3, 2, 4, 0}, true);
  CHECK(backend.offsets(x, groups, {0, 1, 1, 0, 0, 0, 0, 2, 2}) == std::vector<Index>{0, 1, 1, 4, 4, 4, 4, 6, 6, 6});
  CHECK(backend.offsets(Sequences({}, true), Sequences({}, true), {}) == std::vector<Index>{0});
}

}  // namespace lockstep_test
