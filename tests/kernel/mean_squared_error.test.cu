// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/mean_squared_error.cuh>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "kernel/device_layout.hpp"
#include "kernel/values.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;
using lockstep_test::TwinLayout;
using lockstep_test::values;
using lockstep_test::view;

TEST_CASE_TEMPLATE("squared errors on CUDA are the host's, but for the order of sums", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::MeanSquaredError<CudaSpace>")) return;
  ThreadPool pool(1);
  memory::CudaStream const stream;
  for (auto const& lengths : lockstep_test::some_lengths)
    for (auto kind : {TwinLayout::Kind::padded, TwinLayout::Kind::ragged})
      for (Index width : {1, 33, 700})
        for (auto write : {Write::overwrite, Write::add}) {
          TwinLayout const twin(kind, lengths);
          auto const slots = twin.slots();
          auto const chunks = kernel::MeanSquaredError<HostSpace>::chunks(slots, width);
          auto const prediction = values<T>(slots * width, 1), target = values<T>(slots * width, 2);
          auto gradient = values<T>(slots * width, 3);
          std::vector<double> losses(static_cast<std::size_t>(chunks)), weights(losses);
          OnDevice<T> const device_prediction(prediction), device_target(target), device_gradient(gradient);
          OnDevice<double> const device_losses(losses), device_weights(weights);
          kernel::MeanSquaredError<HostSpace>::forward_backward<T, T>(
              memory::Stream<HostSpace>(pool), twin.host(), T(0.5), view(prediction, slots, width),
              view(target, slots, width), view(losses, chunks), view(weights, chunks), view(gradient, slots, width),
              write);
          kernel::MeanSquaredError<CudaSpace>::forward_backward<T, T>(
              stream.view(), twin.device(), T(0.5), device_prediction.view(slots, width),
              device_target.view(slots, width), device_losses.view(chunks), device_weights.view(chunks),
              device_gradient.view(slots, width), write);
          CHECK(device_weights.values() == weights);
          CHECK(device_gradient.values() == gradient);
          auto const got = device_losses.values();
          // Each square is at most 4 and rounds twice; the host adds up at most 256 of them in T, then all in double.
          for (std::size_t i = 0; i < got.size(); ++i)
            CHECK(std::abs(got[i] - losses[i]) <=
                  static_cast<double>(std::numeric_limits<T>::epsilon()) * 130 * (losses[i] + 1));
        }
}
