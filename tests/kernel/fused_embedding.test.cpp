// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <lockstep/kernel/dropout.hpp>
#include <lockstep/kernel/fused_embedding.hpp>

#include "kernel/fused_embedding_cases.hpp"
#include "kernel/view.hpp"

using namespace lockstep;
using lockstep_test::EmbeddingCase;
using lockstep_test::EmbeddingGradients;
using lockstep_test::Ids;
using lockstep_test::view;

namespace {

class HostBackend {
 public:
  explicit HostBackend(int threads) : pool_(threads) {}

  template <class T>
  std::vector<T> forward(EmbeddingCase<T> const& c) {
    std::vector<T> out(c.dy.size(), T{-7});
    Kernel::forward<T>(stream(), tokens(c), view(c.token, c.vocabulary, c.width),
                       view(c.position, c.most_positions, c.width), c.mask, view(c.positions, c.rows),
                       view(out, c.rows * c.length, c.width));
    return out;
  }

  template <class T>
  EmbeddingGradients<T> backward(EmbeddingCase<T> const& c, Write write, T before) {
    std::vector<std::int32_t> scratch(c.ids.size());
    Kernel::plan(stream(), tokens(c), view(scratch, scratch.size()), plan_);
    auto dy = c.dy;
    if (c.mask.active())
      kernel::Dropout<HostSpace>::apply<T>(
          stream(), c.mask,
          kernel::SequenceLayout<HostSpace>::padded(c.length, view(c.lengths, c.rows), view(c.positions, c.rows)),
          view(c.dy, c.rows * c.length, c.width), view(dy, c.rows * c.length, c.width), Write::overwrite);
    EmbeddingGradients<T> out{std::vector<T>(c.token.size(), before), std::vector<T>(c.position.size(), before)};
    auto const rows = Kernel::partial_rows(tokens(c), plan_);
    std::vector<T> partial(static_cast<std::size_t>(rows * c.width));
    Kernel::backward_token<T>(stream(), plan_, view(std::as_const(dy), c.rows * c.length, c.width),
                              view(partial, rows, c.width), view(out.token, c.vocabulary, c.width), write);
    Kernel::backward_position<T>(stream(), tokens(c), view(std::as_const(dy), c.rows * c.length, c.width),
                                 view(out.position, c.most_positions, c.width), write);
    return out;
  }

 private:
  using Kernel = kernel::FusedEmbedding<HostSpace>;

  template <class T>
  static Kernel::Tokens tokens(EmbeddingCase<T> const& c) {
    return {view(c.ids, c.rows, c.length), view(c.lengths, c.rows)};
  }
  memory::Stream<HostSpace> stream() { return memory::Stream<HostSpace>(pool_); }

  ThreadPool pool_;
  Kernel::Plan plan_;
};

}  // namespace

TEST_CASE_TEMPLATE("embedding: the definition, at many sizes", T, float, double) {
  HostBackend backend(2);
  lockstep_test::embedding_cases<T>(backend);
}
TEST_CASE_TEMPLATE("embedding: hot rows", T, float, double) {
  HostBackend backend(2);
  lockstep_test::embedding_hot_row_cases<T>(backend);
}
TEST_CASE_TEMPLATE("embedding: add leaves absent ids alone", T, float, double) {
  HostBackend backend(2);
  lockstep_test::embedding_untouched_rows_case<T>(backend);
}
TEST_CASE_TEMPLATE("embedding: row and padding do not matter", T, float, double) {
  HostBackend backend(2);
  lockstep_test::embedding_padding_case<T>(backend);
}

TEST_CASE("embedding: the definition, for any ids and lengths") {
  HostBackend backend(2);
  CHECK(rc::check("gradients of any batch", [&](std::vector<std::vector<std::uint16_t>> const& sequences) {
    Index length = 0;
    for (auto const& s : sequences) length = std::max(length, static_cast<Index>(s.size()));
    auto const rows = static_cast<Index>(sequences.size());
    Index const vocabulary = *rc::gen::inRange<Index>(1, 40);
    auto c = EmbeddingCase<float>::make(rows, length, *rc::gen::inRange<Index>(1, 40), Ids::spread, 0.2, vocabulary);
    c.dy = lockstep_test::values<float>(static_cast<Index>(c.dy.size()), 5);
    for (Index r = 0; r < rows; ++r) {
      auto const& s = sequences[static_cast<std::size_t>(r)];
      c.lengths[static_cast<std::size_t>(r)] = static_cast<std::int32_t>(s.size());
      for (std::size_t t = 0; t < s.size(); ++t)
        c.ids[c.slot(r, static_cast<Index>(t))] = static_cast<std::int32_t>(s[t] % vocabulary);
    }
    lockstep_test::check_embedding_forward(backend, c);
    lockstep_test::check_embedding_backward(backend, c, Write::overwrite);
    lockstep_test::check_embedding_backward(backend, c, Write::add);
  }));
}

TEST_CASE("embedding: the same bits for any number of threads, and again") {
  auto const c = EmbeddingCase<float>::make(65, 40, 72, Ids::skewed, 0.1, 3001);
  HostBackend one(1);
  auto const out = one.forward(c);
  for (int threads : {1, 2, 3, 4}) {
    HostBackend backend(threads);
    for (int repetition = 0; repetition < 3; ++repetition) {
      CHECK(backend.forward(c) == out);
      for (auto write : {Write::overwrite, Write::add})
        CHECK(backend.backward(c, write, 1.5f) == one.backward(c, write, 1.5f));
    }
  }
}

TEST_CASE("embedding: an id outside the table is refused with row, position, id and size") {
  for (std::int32_t id : {-1, 53, 2'000'000'000}) {
    auto c = EmbeddingCase<float>::make(5, 9, 4, Ids::spread);
    c.ids[c.slot(4, 7)] = id;
    HostBackend backend(1);
    CHECK_THROWS_WITH_AS(static_cast<void>(backend.forward(c)),
                         doctest::Contains(("row 4 of the batch has id " + std::to_string(id) +
                                            " at position 7; the table has 53 rows, ids are 0 to 52")
                                               .c_str()),
                         DataError);
  }
}

TEST_CASE("embedding: a sequence longer than the position table is refused with row and both lengths") {
  auto c = EmbeddingCase<float>::make(5, 9, 4, Ids::spread);
  c.most_positions = 8;
  c.position.resize(8 * 4);
  HostBackend backend(1);
  CHECK_THROWS_WITH_AS(static_cast<void>(backend.forward(c)),
                       doctest::Contains("row 0 of the batch has 9 tokens; there are 8 positions"), DataError);
  c.lengths[0] = c.lengths[4] = 8;  // longer padding alone is fine
  CHECK_NOTHROW(static_cast<void>(backend.forward(c)));
  c.lengths[2] = -1;
  CHECK_THROWS_AS(static_cast<void>(backend.forward(c)), DataError);
}
