// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/attention/attention.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "kernel/attention_cases.hpp"
#include "kernel/values.hpp"
#include "kernel/view.hpp"
#include "larger_error.hpp"

using namespace lockstep;
using lockstep_test::view;
using lockstep_test::attention::Batch;
using lockstep_test::attention::judge;
using lockstep_test::attention::Options;
using lockstep_test::attention::Result;
using Kernel = kernel::Attention<HostSpace>;

namespace {

template <class T>
Result<T> run(Batch<T> const& b, int threads, Write write = Write::overwrite, T before = T{-7}) {
  ThreadPool pool(threads);
  memory::Stream<HostSpace> const stream(pool);
  auto const queries = b.queries.slots(), keys = b.keys.slots(), width = b.width(), heads = b.options.heads,
             key_width = width / b.heads_per_key_head;
  std::vector<T> const like_query(b.query.size(), before), like_key(b.key.size(), before);
  Result<T> r{like_query, like_query, like_key, like_key, std::vector<T>(b.bias.size(), before)};
  Kernel::Inputs<T> in{.query = view(b.query, queries, width),
                       .key = view(b.key, keys, key_width),
                       .value = view(b.value, keys, key_width),
                       .queries = b.queries.layout(),
                       .keys = b.keys.layout(),
                       .heads = heads,
                       .scale = b.scale(),
                       .causal = b.options.causal,
                       .query_heads_per_key_head = b.heads_per_key_head,
                       .mask = b.mask};
  if (!b.bias.empty()) in.bias = view(b.bias, heads, b.distances());
  auto const unset = [](Index count) {
    return std::vector<T>(static_cast<std::size_t>(count), std::numeric_limits<T>::quiet_NaN());
  };
  auto memory = unset(Kernel::scratch<T>(stream, in)), log_sums = unset(b.options.rows * heads * b.options.queries);
  auto const sums = view(log_sums, b.options.rows * heads, b.options.queries);
  auto const out = view(r.out, queries, width);
  Kernel::forward<T>(stream, in, out, sums, view(memory, memory.size()));
  Kernel::Gradients<T> to{{r.dquery.data(), write}, {r.dkey.data(), write}, {r.dvalue.data(), write}};
  if (!b.bias.empty()) to.bias = {r.dbias.data(), write};
  Kernel::backward<T>(stream, in, out, sums, view(b.dout, queries, width), to, view(memory, memory.size()));
  return r;
}

template <class T>
void check(Options const& options, Write write = Write::overwrite, T before = T{0}) {
  CAPTURE(options.rows);
  CAPTURE(options.queries);
  CAPTURE(options.keys);
  CAPTURE(options.heads);
  CAPTURE(options.head_width);
  CAPTURE(options.dropout);
  CAPTURE(options.causal);
  CAPTURE(options.biased);
  CAPTURE(options.ragged);
  Batch<T> const batch(options);
  auto const start = write == Write::add ? before : std::numeric_limits<T>::quiet_NaN();
  auto const verdict = judge(batch, run(batch, 2, write, start), before);
  CAPTURE(verdict.closest);
  CHECK(verdict.agree);
  CHECK(verdict.padding_is_zero);
}

constexpr std::array<Index, 2> shapes[] = {{1, 1}, {2, 5}, {3, 16}, {1, 70}};  // heads, head width

}  // namespace

TEST_CASE_TEMPLATE("attention equals its definition, forward and backward", T, float, double) {
  for (double dropout : {0.0, 0.3})
    for (bool causal : {false, true})
      for (Index rows : {0, 1, 4})
        for (Index length : {1, 2, 7, 31, 32, 33, 65, 130})
          for (auto [heads, width] : shapes) {
            if (length > 33 && (rows == 1 || heads != 2)) continue;  // the reference is slow
            check<T>({.rows = rows,
                      .queries = length,
                      .keys = length,
                      .heads = heads,
                      .head_width = width,
                      .dropout = dropout,
                      .causal = causal,
                      .biased = length % 2 == 1,
                      .ragged = rows == 4 && length > 31});
          }
}

TEST_CASE_TEMPLATE("attention: to other sequences, some of them empty", T, float, double) {
  for (auto [queries, keys] : {std::array<Index, 2>{1, 40}, {40, 1}, {33, 70}, {70, 33}, {5, 0}, {0, 5}, {0, 0}})
    for (bool causal : {false, true})
      for (bool ragged : {false, true})
        check<T>({.rows = 5,
                  .queries = queries,
                  .keys = keys,
                  .heads = 2,
                  .head_width = 8,
                  .dropout = 0.2,
                  .causal = causal,
                  .biased = true,
                  .ragged = ragged});
}

TEST_CASE_TEMPLATE("attention: a bias whose gradient is summed in several ranges", T, float, double) {
  for (auto write : {Write::overwrite, Write::add})
    check<T>({.rows = 3, .queries = 36, .keys = 33, .heads = 64, .head_width = 1, .biased = true}, write,
             write == Write::add ? T{0.5} : T{0});
}

TEST_CASE_TEMPLATE("attention: gradients can be added", T, float, double) {
  for (bool ragged : {false, true})
    for (bool causal : {false, true})
      check<T>({.rows = 4,
                .queries = 70,
                .keys = 45,
                .heads = 2,
                .head_width = 8,
                .dropout = 0.2,
                .causal = causal,
                .biased = true,
                .ragged = ragged},
               Write::add, T{0.5});
}

TEST_CASE("attention: scores that are far apart cause neither overflow nor NaN") {
  Batch<float> batch({.rows = 1, .queries = 20, .keys = 20, .heads = 1, .head_width = 4});
  for (auto* x : {&batch.query, &batch.key})
    for (auto& e : *x) e *= 1e15f;
  auto const got = run(batch, 1);
  for (auto* x : {&got.out, &got.dquery, &got.dkey, &got.dvalue})
    for (float e : *x) CHECK(std::isfinite(e));
}

TEST_CASE("attention: bits are equal for any number of threads and on repetition") {
  for (bool causal : {false, true})
    for (bool ragged : {false, true}) {
      Batch<float> const batch({.rows = 9,
                                .queries = 70,
                                .keys = 90,
                                .heads = 4,
                                .head_width = 8,
                                .dropout = 0.1,
                                .causal = causal,
                                .biased = true,
                                .ragged = ragged});
      for (auto write : {Write::overwrite, Write::add}) {
        auto const one = run(batch, 1, write, 0.25f);
        for (int threads : {1, 2, 3, 4})
          for (int repetition = 0; repetition < 2; ++repetition) CHECK(run(batch, threads, write, 0.25f) == one);
      }
    }
}

TEST_CASE("attention: bits do not depend on row, padding and raggedness, including dropout") {
  Options options{.rows = 4, .queries = 70, .keys = 100, .heads = 2, .head_width = 8, .dropout = 0.3, .biased = true};
  Batch<float> const padded(options);
  options.ragged = true;
  Batch<float> ragged(options);
  auto const gather = [&](auto const& side, auto const& other, std::vector<float> const& from, std::vector<float>& to) {
    for (Index r = 0; r < side.rows(); ++r)
      std::copy_n(from.begin() + side.start(r) * 16, side.tokens(r) * 16, to.begin() + other.start(r) * 16);
  };
  auto const queries = [&](std::vector<float> const& from, std::vector<float>& to) {
    gather(padded.queries, ragged.queries, from, to);
  };
  auto const keys = [&](std::vector<float> const& from, std::vector<float>& to) {
    gather(padded.keys, ragged.keys, from, to);
  };
  queries(padded.query, ragged.query);
  queries(padded.dout, ragged.dout);
  keys(padded.key, ragged.key);
  keys(padded.value, ragged.value);
  ragged.bias = padded.bias;
  auto const all = run(padded, 2), compact = run(ragged, 2);
  auto expected = compact;
  queries(all.out, expected.out);
  queries(all.dquery, expected.dquery);
  keys(all.dkey, expected.dkey);
  keys(all.dvalue, expected.dvalue);
  expected.dbias = all.dbias;
  CHECK(compact == expected);
}

TEST_CASE("attention: shapes that do not fit are refused with the numbers") {
  ThreadPool pool(1);
  std::vector<float> x(24), memory(100'000);
  std::vector<std::int32_t> const lengths{3};
  std::vector<Index> const positions{0, 0};
  struct Change {
    Index heads = 2, key_slots = 3, value_slots = 3, width = 8, distances = 5, rows = 1;
  };
  auto const forward = [&](Change const& c) {
    memory::Stream<HostSpace> const stream(pool);
    auto const layout = kernel::SequenceLayout<HostSpace>::padded(3, view(lengths, 1), view(positions, 1));
    auto keys = layout;
    keys.slots = c.key_slots == 2 ? 3 : c.key_slots;
    keys.rows = c.rows;
    Kernel::forward<float>(stream,
                           {.query = view(x, 3, 8),
                            .key = view(x, c.key_slots, c.width),
                            .value = view(x, c.value_slots, c.width),
                            .queries = layout,
                            .keys = keys,
                            .heads = c.heads,
                            .scale = 1,
                            .bias = view(x, 2, c.distances)},
                           view(x, 3, 8), view(x, 3, 8), view(memory, 100'000));
  };
  CHECK_NOTHROW(forward({}));
  CHECK_THROWS_WITH_AS(forward({.heads = 3}), doctest::Contains("3 heads do not divide a width of 8"), ShapeError);
  CHECK_THROWS_WITH_AS(forward({.heads = 0}), doctest::Contains("0 heads do not divide a width of 8"), ShapeError);
  CHECK_THROWS_WITH_AS(forward({.value_slots = 2}), doctest::Contains("value [2, 8]"), ShapeError);
  CHECK_THROWS_WITH_AS(forward({.width = 4}), doctest::Contains("key [3, 4]"), ShapeError);
  CHECK_THROWS_WITH_AS(forward({.key_slots = 2, .value_slots = 2}), doctest::Contains("3 and 3 slots"), ShapeError);
  CHECK_THROWS_WITH_AS(forward({.rows = 2}), doctest::Contains("1 query sequences and 2 key sequences"), ShapeError);
  CHECK_THROWS_WITH_AS(forward({.distances = 4}), doctest::Contains("bias is [2, 4]"), ShapeError);
}

TEST_CASE_TEMPLATE("attention: heads that share keys equal heads with equal keys", T, float, double) {
  Index const heads = 6, head_width = 8;
  for (Index heads_per_key_head : {2, 3, 6})
    for (auto write : {Write::overwrite, Write::add})
      for (bool causal : {false, true}) {
        Batch<T> each({.rows = 5,
                       .queries = 33,
                       .keys = 33,
                       .heads = heads,
                       .head_width = head_width,
                       .dropout = 0.2,
                       .causal = causal,
                       .biased = true,
                       .ragged = causal});
        auto const key_heads = heads / heads_per_key_head, narrow = key_heads * head_width, width = each.width();
        auto shared = each;
        shared.heads_per_key_head = heads_per_key_head;
        for (auto* of : {&shared.key, &shared.value}) of->clear();
        for (Index slot = 0; slot < each.keys.slots(); ++slot)
          for (Index c = 0; c < width; ++c) {
            auto const head = c / head_width, leader = head / heads_per_key_head * heads_per_key_head;
            auto const to = static_cast<std::size_t>(slot * width + c),
                       from = static_cast<std::size_t>(slot * width + leader * head_width + c % head_width);
            each.key[to] = each.key[from], each.value[to] = each.value[from];
            if (head != leader) continue;
            shared.key.push_back(each.key[to]), shared.value.push_back(each.value[to]);
          }
        auto const expected = run(each, 1, write, T{1}), got = run(shared, 1, write, T{1}),
                   again = run(shared, 3, write, T{1});
        CHECK(got.out == expected.out);
        CHECK(got.dquery == expected.dquery);
        CHECK(got.dbias == expected.dbias);
        CHECK(again.dkey == got.dkey);
        CHECK(again.dvalue == got.dvalue);
        double off = 0;
        for (auto const& [sum, parts] : {std::pair(&got.dkey, &expected.dkey), {&got.dvalue, &expected.dvalue}})
          for (Index i = 0; i < std::ssize(*sum); ++i) {
            double exact =
                write == Write::add ? 1 - static_cast<double>(heads_per_key_head) : 0;  // each part began at 1
            for (Index s = 0; s < heads_per_key_head; ++s)
              exact += static_cast<double>((*parts)[static_cast<std::size_t>(
                  i / narrow * width + (i % narrow / head_width * heads_per_key_head + s) * head_width +
                  i % head_width)]);
            off = lockstep_test::larger_error(
                off, std::abs(static_cast<double>((*sum)[static_cast<std::size_t>(i)]) - exact));
          }
        // Sums of up to 33 numbers below 8 in another order, with as many roundings for each head.
        CHECK(off <= 8 * 33 * static_cast<double>(heads_per_key_head) *
                         static_cast<double>(std::numeric_limits<T>::epsilon()));
      }
}
