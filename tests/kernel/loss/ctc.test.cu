// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/loss/ctc.cuh>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ctc_case.hpp"
#include "kernel/device_layout.hpp"
#include "larger_error.hpp"

using namespace lockstep;
using lockstep_test::CtcCase;
using lockstep_test::OnDevice;
using lockstep_test::TwinLayout;
using lockstep_test::values;
using lockstep_test::view;

namespace {

template <class T>
void check(CtcCase<T> const& c, TwinLayout::Kind kind, kernel::ImpossibleAlignment impossible) {
  TwinLayout const tokens(kind, c.tokens), labels(TwinLayout::Kind::ragged, c.counts);
  auto const rows = tokens.rows(), slots = tokens.slots(), count = std::ssize(c.labels);
  auto const logits = c.logits.empty() ? values<T>(slots * c.classes, 1, 3) : c.logits;
  auto const divisor = kind == TwinLayout::Kind::padded ? kernel::CtcDivisor::labels : kernel::CtcDivisor::one;
  kernel::CtcOptions const options{.impossible = impossible, .factor = 0.5, .divisor = divisor};
  auto const elements = kernel::Ctc<HostSpace>::memory_elements(slots, rows, labels.host().length, c.classes);
  ThreadPool pool(1);
  memory::CudaStream const stream;
  for (auto const write : {Write::overwrite, Write::add}) {
    std::vector<double> losses(c.tokens.size(), -1), weights(c.tokens.size(), -1);
    auto gradient = values<T>(slots * c.classes, 2);
    std::vector<T> memory(static_cast<std::size_t>(elements));
    OnDevice<T> const device_logits(logits), device_gradient(gradient), device_memory(memory);
    OnDevice<std::int32_t> const device_labels(c.labels);
    OnDevice<double> const device_losses(losses), device_weights(weights);
    kernel::Ctc<HostSpace>::forward_backward<T, std::int32_t>(
        memory::Stream<HostSpace>(pool), tokens.host(), labels.host(), options, view(logits, slots, c.classes),
        view(c.labels, count), view(losses, rows), view(weights, rows), view(gradient, slots, c.classes), write,
        view(memory, elements));
    kernel::Ctc<CudaSpace>::forward_backward<T, std::int32_t>(
        stream.view(), tokens.device(), labels.device(), options, device_logits.view(slots, c.classes),
        device_labels.view(count), device_losses.view(rows), device_weights.view(rows),
        device_gradient.view(slots, c.classes), write, device_memory.view(elements));
    CHECK(device_weights.values() == weights);
    auto const on_device = device_losses.values();
    auto const epsilon = static_cast<double>(std::numeric_limits<T>::epsilon());
    for (std::size_t r = 0; r < losses.size(); ++r)
      CHECK(std::abs(on_device[r] - losses[r]) <= 300 * 10 * epsilon * std::max(1.0, losses[r]));
    auto const gradients = device_gradient.values();
    double most = 0;
    for (std::size_t i = 0; i < gradients.size(); ++i)
      most = lockstep_test::larger_error(
          most, std::abs(static_cast<double>(gradients[i]) - static_cast<double>(gradient[i])));
    CHECK(most <= 300 * 10 * epsilon);
  }
}

}  // namespace

TEST_CASE_TEMPLATE("CTC on CUDA equals the host's within rounding, padded and ragged", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::Ctc<CudaSpace>")) return;
  for (auto const& each : CtcCase<T>::some())
    for (auto const kind : {TwinLayout::Kind::padded, TwinLayout::Kind::ragged})
      check<T>(each, kind, kernel::ImpossibleAlignment::ignore);
}

TEST_CASE_TEMPLATE("on CUDA logits of minus infinity are never used, as on the host", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::Ctc<CudaSpace>")) return;
  auto const never = -std::numeric_limits<T>::infinity();
  // The first token can only be the first label, or the last token only the last label.
  check<T>({{3}, {3}, {2, 3, 1}, 4, {never, never, 0, never, 0, 1, 0, 2, 1, 0, 0, 0}}, TwinLayout::Kind::ragged,
           kernel::ImpossibleAlignment::ignore);
  check<T>({{3}, {3}, {2, 1, 3}, 4, {0, 1, 0, 0, never, 0, 1, never, never, never, never, 0}}, TwinLayout::Kind::ragged,
           kernel::ImpossibleAlignment::ignore);
}

TEST_CASE("on CUDA a sequence that is too short has an infinite loss, and a label outside the classes a NaN loss") {
  if (!lockstep_test::has_gpu("kernel::Ctc<CudaSpace>")) return;
  TwinLayout const tokens(TwinLayout::Kind::ragged, {2, 2, 2}), labels(TwinLayout::Kind::ragged, {2, 1, 1});
  OnDevice<float> const logits(values<float>(6 * 3, 1)), gradient(std::vector<float>(18, 7)),
      memory(std::vector<float>(static_cast<std::size_t>(kernel::Ctc<CudaSpace>::memory_elements(6, 3, 2, 3))));
  OnDevice<std::int32_t> const of({1, 1, 2, 3});
  OnDevice<double> const losses(std::vector<double>(3)), weights(std::vector<double>(3));
  memory::CudaStream const stream;
  kernel::Ctc<CudaSpace>::forward_backward<float, std::int32_t>(
      stream.view(), tokens.device(), labels.device(), {}, logits.view(6, 3), of.view(4), losses.view(3),
      weights.view(3), gradient.view(6, 3), Write::overwrite, memory.view(memory.values().size()));
  auto const found = losses.values();
  CHECK(std::isinf(found[0]));
  CHECK(std::isfinite(found[1]));
  CHECK(std::isnan(found[2]));
  CHECK(weights.values() == std::vector<double>{1, 1, 1});
}
