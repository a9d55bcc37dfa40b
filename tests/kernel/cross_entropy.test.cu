// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/cross_entropy.cuh>

#include <doctest/doctest.h>

#include <lockstep/memory/cuda_graph.cuh>

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>

#include "kernel/device_layout.hpp"
#include "kernel/values.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;
using lockstep_test::TwinLayout;
using lockstep_test::values;
using lockstep_test::view;

namespace cross_entropy_on_cuda {
namespace {

template <class T>
struct Result {
  std::vector<double> losses, weights;
  std::vector<T> gradient;
  bool operator==(Result const&) const = default;
};

template <class T>
struct Batch {
  TwinLayout const& twin;
  Index classes;
  kernel::CrossEntropyOptions options;
  Index slots = twin.slots();
  std::vector<T> logits = values<T>(slots * classes, 3, 5);
  std::vector<std::int32_t> labels = [this] {
    std::vector<std::int32_t> out;
    for (Index r = 0; r < slots; ++r) out.push_back(static_cast<std::int32_t>(7 * r % classes));
    return out;
  }();
  std::vector<float> factors{};

  [[nodiscard]] Result<T> start() const {
    std::vector<double> const rows(static_cast<std::size_t>(slots), -1);
    return {rows, rows, std::vector<T>(logits.size(), T{2})};
  }
  [[nodiscard]] Result<T> on_host(Write write) const {
    ThreadPool pool(1);
    auto out = start();
    kernel::CrossEntropy<HostSpace>::forward_backward<T>(
        memory::Stream<HostSpace>(pool), twin.host(), options, view(logits, slots, classes), view(labels, slots),
        view(out.losses, slots), view(out.weights, slots), view(out.gradient, slots, classes), write,
        view(factors, std::ssize(factors)));
    return out;
  }
  [[nodiscard]] Result<T> on_device(memory::CudaStream const& stream, Write write, bool with_gradient = true) const {
    auto const out = start();
    OnDevice<T> const x(logits), gradient(out.gradient);
    OnDevice<std::int32_t> const y(labels);
    OnDevice<float> const by(factors);
    OnDevice<double> const losses(out.losses), weights(out.weights);
    kernel::CrossEntropy<CudaSpace>::forward_backward<T>(
        stream.view(), twin.device(), options, x.view(slots, classes), y.view(slots), losses.view(slots),
        weights.view(slots), with_gradient ? gradient.view(slots, classes) : TensorView<T, 2, CudaSpace>{}, write,
        factors.empty() ? TensorView<float, 1, CudaSpace>{} : by.view(slots));
    return {losses.values(), weights.values(), gradient.values()};
  }
};

/// Logits lie in [-5, 5]. A rounded x - max moves an exponential by at most 10 halves of a unit, the exponential itself
/// by 3, and a thread's sum rounds once per 32nd or 256th class, the tree's 8 times, the host's in double as often: the
/// logarithm of the total is off by `roundings` halves, z by 10, probabilities by as much relatively, and what is added
/// to 2 by a unit of 4.
template <class T>
void check(Batch<T> const& batch, Result<T> const& got, Result<double> const& exact) {
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

TEST_CASE_TEMPLATE("cross entropy on CUDA is the host's, but for roundings", T, float, double) {
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
            Batch<T> const batch{twin, classes, options};
            auto const got = batch.on_device(stream, write);
            check(batch, got, Batch<double>{twin, classes, options}.on_host(write));
          }
      }
}

TEST_CASE_TEMPLATE("cross entropy on CUDA: rows have factors of their own", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::CrossEntropy<CudaSpace>")) return;
  memory::CudaStream const stream;
  TwinLayout const twin(TwinLayout::Kind::ragged, {5, 0, 1, 3});
  for (Index classes : {3, 513}) {
    Batch<T> batch{twin, classes, kernel::CrossEntropyOptions{.label_smoothing = 0.25, .ignored = 0}};
    Batch<double> exact{twin, classes, batch.options};
    for (Index r = 0; r < batch.slots; ++r) batch.factors.push_back(static_cast<float>(r % 4) - 1);
    exact.factors = batch.factors;
    for (auto write : {Write::overwrite, Write::add}) {
      auto const got = batch.on_device(stream, write);
      batch.options.factor = 2;  // the largest factor there is, for the bound
      check(batch, got, exact.on_host(write));
      batch.options.factor = 1;
    }
  }
}

TEST_CASE("cross entropy on CUDA: without a gradient, in place, and the same bits again") {
  if (!lockstep_test::has_gpu("kernel::CrossEntropy<CudaSpace>")) return;
  memory::CudaStream const stream;
  TwinLayout const twin(TwinLayout::Kind::padded, {4, 2});
  for (Index classes : {5, 700}) {
    Batch<float> const batch{twin, classes, {}};
    auto const result = batch.on_device(stream, Write::overwrite);
    CHECK(batch.on_device(stream, Write::overwrite) == result);
    auto const forward = batch.on_device(stream, Write::overwrite, false);
    CHECK(forward.losses == result.losses);
    CHECK(forward.gradient == batch.start().gradient);
    OnDevice<float> const x(batch.logits);
    OnDevice<std::int32_t> const y(batch.labels);
    OnDevice<double> const losses(result.losses), weights(result.losses);
    kernel::CrossEntropy<CudaSpace>::forward_backward<float>(stream.view(), twin.device(), {}, x.view(8, classes),
                                                             y.view(8), losses.view(8), weights.view(8),
                                                             x.view(8, classes), Write::overwrite);
    CHECK(x.values() == result.gradient);
  }
}

TEST_CASE("cross entropy on CUDA: a label outside the classes makes its own row nan") {
  if (!lockstep_test::has_gpu("kernel::CrossEntropy<CudaSpace>")) return;
  memory::CudaStream const stream;
  TwinLayout const twin(TwinLayout::Kind::ragged, {3});
  Batch<float> batch{twin, 4, {}};
  batch.labels = {1, 4, -1};
  auto const got = batch.on_device(stream, Write::overwrite);
  for (std::size_t row = 0; row < 3; ++row) {
    CHECK(std::isnan(got.losses[row]) == (row > 0));
    CHECK(std::isnan(got.gradient[row * 4]) == (row > 0));
  }
}

#if defined(LOCKSTEP_CUDA_EMULATION)

TEST_CASE("class weights come to the device while another thread records a stream of it") {
  std::vector<float> const weights{1, 2};
  memory::CudaStream const recorded, other;
  memory::CudaGraph const graph(recorded.view(), [&] {
    std::thread([&] {
      CHECK_NOTHROW(static_cast<void>(other.view().kept<kernel::detail::DeviceWeights>().of(weights)));
    }).join();
  });
  CHECK(graph);
}

#endif

}  // namespace cross_entropy_on_cuda
