// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/sequence/sequence_operation.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "kernel/values.hpp"
#include "kernel/view.hpp"

using namespace lockstep;
using lockstep_test::values;
using lockstep_test::view;
using Kernel = kernel::SequenceOperation<HostSpace>;
using Layout = kernel::SequenceLayout<HostSpace>;

namespace {

template <class Rule, class T>
void check(Layout const& layout, Index width, int threads) {
  using Towards = typename Rule::GradientY;
  ThreadPool pool(threads);
  memory::Stream<HostSpace> const stream(pool);
  auto const rows = layout.rows, slots = layout.slots;
  auto const x = values<T>(slots * width, 1), by = values<T>(rows * width, 2), before = values<T>(slots * width, 3),
             other = values<T>(rows * width, 5);
  auto dz = values<T>(slots * width, 4);
  for (Index i = 0; i < slots * width; ++i)  // padding would make any sum wrong
    if (!layout.is_token(i / width)) dz[static_cast<std::size_t>(i)] = std::numeric_limits<T>::quiet_NaN();
  auto z = x, sum = before, gradient = other, added = other;
  auto const run = [&](std::vector<T> const& from, std::vector<T>& to, Write write) {
    Kernel::run<Rule, T>(stream, layout, view(from, slots, width), view(by, rows, width), view(to, slots, width),
                         write);
  };
  run(z, z, Write::overwrite);
  run(x, sum, Write::add);
  auto const back = [&](std::vector<T>& to, Write write) {
    auto const second = Towards::reads_second ? view(x, slots, width) : TensorView<T const, 2, HostSpace>{};
    Kernel::backward<Towards, T>(stream, layout, view(dz, slots, width), second, view(to, rows, width), write);
  };
  back(gradient, Write::overwrite);
  back(added, Write::add);
  Index wrong = 0;
  for (Index r = 0; r < rows; ++r)
    for (Index c = 0; c < width; ++c) {
      auto const f = static_cast<std::size_t>(r * width + c);
      T sum_of_terms = 0;
      for (Index s = layout.start(r); s < layout.end(r); ++s) {
        auto const i = static_cast<std::size_t>(s * width + c);
        T const here = Rule{}(x[i], by[f]), term = Towards{}(dz[i], x[i]);
        wrong += z[i] != here || sum[i] != before[i] + here;
        if (layout.is_token(s)) sum_of_terms += term;
      }
      wrong += gradient[f] != sum_of_terms || added[f] != other[f] + sum_of_terms;
    }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE_TEMPLATE("tokens plus or times their sequence's numbers, and gradients, padded and ragged", T, float,
                   double) {
  std::vector<std::int32_t> const lengths{3, 0, 5, 1};
  std::vector<Index> const offsets{0, 3, 3, 8, 9}, positions{1, 2, 3, 4};
  for (int threads : {1, 3})
    for (Index width : {1, 16, 33})
      for (auto const& layout : {Layout::padded(5, view(lengths, 4), view(positions, 4)),
                                 Layout::ragged(9, 5, view(offsets, 5), view(positions, 4)),
                                 Layout{.rows = 3, .slots = 12, .length = 4}, Layout{}}) {
        check<kernel::Plus, T>(layout, width, threads);
        check<kernel::Times, T>(layout, width, threads);
      }
}

// A sum of n equal numbers, in blocks of b, has a relative error of at most b + n / b half units.
TEST_CASE("the gradient of a row that many tokens share is a sum in blocks") {
  constexpr Index tokens = 100'000, width = 3;
  ThreadPool pool(1);
  std::vector<float> const dz(tokens * width, 0.1f), x(tokens * width, 0.3f);
  Layout const layout{.rows = 1, .slots = tokens, .length = tokens};
  std::vector<float> sums(width), products(width);
  memory::Stream<HostSpace> const stream(pool);
  Kernel::backward<kernel::Plus::GradientY, float>(stream, layout, view(dz, tokens, width), {}, view(sums, 1, width),
                                                   Write::overwrite);
  Kernel::backward<kernel::Times::GradientY, float>(stream, layout, view(dz, tokens, width), view(x, tokens, width),
                                                    view(products, 1, width), Write::overwrite);
  double const bound = (256 + tokens / 256.0 + 2) * 0x1p-24;
  for (std::size_t c = 0; c < width; ++c) {
    CHECK(static_cast<double>(sums[c]) == doctest::Approx(tokens * double{0.1f}).epsilon(bound));
    CHECK(static_cast<double>(products[c]) == doctest::Approx(tokens * double{0.1f} * double{0.3f}).epsilon(bound));
  }
}
