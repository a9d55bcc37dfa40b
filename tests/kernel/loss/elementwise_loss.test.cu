// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/loss/elementwise_loss.cuh>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "kernel/device_layout.hpp"
#include "kernel/values.hpp"
#include "larger_error.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;
using lockstep_test::TwinLayout;
using lockstep_test::values;
using lockstep_test::view;

namespace {

/// The rule's losses and gradients on both; `exact` if slopes have the host's bits, and nothing is contracted.
template <class T, class Rule>
void check_losses(Rule rule, bool exact, std::vector<Index> const& widths = {1, 33}) {
  double const unit = static_cast<double>(std::numeric_limits<T>::epsilon());
  ThreadPool pool(1);
  memory::CudaStream const stream;
  for (auto const& lengths : lockstep_test::some_lengths)
    for (auto kind : {TwinLayout::Kind::padded, TwinLayout::Kind::ragged})
      for (Index width : widths)
        for (auto write : {Write::overwrite, Write::add}) {
          TwinLayout const twin(kind, lengths);
          auto const slots = twin.slots();
          auto const chunks = kernel::ElementwiseLoss<HostSpace>::chunks(slots, width);
          auto const prediction = values<T>(slots * width, 1);
          auto target = values<T>(slots * width, 2), gradient = values<T>(slots * width, 3);
          for (auto& t : target) t = std::abs(t);
          std::vector<double> losses(static_cast<std::size_t>(chunks)), weights(losses);
          OnDevice<T> const device_prediction(prediction), device_target(target), device_gradient(gradient);
          OnDevice<double> const device_losses(losses), device_weights(weights);
          auto const factors = values<float>(slots, 4);
          OnDevice<float> const device_factors(factors);
          bool const weighted = kind == TwinLayout::Kind::ragged;
          std::vector<std::uint8_t> bytes;
          for (Index i = 0; i < slots; ++i) bytes.push_back(i % 3 != 1);
          OnDevice<std::uint8_t> const device_bytes(bytes);
          TensorView<bool const, 1, HostSpace> present;
          TensorView<bool const, 1, CudaSpace> device_present;
          if (weighted) {
            present = {reinterpret_cast<bool const*>(bytes.data()), {slots}};
            device_present = {reinterpret_cast<bool const*>(device_bytes.view(slots).data), {slots}};
          }
          kernel::ElementwiseLoss<HostSpace>::forward_backward<T, T>(
              memory::Stream<HostSpace>(pool), twin.host(), rule, T(0.5), view(prediction, slots, width),
              view(target, slots, width), view(losses, chunks), view(weights, chunks), view(gradient, slots, width),
              write, weighted ? view(factors, slots) : TensorView<float const, 1, HostSpace>{}, present);
          kernel::ElementwiseLoss<CudaSpace>::forward_backward<T, T>(
              stream.view(), twin.device(), rule, T(0.5), device_prediction.view(slots, width),
              device_target.view(slots, width), device_losses.view(chunks), device_weights.view(chunks),
              device_gradient.view(slots, width), write,
              weighted ? TensorView<float const, 1, CudaSpace>(device_factors.view(slots))
                       : TensorView<float const, 1, CudaSpace>{},
              device_present);
          CHECK(device_weights.values() == weights);
          auto const slopes = device_gradient.values();
          // Terms of at most 3, each of which rounds up to 8 times.
          double worst = 0;
          for (std::size_t i = 0; i < slopes.size(); ++i)
            worst = lockstep_test::larger_error(
                worst, std::abs(static_cast<double>(slopes[i]) - static_cast<double>(gradient[i])));
          CHECK(worst <= (exact ? 0 : 24 * unit));
          auto const got = device_losses.values();
          // Each value is at most 4 and rounds up to 8 times; the host adds at most 256 of them in T, then all in
          // double.
          for (std::size_t i = 0; i < got.size(); ++i)
            CHECK(std::abs(got[i] - losses[i]) <=
                  unit * 130 * (weighted ? 4096 * 4.0 : losses[i] + 1));  // factors may cancel
        }
}

}  // namespace

TEST_CASE_TEMPLATE("elementwise losses on CUDA equal the host's within rounding", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::ElementwiseLoss<CudaSpace>")) return;
  std::vector<Index> const all_widths{1, 33, 700};  // of rows shorter and longer than a block
  check_losses<T>(kernel::SquaredError{}, true, all_widths);
  check_losses<T>(kernel::AbsoluteError{}, true);
  check_losses<T>(kernel::QuantileLoss{0.9}, true);
  check_losses<T>(kernel::HuberLoss{0.5}, true);
  check_losses<T>(kernel::BinaryCrossEntropy{3}, false, all_widths);
  check_losses<T>(kernel::KlDivergenceOfMean{}, true);
  check_losses<T>(kernel::KlDivergenceOfLogDeviation{}, false);
  check_losses<T>(kernel::ConstantTarget<kernel::SquaredError>{{}, 0.75}, true);
  check_losses<T>(kernel::ConstantTarget<kernel::HuberLoss>{{0.5}, 0.25}, true);
  check_losses<T>(kernel::ConstantTarget<kernel::BinaryCrossEntropy>{{3}, 1}, false);
  std::vector<float> const weights{0.5f, 3, 0, 1, 2}, others{1, 2, 3, 0, 0.25f};
  check_losses<T>(kernel::BinaryCrossEntropyByColumn{weights}, false, {5});
  check_losses<T>(kernel::BinaryCrossEntropyByColumn{others}, false, {5});
}

TEST_CASE("an invalid target makes loss and gradient NaN on CUDA") {
  if (!lockstep_test::has_gpu("kernel::ElementwiseLoss<CudaSpace>")) return;
  memory::CudaStream const stream;
  std::vector<float> const target{1, 1.5f, 0}, zeros(3);
  std::vector<double> const none(1);
  OnDevice<float> const device_target(target), prediction(zeros), gradient(zeros);
  OnDevice<double> const loss(none), weight(none);
  kernel::ElementwiseLoss<CudaSpace>::forward_backward<float, float>(
      stream.view(), kernel::SequenceLayout<CudaSpace>::vectors(3), kernel::BinaryCrossEntropy{}, 1,
      prediction.view(3, 1), device_target.view(3, 1), loss.view(1), weight.view(1), gradient.view(3, 1),
      Write::overwrite);
  auto const slopes = gradient.values();
  CHECK(slopes[0] == -0.5f);
  CHECK(std::isnan(slopes[1]));
  CHECK(slopes[2] == 0.5f);
  CHECK(std::isnan(loss.values()[0]));
}
