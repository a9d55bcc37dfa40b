// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <limits>
#include <vector>

#include <lockstep/core/thread_pool.hpp>
#include <lockstep/kernel/normalization/layer_norm.hpp>

#include "kernel/values.hpp"
#include "kernel/view.hpp"

namespace lockstep_test {

/// Rows, optional residuals, and their normalization and its gradients on the host.
template <class T>
struct LayerNormCase {
  static constexpr double epsilon = 1e-5;
  lockstep::Index rows, width;
  std::vector<T> x = values<T>(rows * width, 1), added = values<T>(rows * width, 2), weight = values<T>(width, 3),
                 bias = values<T>(width, 4), dy = values<T>(rows * width, 5);

  struct Results {
    std::vector<T> sum, moments, y, dx, dadded, dweight, dbias, dadded_sums;
    bool operator==(Results const&) const = default;
  };
  /// Overwritten memory contains no earlier results.
  [[nodiscard]] Results before(lockstep::Write write) const {
    auto const start = write == lockstep::Write::add ? T(1) : std::numeric_limits<T>::quiet_NaN();
    std::vector<T> const matrix(x.size(), start), vector(weight.size(), start), sums(weight.size(), T(1));
    return {matrix, std::vector<T>(static_cast<std::size_t>(2 * rows), start), matrix, matrix, matrix, vector, vector,
            sums};
  }
  /// Returns the destination of the sums of dadded's rows, which exist if dadded is overwritten. They are added to.
  template <class View>
  [[nodiscard]] static View sums_of(lockstep::Write write, View sums) {
    return write == lockstep::Write::overwrite ? sums : View{};
  }
  [[nodiscard]] Results on_host(lockstep::Write write, int threads = 1,
                                lockstep::kernel::RowDropout<lockstep::HostSpace> dropout = {}) const {
    using lockstep::Write;
    using Kernel = lockstep::kernel::LayerNorm<lockstep::HostSpace>;
    lockstep::ThreadPool pool(threads);
    lockstep::memory::Stream<lockstep::HostSpace> const stream(pool);
    auto r = before(write);
    auto const shaped = [&](auto& v) { return view(v, rows, width); };
    lockstep::kernel::Residual<T, lockstep::HostSpace> const residual{shaped(added), dropout};
    Kernel::forward<T>(stream, shaped(x), residual, view(weight, width), view(bias, width), static_cast<T>(epsilon),
                       shaped(r.sum), view(r.moments, rows, 2), shaped(r.y));
    std::vector<T> partial(static_cast<std::size_t>(Kernel::partial_elements(rows, width)),
                           std::numeric_limits<T>::quiet_NaN());
    Kernel::backward<T>(stream, shaped(dy), shaped(r.sum), view(r.moments, rows, 2), residual, view(weight, width),
                        shaped(r.dx), write, shaped(r.dadded), write, view(r.dweight, width), write,
                        view(r.dbias, width), write, partial.data(), sums_of(write, view(r.dadded_sums, width)),
                        Write::add);
    return r;
  }
};

}  // namespace lockstep_test
