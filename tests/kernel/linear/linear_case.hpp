// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <limits>
#include <vector>

#include <lockstep/core/thread_pool.hpp>
#include <lockstep/kernel/linear/linear.hpp>

#include "kernel/values.hpp"
#include "kernel/view.hpp"

namespace lockstep_test {

/// Rows, a layer, and its outputs and gradients on the host.
template <class T>
struct LinearCase {
  lockstep::Index rows, inputs, outputs;
  std::vector<T> x = values<T>(rows * inputs, 1), weight = values<T>(outputs * inputs, 2), bias = values<T>(outputs, 3),
                 dy = values<T>(rows * outputs, 4), factor = values<T>(rows * inputs, 5);

  struct Results {
    std::vector<T> y, dx, dweight, dbias;
    bool operator==(Results const&) const = default;
  };
  /// Overwritten memory contains no earlier results.
  [[nodiscard]] Results before(lockstep::Write write) const {
    auto const filled = [start = write == lockstep::Write::add ? T(1) : std::numeric_limits<T>::quiet_NaN()](
                            auto const& like) { return std::vector<T>(like.size(), start); };
    return {filled(dy), filled(x), filled(weight), filled(bias)};
  }
  [[nodiscard]] Results on_host(lockstep::Write write, bool with_factor, int threads = 1) const {
    using lockstep::Write;
    using Kernel = lockstep::kernel::Linear<lockstep::HostSpace>;
    lockstep::ThreadPool pool(threads);
    lockstep::memory::Stream<lockstep::HostSpace> const stream(pool);
    auto r = before(write);
    std::vector<T> partial(static_cast<std::size_t>(Kernel::partial_elements(stream, rows, inputs, outputs)),
                           std::numeric_limits<T>::quiet_NaN());
    auto const in = view(x, rows, inputs), by = view(weight, outputs, inputs);
    Kernel::forward<T>(stream, in, by, view(bias, outputs), view(r.y, rows, outputs));
    Kernel::backward<T>(stream, view(dy, rows, outputs), in, by,
                        {with_factor ? view(factor, rows, inputs) : decltype(in){}}, view(r.dx, rows, inputs),
                        with_factor ? Write::overwrite : write, view(r.dweight, outputs, inputs), write,
                        view(r.dbias, outputs), write, partial.data());
    return r;
  }
  /// Returns dx of a backward that computes no gradient of parameters.
  [[nodiscard]] std::vector<T> input_gradient_on_host(lockstep::Write write, int threads) const {
    using lockstep::Write;
    lockstep::ThreadPool pool(threads);
    auto dx = before(write).dx;
    lockstep::kernel::Linear<lockstep::HostSpace>::backward<T>(
        lockstep::memory::Stream<lockstep::HostSpace>(pool), view(dy, rows, outputs), view(x, rows, inputs),
        view(weight, outputs, inputs), {}, view(dx, rows, inputs), write, {nullptr, {outputs, inputs}},
        Write::overwrite, {}, Write::overwrite, nullptr);
    return dx;
  }
};

}  // namespace lockstep_test
