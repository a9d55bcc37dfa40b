// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

#include <lockstep/core/thread_pool.hpp>
#include <lockstep/kernel/loss/cross_entropy.hpp>

#include "kernel/values.hpp"
#include "kernel/view.hpp"

namespace lockstep_test {

/// Rows of logits with a label each, and their losses and gradients on the host.
template <class T>
struct CrossEntropyCase {
  using Layout = lockstep::kernel::SequenceLayout<lockstep::HostSpace>;
  lockstep::Index rows, classes;
  std::vector<T> logits;
  lockstep::kernel::CrossEntropyOptions options;
  Layout layout;
  std::vector<std::int32_t> labels{};
  std::vector<float> factors{};  // factors of rows; empty: each is 1

  CrossEntropyCase(Layout const& of_rows, lockstep::Index class_count, float scale,
                   lockstep::kernel::CrossEntropyOptions const& with = {})
      : rows(of_rows.slots),
        classes(class_count),
        logits(values<T>(rows * classes, 3, scale)),
        options(with),
        layout(of_rows) {
    for (lockstep::Index r = 0; r < rows; ++r) labels.push_back(static_cast<std::int32_t>(7 * r % classes));
  }
  CrossEntropyCase(lockstep::Index row_count, lockstep::Index class_count, float scale,
                   lockstep::kernel::CrossEntropyOptions const& with = {})
      : CrossEntropyCase(Layout::vectors(row_count), class_count, scale, with) {}

  struct Results {
    std::vector<double> losses, weights;
    std::vector<T> gradient;
    bool operator==(Results const&) const = default;
  };
  [[nodiscard]] Results before() const {
    std::vector<double> const of_rows(static_cast<std::size_t>(rows), -1);
    return {of_rows, of_rows, std::vector<T>(logits.size(), T{2})};
  }
  [[nodiscard]] Results on_host(int threads, lockstep::Write write = lockstep::Write::overwrite) const {
    auto out = before();
    on_host(out, threads, view(out.gradient, rows, classes), write);
    return out;
  }
  void on_host(Results& out, int threads, lockstep::TensorView<T, 2, lockstep::HostSpace> gradient,
               lockstep::Write write) const {
    lockstep::ThreadPool pool(threads);
    lockstep::kernel::CrossEntropy<lockstep::HostSpace>::forward_backward<T>(
        lockstep::memory::Stream<lockstep::HostSpace>(pool), layout, options, view(logits, rows, classes),
        view(labels, rows), view(out.losses, rows), view(out.weights, rows), gradient, write,
        view(factors, std::ssize(factors)));
  }
};

}  // namespace lockstep_test
