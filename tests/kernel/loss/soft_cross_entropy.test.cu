// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/loss/soft_cross_entropy.cuh>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernel/device_layout.hpp"
#include "kernel/values.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;
using lockstep_test::TwinLayout;
using lockstep_test::values;
using lockstep_test::view;

namespace soft_cross_entropy_on_cuda {

TEST_CASE_TEMPLATE("cross entropy of shares on CUDA equals the host's within rounding", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::SoftCrossEntropy<CudaSpace>")) return;
  memory::CudaStream const stream;
  ThreadPool pool(1);
  for (auto const& lengths : {std::vector<std::int32_t>{}, {1}, {5, 0, 1, 3}})
    for (auto kind : {TwinLayout::Kind::padded, TwinLayout::Kind::ragged})
      for (Index classes : {1, 2, 33, 513})
        for (bool weighted : {false, true})
          for (auto write : {Write::overwrite, Write::add}) {
            CAPTURE(classes);
            TwinLayout const twin(kind, lengths);
            auto const slots = twin.slots(), all = slots * classes;
            auto const logits = values<T>(all, 3, 5);
            auto shares = values<float>(all, 4);
            for (auto& share : shares) share = std::abs(share);
            std::vector<float> factors, class_weights;
            for (Index c = 0; weighted && c < classes; ++c) class_weights.push_back(static_cast<float>(c % 3) / 2);
            kernel::CrossEntropyOptions const options{
                .class_weights = class_weights, .label_smoothing = weighted ? 0.25 : 0, .factor = 0.5};
            for (Index r = 0; weighted && r < slots; ++r) factors.push_back(static_cast<float>(r % 4) - 1);
            std::vector<double> losses(static_cast<std::size_t>(slots), -1), weights(losses);
            std::vector<T> gradient(logits.size(), T{2});
            OnDevice<T> const x(logits), dx(gradient);
            OnDevice<float> const q(shares), by(factors);
            OnDevice<double> const device_losses(losses), device_weights(weights);
            kernel::SoftCrossEntropy<HostSpace>::forward_backward<T, float>(
                memory::Stream<HostSpace>(pool), twin.host(), options, view(logits, slots, classes), view(shares, all),
                view(losses, slots), view(weights, slots), view(gradient, slots, classes), write,
                view(factors, std::ssize(factors)));
            kernel::SoftCrossEntropy<CudaSpace>::forward_backward<T, float>(
                stream.view(), twin.device(), options, x.view(slots, classes), q.view(all), device_losses.view(slots),
                device_weights.view(slots), dx.view(slots, classes), write,
                weighted ? by.view(slots) : TensorView<float, 1, CudaSpace>{});
            CHECK(device_weights.values() == weights);
            // Sums of as many terms as there are classes, of shares up to 1 and differences up to 10, by a factor of 1.
            double const unit = static_cast<double>(std::numeric_limits<T>::epsilon());
            double const bound = unit * 40 * static_cast<double>(classes + 16);
            auto const near = [&](auto const& a, auto const& b) {
              for (std::size_t i = 0; i < a.size(); ++i)
                if (!(std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])) <= bound)) return false;
              return a.size() == b.size();
            };
            CHECK(near(device_losses.values(), losses));
            CHECK(near(dx.values(), gradient));
          }
}

}  // namespace soft_cross_entropy_on_cuda
