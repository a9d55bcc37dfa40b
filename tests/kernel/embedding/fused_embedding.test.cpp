// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/embedding/fused_embedding.hpp>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <any>
#include <deque>
#include <string>

#include "fused_embedding_cases.hpp"

using namespace lockstep;
using lockstep_test::Arrangement;
using lockstep_test::EmbeddingCase;
using lockstep_test::EmbeddingKind;
using lockstep_test::EmbeddingRun;
using lockstep_test::Ids;
using lockstep_test::Norm;
using lockstep_test::PositionUnit;

namespace {

class HostBackend {
 public:
  using Space = HostSpace;
  explicit HostBackend(int threads) : pool_(threads) {}

  template <class U>
  U* put(std::vector<U> const& values) {
    return std::any_cast<std::vector<U>&>(memory_.emplace_back(values)).data();
  }
  template <class U>
  std::vector<U> get(U const* data, Index count) {
    return {data, data + count};
  }
  void clear() { memory_.clear(); }
  memory::Stream<HostSpace> stream() { return memory::Stream<HostSpace>(pool_); }
  SegmentPlan& plan() { return plan_; }

 private:
  ThreadPool pool_;
  SegmentPlan plan_;
  std::deque<std::any> memory_;
};

template <class T>
std::vector<T> forward(HostBackend& backend, EmbeddingCase<T> const& c) {
  return EmbeddingRun<T, HostBackend>(backend, c).forward();
}

}  // namespace

TEST_CASE_TEMPLATE("embedding: a text, at many sizes", T, float, double) {
  HostBackend backend(2);
  lockstep_test::embedding_text_cases<T>(backend);
}
TEST_CASE_TEMPLATE("embedding: assembled, summed, typed, scaled and normalized", T, float, double) {
  HostBackend backend(2);
  lockstep_test::embedding_assembly_cases<T>(backend);
}
TEST_CASE_TEMPLATE("embedding: hot rows", T, float, double) {
  HostBackend backend(2);
  lockstep_test::embedding_hot_row_cases<T>(backend);
}
TEST_CASE_TEMPLATE("embedding: adding writes leave rows of absent ids unchanged", T, float, double) {
  HostBackend backend(2);
  lockstep_test::embedding_untouched_rows_case<T>(backend);
}
TEST_CASE_TEMPLATE("embedding: ragged and padded give equal bits", T, float, double) {
  HostBackend backend(2);
  lockstep_test::embedding_padding_case<T>(backend);
}

TEST_CASE("embedding: a plain sum has one rounding per term, in the order of the definition") {
  EmbeddingCase<float> const c({.width = 37, .dropout = 0.3});
  HostBackend backend(1);
  auto const out = forward(backend, c);
  for (Index r = 0; r < c.kind.rows; ++r)
    for (Index t = 0; t < c.tokens(r); ++t)
      for (Index k = 0; k < c.kind.width; ++k) {
        auto const& part = c.segments[0].parts[0];
        auto const id = part.ids[static_cast<std::size_t>(c.token(r, t).entry)];
        float const sum = part.rows[static_cast<std::size_t>(id * c.kind.width + k)] +
                          c.position[static_cast<std::size_t>(t * c.kind.width + k)];
        CHECK(out[static_cast<std::size_t>((c.start(r) + t) * c.kind.width + k)] == sum * c.factor(r, t, k));
      }
}

TEST_CASE("embedding: equals its definition for any lengths") {
  HostBackend backend(2);
  CHECK(rc::check("gradients of any batch", [&] {
    EmbeddingKind const kind{.rows = *rc::gen::inRange<Index>(0, 80),
                             .length = *rc::gen::inRange<Index>(0, 12),
                             .width = *rc::gen::inRange<Index>(1, 20),
                             .vocabulary = *rc::gen::inRange<Index>(1, 40),
                             .dropout = *rc::gen::element(0.0, 0.2),
                             .segments = *rc::gen::inRange(1, 9),
                             .arrangement = *rc::gen::element(Arrangement::concatenated, Arrangement::interleaved),
                             .ragged = *rc::gen::arbitrary<bool>(),
                             .position_unit = *rc::gen::element(PositionUnit::tokens, PositionUnit::steps),
                             .norm = *rc::gen::element(Norm::none, Norm::layer, Norm::rms),
                             .types = *rc::gen::arbitrary<bool>()};
    lockstep_test::check_embedding<float>(backend, kind);
  }));
}

TEST_CASE("embedding: bits are equal for any number of threads and on repetition") {
  for (auto norm : {Norm::none, Norm::layer}) {
    EmbeddingCase<float> const c({.rows = 65,
                                  .length = 20,
                                  .width = 72,
                                  .vocabulary = 3001,
                                  .ids = Ids::skewed,
                                  .dropout = 0.1,
                                  .segments = 2,
                                  .norm = norm,
                                  .types = true});
    using Run = EmbeddingRun<float, HostBackend>;
    HostBackend one(1);
    auto const out = forward(one, c);
    for (int threads : {1, 2, 3, 4}) {
      HostBackend backend(threads);
      for (int repetition = 0; repetition < 3; ++repetition) {
        CHECK(forward(backend, c) == out);
        for (auto write : {Write::overwrite, Write::add})
          CHECK(Run(backend, c).backward(write, 1.5f) == Run(one, c).backward(write, 1.5f));
      }
    }
  }
}

TEST_CASE("embedding: an id outside the table is refused with row, position, id and size") {
  for (std::int32_t id : {-1, 53, 2'000'000'000}) {
    EmbeddingCase<float> c({.rows = 5, .length = 9, .width = 4});
    c.segments[0].parts[0].ids[4 * 9 + 7] = id;
    HostBackend backend(1);
    CHECK_THROWS_WITH_AS(static_cast<void>(forward(backend, c)),
                         doctest::Contains(("row 4 of the batch has id " + std::to_string(id) +
                                            " at position 7; the table has 53 rows, ids are 0 to 52")
                                               .c_str()),
                         DataError);
  }
  EmbeddingCase<float> several({.rows = 4, .length = 9, .segments = 3});
  several.segments[2].parts[0].ids[2 * 9 + 3] = 99;
  HostBackend backend(1);
  CHECK_THROWS_WITH_AS(static_cast<void>(forward(backend, several)),
                       doctest::Contains("segment 2 of row 2 of the batch has id 99 at position 3"), DataError);
}

TEST_CASE("embedding: a sequence longer than the position table is refused with row and both lengths") {
  EmbeddingCase<float> c({.rows = 5, .length = 9, .width = 4});
  c.most_positions = 8;
  c.position.resize(8 * 4);
  HostBackend backend(1);
  CHECK_THROWS_WITH_AS(static_cast<void>(forward(backend, c)),
                       doctest::Contains("row 0 of the batch has 9 tokens; there are 8 positions"), DataError);
  c.segments[0].lengths[0] = c.segments[0].lengths[4] = 8;  // longer padding alone is valid
  CHECK_NOTHROW(static_cast<void>(forward(backend, c)));
  c.segments[0].lengths[2] = -1;
  CHECK_THROWS_AS(static_cast<void>(forward(backend, c)), DataError);
}

TEST_CASE("embedding: interleaved segments have equal lengths") {
  EmbeddingCase<float> c({.rows = 4, .length = 9, .segments = 3, .arrangement = Arrangement::interleaved});
  c.segments[1].lengths[3] = 2;
  HostBackend backend(1);
  CHECK_THROWS_WITH_AS(static_cast<void>(forward(backend, c)),
                       doctest::Contains("segment 1 of row 3 of the batch has 2 tokens and segment 0 has 4"),
                       DataError);
}
