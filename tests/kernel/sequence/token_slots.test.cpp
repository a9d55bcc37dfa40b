// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/sequence/token_slots.hpp>

#include <lockstep/core/error.hpp>
#include <lockstep/core/thread_pool.hpp>

#include "kernel/view.hpp"
#include "token_slots_cases.hpp"

using namespace lockstep;
using lockstep_test::Sequences;
using lockstep_test::view;

namespace {
using Ints = std::vector<std::int32_t>;

struct HostBackend {
  using Kernel = kernel::TokenSlots<HostSpace>;
  ThreadPool pool{2};

  static auto layout(Sequences const& s) {
    return s.layout<HostSpace>([](auto const& v) { return view(v, v.size()); });
  }
  Ints find(Sequences const& x, Sequences const& names, Ints const& places) {
    Ints slots(places.size(), 7);
    Kernel::find(memory::Stream<HostSpace>(pool), layout(x), layout(names), view(places, places.size()),
                 view(slots, slots.size()));
    return slots;
  }
  std::vector<Index> offsets(Sequences const& x, Sequences const& names, Ints const& firsts) {
    std::vector<Index> out(firsts.size() + 1, 7);
    Kernel::group_offsets(memory::Stream<HostSpace>(pool), layout(x), layout(names), view(firsts, firsts.size()),
                          view(out, out.size()));
    return out;
  }
};
}  // namespace

TEST_CASE("slots of tokens and offsets of groups, padded and ragged") {
  HostBackend backend;
  lockstep_test::token_slots_cases(backend);
}

TEST_CASE("places without a token are refused with row, position and value") {
  HostBackend backend;
  for (bool ragged : {false, true}) {
    Sequences const x({3, 2}, ragged), names({1, 2}, ragged);
    auto const refused = [&](Ints const& places, char const* message) {
      CHECK_THROWS_WITH_AS(backend.find(x, names, places), doctest::Contains(message), RowError);
    };
    refused(ragged ? Ints{0, 1, 2} : Ints{0, 0, 1, 2},
            "row 1 of the batch names token 2 at position 1; its sequence "
            "has 2 tokens");
    refused(ragged ? Ints{-1, 1, 1} : Ints{-1, 0, 1, 1}, "row 0 of the batch names token -1 at position 0");
  }
}

TEST_CASE("firsts that do not divide a sample's tokens are refused") {
  HostBackend backend;
  Sequences const x({3, 2}, true), groups({2, 1}, true);
  auto const refused = [&](Ints const& firsts, char const* message) {
    CHECK_THROWS_WITH_AS(backend.offsets(x, groups, firsts), doctest::Contains(message), RowError);
  };
  refused({1, 2, 0}, "row 0 of the batch has first token 1 at position 0, which must be 0");
  refused({0, 4, 0}, "row 0 of the batch has first token 4 at position 1, which must be from 0 to its 3 tokens");
  refused({0, -1, 0}, "first token -1 at position 1");
  refused({0, 1, 1}, "row 1 of the batch has first token 1 at position 0");
  CHECK_THROWS_WITH_AS(backend.offsets(x, Sequences({2, 0}, true), {0, 1}),
                       doctest::Contains("row 1 of the batch has 2 tokens and no group"), RowError);
  Sequences const three({3, 0}, true);
  CHECK_THROWS_WITH_AS(backend.offsets(x, three, {0, 2, 1}), doctest::Contains("from 2 to its 3 tokens"), RowError);
}
