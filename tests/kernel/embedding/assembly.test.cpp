// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/embedding/assembly.hpp>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cstdint>
#include <vector>

using namespace lockstep;
using kernel::Arrangement;
using kernel::Assembly;

namespace {

using Layout = kernel::SequenceLayout<HostSpace>;

/// Segments of the given lengths, [segment][row].
struct Lengths {
  std::vector<std::vector<std::int32_t>> lengths;
  std::vector<std::vector<Index>> offsets;
  std::vector<Index> positions;

  explicit Lengths(std::vector<std::vector<std::int32_t>> of) : lengths(std::move(of)), positions(lengths[0].size()) {
    for (auto const& segment : lengths) {
      offsets.push_back({0});
      for (auto n : segment) offsets.back().push_back(offsets.back().back() + n);
    }
  }
  [[nodiscard]] Assembly<HostSpace> assemble(Arrangement arrangement, bool ragged, Index padded_length) const {
    Assembly<HostSpace> out;
    out.arrangement = arrangement;
    auto const rows = static_cast<Index>(positions.size());
    TensorView<Index const, 1, HostSpace> const places{positions.data(), {rows}};
    for (std::size_t s = 0; s < lengths.size(); ++s)
      out.segments[out.count++] = ragged ? Layout::ragged(offsets[s].back(), 0, {offsets[s].data(), {rows + 1}}, places)
                                         : Layout::padded(padded_length, {lengths[s].data(), {rows}}, places);
    return out;
  }
};

}  // namespace

TEST_CASE("concatenated: all of the first segment, then all of the second") {
  Lengths const lengths({{2, 0, 1}, {1, 3, 0}});
  auto const assembly = lengths.assemble(Arrangement::concatenated, false, 5);
  auto const at = [&](Index row, Index token) {
    auto const location = assembly.locate(row, token);
    return std::vector<Index>{location.segment, location.step, assembly.entry(row, location)};
  };
  CHECK(at(0, 0) == std::vector<Index>{0, 0, 0});
  CHECK(at(0, 1) == std::vector<Index>{0, 1, 1});
  CHECK(at(0, 2) == std::vector<Index>{1, 0, 0});
  CHECK(at(1, 0) == std::vector<Index>{1, 0, 5});
  CHECK(at(1, 2) == std::vector<Index>{1, 2, 7});
  CHECK(at(2, 0) == std::vector<Index>{0, 0, 10});
  CHECK(assembly.bounds() == 3);
  CHECK(assembly.bound(0) == 3);
  CHECK(assembly.bound(2) == 1);
}

TEST_CASE("interleaved: step by step, one token of each") {
  Lengths const lengths({{2, 1}, {2, 1}, {2, 1}});
  auto const assembly = lengths.assemble(Arrangement::interleaved, true, 0);
  CHECK(assembly.locate(0, 4).segment == 1);
  CHECK(assembly.locate(0, 4).step == 1);
  CHECK(assembly.entry(1, {2, 0}) == 2);
  CHECK(assembly.bounds() == 3);
  CHECK(assembly.bound(1) == 6);
  CHECK(assembly.bound(2) == 9);
}

TEST_CASE("token is the inverse of location, and every entry has one location") {
  CHECK(rc::check("any lengths", [] {
    auto const segments = *rc::gen::inRange<std::size_t>(1, 9), rows = *rc::gen::inRange<std::size_t>(1, 5);
    auto const arrangement = *rc::gen::element(Arrangement::concatenated, Arrangement::interleaved);
    auto const some = [&] {
      return *rc::gen::container<std::vector<std::int32_t>>(rows, rc::gen::inRange<std::int32_t>(0, 5));
    };
    std::vector<std::vector<std::int32_t>> all(segments, some());
    if (arrangement == Arrangement::concatenated)
      for (auto& each : all) each = some();
    Lengths const lengths(all);
    bool const ragged = *rc::gen::arbitrary<bool>();
    auto const assembly = lengths.assemble(arrangement, ragged, 6);
    for (Index row = 0; row < static_cast<Index>(rows); ++row) {
      auto const tokens = ragged ? assembly.bound(row + 1) - assembly.bound(row) : assembly.bound(row);
      std::vector<Index> met(segments, 0);
      for (Index token = 0; token < tokens; ++token) {
        auto const location = assembly.locate(row, token);
        RC_ASSERT(assembly.token(row, location) == token);
        auto const& offsets = lengths.offsets[static_cast<std::size_t>(location.segment)];
        auto const start = ragged ? offsets[static_cast<std::size_t>(row)] : row * 6;
        RC_ASSERT(assembly.entry(row, location) == start + location.step);
        RC_ASSERT(location.step == met[static_cast<std::size_t>(location.segment)]++);  // in order, none left out
      }
      for (std::size_t s = 0; s < segments; ++s) RC_ASSERT(met[s] == all[s][static_cast<std::size_t>(row)]);
    }
  }));
}
