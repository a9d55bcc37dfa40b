// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/recurrent/recurrent.hpp>

#include <doctest/doctest.h>

#include <vector>

#include <lockstep/core/thread_pool.hpp>

#include "recurrent_run.hpp"

using namespace lockstep;
using kernel::Direction;
using lockstep_test::RecurrentRun;
using Layout = kernel::SequenceLayout<HostSpace>;

namespace {

struct Layouts {
  std::vector<std::int32_t> lengths{3, 0, 1};
  std::vector<Index> offsets{0, 3, 3, 4}, positions{0, 1, 2};
  Layout padded = Layout::padded(4, {lengths.data(), {3}}, {positions.data(), {3}});
  Layout ragged = Layout::ragged(4, 3, {offsets.data(), {4}}, {positions.data(), {3}});
};

}  // namespace

TEST_CASE("tokens are read in either order, each with the previous token's state; padding is ignored") {
  Layouts const layouts;
  kernel::RecurrentPass<float, HostSpace> pass{layouts.padded, Direction::forward, {}, {}};
  CHECK(pass.slot(0, 0) == 0);
  CHECK(pass.slot(0, 2) == 2);
  CHECK(pass.slot(2, 0) == 8);
  CHECK(pass.padding(2, 3) == 11);
  pass.direction = Direction::backward;
  CHECK(pass.slot(0, 0) == 2);
  CHECK(pass.slot(0, 2) == 0);
  CHECK(pass.to_before() == 1);
  pass.layout = layouts.ragged;
  CHECK(pass.slot(2, 0) == 3);
  CHECK(pass.padding(2, 1) == -1);
}

TEST_CASE_TEMPLATE("ragged steps have the bits of padded ones, for any number of threads", Cell, kernel::LstmCell,
                   kernel::GruCell, kernel::RnnCell) {
  Layouts const layouts;
  for (auto const direction : {Direction::forward, Direction::backward})
    for (Index const width : {1, 7, 33}) {
      RecurrentRun<Cell, float> padded(layouts.padded, width), ragged(layouts.ragged, width);
      for (int const threads : {1, 3}) {
        ThreadPool pool(threads);
        memory::Stream<HostSpace> const stream(pool);
        ragged.fill(), padded.fill();
        ragged.run(stream, direction), padded.run(stream, direction);
        Index wrong = 0;
        for (Index row = 0; row < 3; ++row)
          for (Index t = 0; t < layouts.ragged.tokens(row); ++t) {
            auto const a = layouts.padded.start(row) + t, b = layouts.ragged.start(row) + t;
            for (Index c = 0; c < width; ++c) {
              wrong += padded.y[padded.at(a, c)] != ragged.y[ragged.at(b, c)];
              for (Index g = 0; g < Cell::gates; ++g)
                wrong += padded.gates[padded.gate(a, g, c)] != ragged.gates[ragged.gate(b, g, c)];
            }
          }
        CHECK(wrong == 0);
        for (Index slot = 0; slot < layouts.padded.slots; ++slot)
          for (Index c = 0; c < width && !layouts.padded.is_token(slot); ++c)
            wrong += padded.y[padded.at(slot, c)] != 0 || padded.before[padded.at(slot, c)] != 0 ||
                     padded.gates[padded.gate(slot, 0, c)] != 0;
        CHECK(wrong == 0);
      }
    }
}
