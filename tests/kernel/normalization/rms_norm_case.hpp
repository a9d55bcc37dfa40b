// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <limits>
#include <vector>

#include <lockstep/core/thread_pool.hpp>
#include <lockstep/kernel/normalization/rms_norm.hpp>

#include "kernel/values.hpp"
#include "kernel/view.hpp"

namespace lockstep_test {

/// Rows, with added rows if it `joins`, and their normalization and its gradients on the host.
template <class T>
struct RMSNormCase {
  static constexpr float epsilon = 1e-5f;
  lockstep::Index rows, width;
  bool joins;
  std::vector<T> x = values<T>(rows * width, 1), added = values<T>(rows * width, 2), weight = values<T>(width, 3),
                 beside = values<T>(rows * width, 4), dy = values<T>(rows * width, 5);

  struct Results {
    std::vector<T> sum, reciprocals, y, dx, dadded, dweight;
    bool operator==(Results const&) const = default;
  };
  /// Overwritten memory contains no earlier results, except the sum if there is none.
  [[nodiscard]] Results before(lockstep::Write write) const {
    auto const start = write == lockstep::Write::add ? T(1) : std::numeric_limits<T>::quiet_NaN();
    std::vector<T> const matrix(x.size(), start);
    return {joins ? matrix : x,
            std::vector<T>(static_cast<std::size_t>(rows), start),
            matrix,
            matrix,
            matrix,
            std::vector<T>(weight.size(), start)};
  }
  [[nodiscard]] Results on_host(lockstep::Write write, int threads = 1,
                                lockstep::kernel::RowDropout<lockstep::HostSpace> dropout = {}) const {
    using Kernel = lockstep::kernel::RMSNorm<lockstep::HostSpace>;
    lockstep::ThreadPool pool(threads);
    lockstep::memory::Stream<lockstep::HostSpace> const stream(pool);
    auto r = before(write);
    auto const shaped = [&](auto& v) { return view(v, rows, width); };
    auto const joined = [&](auto& v) { return joins ? shaped(v) : decltype(shaped(v)){}; };
    lockstep::kernel::Residual<T, lockstep::HostSpace> residual{};
    if (joins) residual = {shaped(added), dropout};
    Kernel::forward<T>(stream, shaped(x), residual, view(weight, width), T(epsilon), shaped(r.sum),
                       view(r.reciprocals, rows), shaped(r.y));
    std::vector<T> partial(static_cast<std::size_t>(Kernel::partial_elements(rows, width)),
                           std::numeric_limits<T>::quiet_NaN());
    Kernel::backward<T>(stream, shaped(dy), shaped(r.sum), view(r.reciprocals, rows), joined(beside), dropout,
                        view(weight, width), shaped(r.dx), write, joined(r.dadded), write, view(r.dweight, width),
                        write, partial.data());
    return r;
  }
};

}  // namespace lockstep_test
