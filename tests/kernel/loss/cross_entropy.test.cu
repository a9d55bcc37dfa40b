// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/loss/cross_entropy.cuh>

#include <doctest/doctest.h>

#include <lockstep/memory/cuda_graph.cuh>

#include <cmath>
#include <iterator>
#include <limits>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "cross_entropy_case.hpp"
#include "kernel/device_layout.hpp"

using namespace lockstep;
using lockstep_test::CrossEntropyCase;
using lockstep_test::OnDevice;
using lockstep_test::TwinLayout;
using lockstep_test::values;

namespace cross_entropy_on_cuda {
namespace {

template <class T>
using Results = typename CrossEntropyCase<T>::Results;

template <class T>
Results<T> on_device(memory::CudaStream const& stream, TwinLayout const& twin, CrossEntropyCase<T> const& c,
                     Write write, bool with_gradient = true) {
  auto const out = c.before();
  OnDevice<T> const x(c.logits), gradient(out.gradient);
  OnDevice<std::int32_t> const y(c.labels);
  OnDevice<float> const by(c.factors);
  OnDevice<double> const losses(out.losses), weights(out.weights);
  kernel::CrossEntropy<CudaSpace>::forward_backward<T>(
      stream.view(), twin.device(), c.options, x.view(c.rows, c.classes), y.view(c.rows), losses.view(c.rows),
      weights.view(c.rows), with_gradient ? gradient.view(c.rows, c.classes) : TensorView<T, 2, CudaSpace>{}, write,
      c.factors.empty() ? TensorView<float, 1, CudaSpace>{} : by.view(c.rows));
  return {losses.values(), weights.values(), gradient.values()};
}

/// Logits are in [-5, 5]. A rounded x - max changes an exponential by at most 10 halves of a unit, and the exponential
/// itself by 3. A thread's sum rounds once per 32nd or 256th class, the tree's 8 times, the host's in double as often.
/// So the logarithm of the total has an error of `roundings` halves, z of 10, probabilities of as much relatively, and
/// a term added to 2 of a unit of 4.
template <class T>
void check(CrossEntropyCase<T> const& batch, Results<T> const& got, Results<double> const& exact) {
  double const unit = static_cast<double>(std::numeric_limits<T>::epsilon());
  double const roundings = 10 + 3 + 16 + 8 + 10 + static_cast<double>(batch.classes) / 32;
  bool losses = true, gradient = true;
  for (std::size_t i = 0; i < exact.losses.size(); ++i)
    losses = losses && std::abs(got.losses[i] - exact.losses[i]) <= unit * roundings * 2 * batch.options.factor * 4;
  for (std::size_t i = 0; i < exact.gradient.size(); ++i)
    gradient = gradient && std::abs(static_cast<double>(got.gradient[i]) - exact.gradient[i]) <=
                               unit * (roundings * 4 + 4) * batch.options.factor;
  CHECK(losses);
  CHECK(gradient);
  CHECK(got.weights == exact.weights);
}

}  // namespace

TEST_CASE_TEMPLATE("cross entropy on CUDA equals the host's within rounding", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::CrossEntropy<CudaSpace>")) return;
  memory::CudaStream const stream;
  for (auto const& lengths : {std::vector<std::int32_t>{}, {1}, {5, 0, 1, 3}})
    for (auto kind : {TwinLayout::Kind::padded, TwinLayout::Kind::ragged})
      for (Index classes : {1, 2, 33, 513}) {
        TwinLayout const twin(kind, lengths);
        auto const weights = values<float>(classes, 8);
        std::vector<float> class_weights;
        for (auto w : weights) class_weights.push_back(w * w);
        for (auto const& options :
             {kernel::CrossEntropyOptions{}, kernel::CrossEntropyOptions{.class_weights = class_weights},
              kernel::CrossEntropyOptions{.label_smoothing = 0.25, .ignored = 0},
              kernel::CrossEntropyOptions{class_weights, 0.5, 7, 0.5}})
          for (auto write : {Write::overwrite, Write::add}) {
            CAPTURE(classes);
            CrossEntropyCase<T> const batch(twin.host(), classes, 5, options);
            auto const got = on_device(stream, twin, batch, write);
            check(batch, got, CrossEntropyCase<double>(twin.host(), classes, 5, options).on_host(1, write));
          }
      }
}

TEST_CASE_TEMPLATE("cross entropy on CUDA: rows have their own factors", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::CrossEntropy<CudaSpace>")) return;
  memory::CudaStream const stream;
  TwinLayout const twin(TwinLayout::Kind::ragged, {5, 0, 1, 3});
  for (Index classes : {3, 513, 9001}) {
    CrossEntropyCase<T> batch(twin.host(), classes, 5, {.label_smoothing = 0.25, .ignored = 0});
    CrossEntropyCase<double> exact(twin.host(), classes, 5, batch.options);
    for (Index r = 0; r < batch.rows; ++r) batch.factors.push_back(static_cast<float>(r % 4) - 1);
    exact.factors = batch.factors;
    for (auto write : {Write::overwrite, Write::add}) {
      auto const got = on_device(stream, twin, batch, write);
      batch.options.factor = 2;  // the largest factor, for the bound
      check(batch, got, exact.on_host(1, write));
      batch.options.factor = 1;
    }
  }
}

TEST_CASE("cross entropy on CUDA: without a gradient, in place, and with equal bits on repetition") {
  if (!lockstep_test::has_gpu("kernel::CrossEntropy<CudaSpace>")) return;
  memory::CudaStream const stream;
  TwinLayout const twin(TwinLayout::Kind::padded, {4, 2});
  for (Index classes : {5, 700, 9001}) {
    CrossEntropyCase<float> const batch(twin.host(), classes, 5);
    auto const result = on_device(stream, twin, batch, Write::overwrite);
    CHECK(on_device(stream, twin, batch, Write::overwrite) == result);
    auto const forward = on_device(stream, twin, batch, Write::overwrite, false);
    CHECK(forward.losses == result.losses);
    CHECK(forward.gradient == batch.before().gradient);
    OnDevice<float> const x(batch.logits);
    OnDevice<std::int32_t> const y(batch.labels);
    OnDevice<double> const losses(result.losses), weights(result.losses);
    kernel::CrossEntropy<CudaSpace>::forward_backward<float>(stream.view(), twin.device(), {}, x.view(8, classes),
                                                             y.view(8), losses.view(8), weights.view(8),
                                                             x.view(8, classes), Write::overwrite);
    CHECK(x.values() == result.gradient);
  }
}

/// Returns the losses and the gradient for logits and a gradient that begin `offset` elements after aligned addresses.
template <class T>
std::pair<std::vector<double>, std::vector<T>> at_offset(memory::CudaStream const& stream,
                                                         CrossEntropyCase<T> const& batch, Index offset) {
  std::vector<T> shifted(static_cast<std::size_t>(offset));
  shifted.insert(shifted.end(), batch.logits.begin(), batch.logits.end());
  OnDevice<T> const x(shifted), gradient(shifted);
  OnDevice<std::int32_t> const y(batch.labels);
  OnDevice<double> const losses(batch.before().losses), weights(batch.before().weights);
  Extents<2> const extent{batch.rows, batch.classes};
  kernel::CrossEntropy<CudaSpace>::forward_backward<T>(
      stream.view(), kernel::SequenceLayout<CudaSpace>::vectors(batch.rows), batch.options,
      {x.view(std::ssize(shifted)).data + offset, extent}, y.view(batch.rows), losses.view(batch.rows),
      weights.view(batch.rows), {gradient.view(std::ssize(shifted)).data + offset, extent}, Write::overwrite);
  auto const all = gradient.values();
  return {losses.values(), std::vector<T>(all.begin() + offset, all.end())};
}

TEST_CASE_TEMPLATE("cross entropy on CUDA: rows that a warp or a block holds, at any address", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::CrossEntropy<CudaSpace>")) return;
  memory::CudaStream const stream;
  for (Index classes : {100, 1000, 1024, 1026, 1032, 8192, 8196}) {
    CAPTURE(classes);
    kernel::CrossEntropyOptions const options{.label_smoothing = 0.25};
    CrossEntropyCase<T> const batch(2, classes, 5, options);
    CrossEntropyCase<double> const exact(2, classes, 5, options);
    auto const aligned = at_offset(stream, batch, 0);
    check(batch, {aligned.first, exact.on_host(1).weights, aligned.second}, exact.on_host(1));
    CHECK(at_offset(stream, batch, 1) == aligned);
  }
}

/// As `check`, but the product with log2(e) also rounds, by |x - max| <= 10 halves, and the gradient is rounded by at
/// most 2^-8 or 2^-11 of itself.
TEST_CASE_TEMPLATE("cross entropy on CUDA in 16 bits computes in float", T, bfloat16, float16) {
  if (!lockstep_test::has_gpu("kernel::CrossEntropy<CudaSpace>")) return;
  memory::CudaStream const stream;
  for (Index classes : {5, 1000, 1030, 9001}) {
    CAPTURE(classes);
    CrossEntropyCase<T> const batch(3, classes, 5);
    CrossEntropyCase<double> exact(3, classes, 5);
    for (std::size_t i = 0; i < exact.logits.size(); ++i)
      exact.logits[i] = static_cast<double>(static_cast<float>(batch.logits[i]));
    auto const expected = exact.on_host(1);
    auto const [losses, gradient] = at_offset(stream, batch, 0);
    double const roundings = 10 + 10 + 4 + 16 + 8 + 10 + static_cast<double>(classes) / 32;
    double const unit = std::ldexp(1.0, -23), of_itself = std::ldexp(1.0, std::is_same_v<T, bfloat16> ? -8 : -11);
    bool close = true;
    for (std::size_t row = 0; row < losses.size(); ++row)
      close = close && std::abs(losses[row] - expected.losses[row]) <= unit * roundings * 8;
    CHECK(close);
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      auto const got = static_cast<double>(static_cast<float>(gradient[i])), wanted = expected.gradient[i];
      close = close && std::abs(got - wanted) <= unit * (roundings * 4 + 4) + of_itself * std::abs(wanted);
    }
    CHECK(close);
  }
}

TEST_CASE("cross entropy on CUDA: infinite logits exclude classes, and NaN makes only its row NaN") {
  if (!lockstep_test::has_gpu("kernel::CrossEntropy<CudaSpace>")) return;
  memory::CudaStream const stream;
  for (Index classes : {6, 1024, 1500}) {
    CAPTURE(classes);
    CrossEntropyCase<float> batch(3, classes, 5);
    auto const of_row = static_cast<std::size_t>(classes);
    batch.logits[1] = -std::numeric_limits<float>::infinity();
    batch.logits[of_row + 4] = std::numeric_limits<float>::quiet_NaN();
    auto const [losses, gradient] = at_offset(stream, batch, 0);
    CHECK(std::isfinite(losses[0]));
    CHECK(gradient[1] == 0);
    CHECK(std::isnan(losses[1]));
    CHECK(std::isnan(gradient[of_row]));
    CHECK(std::isfinite(losses[2]));
    CHECK(std::isfinite(gradient[2 * of_row]));
  }
}

TEST_CASE("cross entropy on CUDA: a label outside the classes makes only its row NaN") {
  if (!lockstep_test::has_gpu("kernel::CrossEntropy<CudaSpace>")) return;
  memory::CudaStream const stream;
  TwinLayout const twin(TwinLayout::Kind::ragged, {3});
  CrossEntropyCase<float> batch(twin.host(), 4, 5);
  batch.labels = {1, 4, -1};
  auto const got = on_device(stream, twin, batch, Write::overwrite);
  for (std::size_t row = 0; row < 3; ++row) {
    CHECK(std::isnan(got.losses[row]) == (row > 0));
    CHECK(std::isnan(got.gradient[row * 4]) == (row > 0));
  }
}

#if defined(LOCKSTEP_CUDA_EMULATION)

TEST_CASE("class weights are copied to the device while another thread captures a stream of it") {
  std::vector<float> const weights{1, 2};
  memory::CudaStream const recorded, other;
  memory::CudaGraph const graph(recorded.view(), [&] {
    std::thread([&] {
      CHECK_NOTHROW(static_cast<void>(other.view().persistent<kernel::detail::DeviceWeights>().of(weights)));
    }).join();
  });
  CHECK(graph);
}

#endif

}  // namespace cross_entropy_on_cuda
