// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/sequence_layout.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>
#include <rapidcheck.h>

using namespace lockstep;
using Layout = kernel::SequenceLayout<HostSpace>;

TEST_CASE("padded: rows of equal length, tokens first") {
  std::vector<std::int32_t> const lengths{2, 0, 3};
  std::vector<Index> const positions{7, 8, 9};
  auto const layout = Layout::padded(3, {lengths.data(), {3}}, {positions.data(), {3}});
  CHECK_FALSE(layout.is_ragged());
  CHECK(layout.slots == 9);
  CHECK(layout.start(2) == 6);
  CHECK(layout.end(2) == 9);
  CHECK(layout.tokens(0) == 2);
  CHECK(layout.tokens(1) == 0);
  CHECK(layout.row_of(5) == 1);
  CHECK(Layout::padded(3, {}, {positions.data(), {3}}).tokens(1) == 3);
  std::vector<bool> tokens;
  for (Index slot = 0; slot < 9; ++slot) tokens.push_back(layout.is_token(slot));
  CHECK(tokens == std::vector<bool>{true, true, false, false, false, false, true, true, true});
  CHECK(Layout::padded(3, {}, {positions.data(), {3}}).is_token(5));
}

TEST_CASE("vectors: every slot is a sequence of one token") {
  auto const layout = Layout::vectors(4);
  CHECK(layout.slots == 4);
  CHECK(layout.start(3) == 3);
  CHECK(layout.tokens(3) == 1);
  CHECK(layout.row_of(3) == 3);
  CHECK(layout.is_token(3));
}

TEST_CASE("ragged: every slot belongs to the sequence that contains it") {
  CHECK(rc::check("row_of", [](std::vector<std::uint8_t> const& sizes) {
    std::vector<Index> offsets{0}, owners;
    for (auto const size : sizes) {
      owners.insert(owners.end(), size % 5, static_cast<Index>(offsets.size()) - 1);
      offsets.push_back(static_cast<Index>(owners.size()));
    }
    auto const rows = static_cast<Index>(sizes.size());
    std::vector<Index> const positions(sizes.size());
    auto const layout = Layout::ragged(offsets.back(), 4, {offsets.data(), {rows + 1}}, {positions.data(), {rows}});
    RC_ASSERT(layout.slots == static_cast<Index>(owners.size()));
    for (std::size_t slot = 0; slot < owners.size(); ++slot) {
      RC_ASSERT(layout.row_of(static_cast<Index>(slot)) == owners[slot]);
      RC_ASSERT(layout.is_token(static_cast<Index>(slot)));
    }
    for (Index row = 0; row < rows; ++row) {
      RC_ASSERT(layout.tokens(row) == sizes[static_cast<std::size_t>(row)] % 5);
      RC_ASSERT(layout.end(row) - layout.start(row) == layout.tokens(row));
    }
  }));
}
