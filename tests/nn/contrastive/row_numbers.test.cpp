// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/contrastive/row_numbers.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include <lockstep/nn/contrastive/dot_products.hpp>
#include <lockstep/nn/loss/cross_entropy.hpp>
#include <lockstep/nn/normalization/l2_normalize.hpp>

#include "nn/layer_check.hpp"

using namespace layer_check;

namespace {
struct NoParameters {
  void visit(auto&&) {}
};
}  // namespace

TEST_CASE("numbers begin at the given one and count the rows") {
  lockstep::ThreadPool pool(1);
  nn::Context<float, HostSpace> context{lockstep::memory::Stream<HostSpace>(pool)};
  nn::Pass(context).begin_micro_batch(nn::Mode::evaluation, 1);
  auto const vector_of = [](auto const& y) { return std::vector<std::int32_t>(y.data, y.data + y.size()); };
  CHECK(vector_of(nn::row_numbers(context, 3)) == std::vector<std::int32_t>{0, 1, 2});
  CHECK(vector_of(nn::row_numbers(context, 2, 5)) == std::vector<std::int32_t>{5, 6});
  CHECK(vector_of(nn::row_numbers(context, 0, 5)).empty());
  Index const most = std::numeric_limits<std::int32_t>::max();
  CHECK(vector_of(nn::row_numbers(context, 1, most - 1)) == std::vector<std::int32_t>{2147483646});
  CHECK_THROWS_WITH_AS(static_cast<void>(nn::row_numbers(context, 2, most - 1)),
                       "row_numbers: 2 rows from 2147483646; labels must be from 0 to 2147483647",
                       lockstep::ShapeError);
}

TEST_CASE("they are labels of a loss over pairs") {
  auto const pairs = [](auto& context, NoParameters const&, auto const& x) {
    auto const y = nn::l2_normalize(context, x.tokens);
    auto const logits = nn::dot_products(context, y, y);
    auto const own = nn::row_numbers(context, y.extent(0));
    CHECK(own.size() == y.extent(0));
    static_cast<void>(nn::cross_entropy(context, logits, own));
    return logits;
  };
  CHECK_FALSE(run<float>(NoParameters{}, 5, {.rows = 4}, pairs, 1).gradients.empty());
}
