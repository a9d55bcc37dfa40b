// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/pooling/pooling.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "kernel/values.hpp"
#include "kernel/view.hpp"

using namespace lockstep;
using lockstep_test::values;
using lockstep_test::view;
using Kernel = kernel::Pooling<HostSpace>;
using Reduction = kernel::TokenReduction;

namespace {

/// Lengths 0, 1, all and some; padding would make any sum wrong.
template <class T>
struct Batch {
  Index rows, length, width;
  std::vector<std::int32_t> lengths;
  std::vector<T> x, dy;

  Batch(Index row_count, Index slots, Index channels)
      : rows(row_count),
        length(slots),
        width(channels),
        x(values<T>(rows * length * width, 1)),
        dy(values<T>(rows * width, 2)) {
    for (Index r = 0; r < rows; ++r) {
      Index const some[] = {length, 0, 1, length / 2};
      lengths.push_back(static_cast<std::int32_t>(some[r % 4]));
      for (Index i = lengths.back() * width; i < length * width; ++i)
        x[static_cast<std::size_t>(r * length * width + i)] = std::numeric_limits<T>::quiet_NaN();
    }
  }
  [[nodiscard]] kernel::SequenceLayout<HostSpace> layout() const {
    return kernel::SequenceLayout<HostSpace>::padded(length, view(lengths, rows), {nullptr, {rows}});
  }
  [[nodiscard]] std::vector<T> reduce(int threads, Reduction reduction) const {
    ThreadPool pool(threads);
    std::vector<T> y(static_cast<std::size_t>(rows * width), T{-7});
    Kernel::reduce<T>(memory::Stream<HostSpace>(pool), layout(), reduction, view(x, rows * length, width),
                      view(y, rows, width));
    return y;
  }
  [[nodiscard]] std::vector<T> backward(int threads, Reduction reduction, Write write) const {
    ThreadPool pool(threads);
    std::vector<T> dx(x.size(), T{3});
    Kernel::reduce_backward<T>(memory::Stream<HostSpace>(pool), layout(), reduction, view(dy, rows, width),
                               view(dx, rows * length, width), write);
    return dx;
  }
};

}  // namespace

TEST_CASE_TEMPLATE("mean and sum are over the tokens; a sequence without tokens gives zeros", T, float, double) {
  for (Index rows : {0, 1, 4, 5})
    for (Index length : {1, 2, 31, 32, 33})
      for (Index width : {1, 7, 16, 17, 65}) {
        Batch<T> const batch(rows, length, width);
        auto const y = batch.reduce(2, Reduction::mean), sums = batch.reduce(2, Reduction::sum);
        for (Index r = 0; r < rows; ++r) {
          auto const n = batch.lengths[static_cast<std::size_t>(r)];
          for (Index c = 0; c < width; ++c) {
            double sum = 0, terms = 0;
            for (Index t = 0; t < n; ++t) {
              auto const e = static_cast<double>(batch.x[static_cast<std::size_t>((r * length + t) * width + c)]);
              sum += e;
              terms += std::abs(e);
            }
            // n - 1 additions and a division round once each, by at most half a unit of the terms so far; the reference
            // itself rounds as often in double.
            double const unit = std::numeric_limits<T>::epsilon() / 2 + (sizeof(T) == 8 ? 0x1p-53 : 0);
            double const bound = n == 0 ? 0 : unit * n * terms / n;
            auto const got = static_cast<double>(y[static_cast<std::size_t>(r * width + c)]);
            CHECK(std::abs(got - (n == 0 ? 0 : sum / n)) <= bound);
            auto const got_sum = static_cast<double>(sums[static_cast<std::size_t>(r * width + c)]);
            CHECK(std::abs(got_sum - sum) <= bound * n);
          }
        }
      }
}

TEST_CASE_TEMPLATE("backward spreads the gradient over the tokens, for the mean in equal parts", T, float, double) {
  for (Index rows : {0, 1, 4, 5}) {
    Index const length = 33, width = 17;
    Batch<T> const batch(rows, length, width);
    auto const fresh = batch.backward(2, Reduction::mean, Write::overwrite);
    auto const added = batch.backward(2, Reduction::mean, Write::add);
    auto const of_sum = batch.backward(2, Reduction::sum, Write::overwrite);
    for (Index r = 0; r < rows; ++r) {
      auto const n = batch.lengths[static_cast<std::size_t>(r)];
      for (Index t = 0; t < length; ++t)
        for (Index c = 0; c < width; ++c) {
          auto const i = static_cast<std::size_t>((r * length + t) * width + c);
          T const expected = t < n ? batch.dy[static_cast<std::size_t>(r * width + c)] / static_cast<T>(n) : T{0};
          CHECK(fresh[i] == expected);
          CHECK(added[i] == T{3} + expected);
          CHECK(of_sum[i] == (t < n ? batch.dy[static_cast<std::size_t>(r * width + c)] : T{0}));
        }
    }
  }
}

TEST_CASE_TEMPLATE("the first or the last token, and its gradient", T, float, double) {
  for (auto which : {kernel::PooledToken::first, kernel::PooledToken::last})
    for (Index rows : {0, 1, 4, 5})
      for (Index width : {1, 17}) {
        Index const length = 4;
        Batch<T> const batch(rows, length, width);
        ThreadPool pool(2);
        memory::Stream<HostSpace> const stream(pool);
        std::vector<T> y(static_cast<std::size_t>(rows * width), T{-7}), fresh(batch.x.size(), T{3}), added = fresh;
        Kernel::token<T>(stream, batch.layout(), which, view(batch.x, rows * length, width), view(y, rows, width));
        for (auto* dx : {&fresh, &added})
          Kernel::token_backward<T>(stream, batch.layout(), which, view(batch.dy, rows, width),
                                    view(*dx, rows * length, width), dx == &fresh ? Write::overwrite : Write::add);
        for (Index r = 0; r < rows; ++r) {
          Index const tokens = batch.lengths[static_cast<std::size_t>(r)];
          for (Index t = 0; t < length; ++t)
            for (Index c = 0; c < width; ++c) {
              bool const taken = tokens > 0 && t == (which == kernel::PooledToken::first ? 0 : tokens - 1);
              auto const at = static_cast<std::size_t>(r * width + c);
              auto const slot = static_cast<std::size_t>((r * length + t) * width + c);
              if (taken) CHECK(y[at] == batch.x[slot]);
              if (tokens == 0) CHECK(y[at] == T{0});
              CHECK(fresh[slot] == (taken ? batch.dy[at] : T{0}));
              CHECK(added[slot] == T{3} + (taken ? batch.dy[at] : T{0}));
            }
        }
      }
}

TEST_CASE_TEMPLATE("the first of several maxima wins, NaN wins over numbers, and the winner gets the gradient", T,
                   float, double) {
  for (Index rows : {0, 1, 5})
    for (Index width : {1, 17}) {
      Index const length = 33;
      Batch<T> batch(rows, length, width);
      for (auto& each : batch.x) each = std::round(2 * each) / 2;  // many equal values
      auto const at = [&](Index r, Index t, Index c) { return static_cast<std::size_t>((r * length + t) * width + c); };
      if (rows > 0) batch.x[at(0, 5, 0)] = batch.x[at(0, 9, 0)] = std::numeric_limits<T>::quiet_NaN();
      ThreadPool pool(2);
      memory::Stream<HostSpace> const stream(pool);
      std::vector<T> y(static_cast<std::size_t>(rows * width), T{-7}), alone = y, fresh(batch.x.size(), T{3}),
                                                                       added = fresh;
      std::vector<std::int32_t> argmax(y.size());
      auto const x = view(std::as_const(batch.x), rows * length, width);
      Kernel::max<T>(stream, batch.layout(), x, view(y, rows, width), view(argmax, rows, width));
      Kernel::max<T>(stream, batch.layout(), x, view(alone, rows, width), {nullptr, {rows, width}});
      for (auto* dx : {&fresh, &added})
        Kernel::max_backward<T>(stream, batch.layout(), view(batch.dy, rows, width), view(argmax, rows, width),
                                view(*dx, rows * length, width), dx == &fresh ? Write::overwrite : Write::add);
      for (Index r = 0; r < rows; ++r)
        for (Index c = 0; c < width; ++c) {
          auto const i = static_cast<std::size_t>(r * width + c);
          Index winner = -1;
          for (Index t = 0; t < batch.lengths[static_cast<std::size_t>(r)]; ++t) {
            auto const here = batch.x[at(r, t, c)];
            if (winner < 0 || here > batch.x[at(r, winner, c)] ||
                (std::isnan(here) && !std::isnan(batch.x[at(r, winner, c)])))
              winner = t;
          }
          CHECK(argmax[i] == winner);
          auto const expected = winner < 0 ? T{0} : batch.x[at(r, winner, c)];
          CHECK((y[i] == expected || (std::isnan(y[i]) && std::isnan(expected))));
          CHECK((alone[i] == expected || std::isnan(expected)));
          for (Index t = 0; t < length; ++t) {
            CHECK(fresh[at(r, t, c)] == (t == winner ? batch.dy[i] : T{0}));
            CHECK(added[at(r, t, c)] == T{3} + (t == winner ? batch.dy[i] : T{0}));
          }
        }
    }
}

TEST_CASE("bits are equal for any number of threads") {
  Batch<float> const batch(9, 40, 24);
  auto const y = batch.reduce(1, Reduction::mean), dx = batch.backward(1, Reduction::mean, Write::add);
  for (int threads : {2, 3, 4}) {
    CHECK(batch.reduce(threads, Reduction::mean) == y);
    CHECK(batch.backward(threads, Reduction::mean, Write::add) == dx);
  }
}

// A sum of n equal numbers, in blocks of b, has a relative error of at most b + n / b half units.
TEST_CASE("the mean of many tokens is a sum in blocks") {
  constexpr Index tokens = 100'000, width = 3;
  ThreadPool pool(1);
  std::vector<float> const x(tokens * width, 0.1f);
  std::vector<float> y(width);
  Kernel::reduce<float>(memory::Stream<HostSpace>(pool), {.rows = 1, .slots = tokens, .length = tokens},
                        Reduction::mean, view(x, tokens, width), view(y, 1, width));
  double const exact{0.1f}, bound = (1024 + tokens / 1024.0 + 2) * 0x1p-24 * exact;
  for (float const mean : y) CHECK(std::abs(static_cast<double>(mean) - exact) <= bound);
}
