// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/thread_pool.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/pass.hpp>
#include <lockstep/nn/loss/cross_entropy.hpp>
#include <lockstep/nn/loss/ctc_loss.hpp>
#include <lockstep/nn/loss/mean_squared_error.hpp>

#include "golden/golden.hpp"

using namespace lockstep;
using golden::data;

namespace {

template <class T>
struct Fixture {
  ThreadPool pool{1};
  nn::Context<T, HostSpace> context{memory::Stream<HostSpace>(pool)};
  using Real = Accumulate<T>;

  nn::Variable<T, 2, HostSpace> variable(json::Value const& tensor) {
    nn::Pass(context).begin_micro_batch(nn::Mode::training, 1);
    auto const extent = golden::shape(tensor);
    auto const x = context.template variable<2>({extent[0], extent[1]});
    auto const values = data<Real>(tensor);
    std::transform(values.begin(), values.end(), x.value.data, [](Real v) { return static_cast<T>(v); });
    return x;
  }
  /// Each sum has at most 20 terms of at most 8 (a logit, or the square of a difference of 2), each with a few
  /// roundings of its own; gradients are sums of three terms of at most 4.
  void check(json::Value const& expected, nn::Loss<HostSpace> const& loss, nn::Variable<T, 2, HostSpace> const& x) {
    double const roundings = 40;
    CHECK(std::abs(loss.sum - expected.at("sum").number()) <= roundings * golden::unit<Real> * 20 * 8);
    CHECK(std::abs(loss.mean() - expected.at("mean").number()) <= roundings * golden::unit<Real> * 8);
    if constexpr (std::is_same_v<T, bfloat16>) {
      golden::MeanDifference off;
      off.add(x.slot->data, data<double>(expected.at("gradient")));
      CHECK(off.value() <= golden::of_pytorchs * expected.at("bfloat16").number());
      return;
    }
    CHECK(golden::difference(x.slot->data, data<double>(expected.at("gradient"))) <= roundings * 4);
  }
};

}  // namespace

TEST_CASE_TEMPLATE("losses, their means and gradients equal PyTorch's", T, double, float, bfloat16) {
  auto const file = golden::load("losses");
  int cross_entropies = 0, others = 0;
  for (auto const& expected : file.at("cases").array()) {
    CAPTURE(expected.at("name").string());
    Fixture<T> f;
    if (expected.find("logits")) {
      ++cross_entropies;
      auto const x = f.variable(expected.at("logits"));
      auto const labels = golden::numbers<std::int64_t>(expected.at("labels"));
      auto const weights = golden::numbers<float>(expected.at("class_weights"));
      auto const loss = nn::cross_entropy(
          f.context, x, TensorView<std::int64_t const, 1, HostSpace>(labels.data(), {std::ssize(labels)}),
          {.class_weights = weights,
           .label_smoothing = expected.at("label_smoothing").number(),
           .ignored = expected.at("ignored").integer()});
      f.check(expected, loss, x);
    } else {
      ++others;
      auto const x = f.variable(expected.at("prediction"));
      auto const target = data<typename Fixture<T>::Real>(expected.at("target"));
      auto const loss = nn::mean_squared_error(
          f.context, x, TensorView<typename Fixture<T>::Real const, 2, HostSpace>(target.data(), x.value.extent));
      f.check(expected, loss, x);
    }
  }
  CHECK(cross_entropies == 8);
  CHECK(others == 1);
}

TEST_CASE_TEMPLATE("CTC losses and their gradients equal PyTorch's", T, double, float, bfloat16) {
  auto const file = golden::load("ctc");
  int checked = 0;
  for (auto const& expected : file.at("cases").array()) {
    CAPTURE(expected.at("name").string());
    ++checked;
    Fixture<T> f;
    auto const x = f.variable(expected.at("logits"));
    auto const lengths = golden::numbers<std::int32_t>(expected.at("lengths")),
               counts = golden::numbers<std::int32_t>(expected.at("label_lengths")),
               labels = golden::numbers<std::int32_t>(expected.at("labels"));
    auto const rows = std::ssize(lengths);
    std::vector<Index> const positions(lengths.size());
    std::vector<Index> offsets{0};
    for (auto const count : counts) offsets.push_back(offsets.back() + count);
    nn::Sequence<T, HostSpace> const logits{
        x, nn::SequenceLayout<HostSpace>::padded(expected.at("length").integer(), {lengths.data(), {rows}},
                                                 {positions.data(), {rows}})};
    struct Column {
      TensorView<std::int32_t const, 1, HostSpace> values;
      TensorView<Index const, 1, HostSpace> offsets;
      Index longest;
    };
    Column const column{{labels.data(), {std::ssize(labels)}},
                        {offsets.data(), {rows + 1}},
                        *std::max_element(counts.begin(), counts.end())};
    auto const loss = nn::ctc_loss(f.context, logits, column, {.blank = expected.at("blank").integer()});
    f.check(expected, loss, x);
  }
  CHECK(checked == 2);
}
