// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <memory>
#include <utility>

#include <lockstep/data/dataset.hpp>
#include <lockstep/data/detail/forwarding.hpp>

namespace lockstep_test {

/// A dataset that makes readers and counts their reads.
template <lockstep::data::Dataset D>
struct ReadByWorkers {
  D dataset;
  std::shared_ptr<std::atomic<int>> read = std::make_shared<std::atomic<int>>(0);

  struct Worker {
    D dataset;
    std::shared_ptr<std::atomic<int>> read;
    decltype(auto) get(lockstep::Index i) {
      ++*read;
      return dataset.get(i);
    }
    auto extent(lockstep::Index i) requires lockstep::data::detail::ReadsInPlace<D> { return dataset.extent(i); }
    template <class Row>
    void read_into(lockstep::Index i, Row row) requires lockstep::data::detail::ReadsInPlace<D> {
      ++*read;
      dataset.read_into(i, row);
    }
  };
  explicit ReadByWorkers(D of) : dataset(std::move(of)) {}
  lockstep::Index size() const { return dataset.size(); }
  decltype(auto) get(lockstep::Index i) const { return dataset.get(i); }
  auto extent(lockstep::Index i) const requires lockstep::data::detail::ReadsInPlace<D> { return dataset.extent(i); }
  template <class Row>
  void read_into(lockstep::Index i, Row row) const requires lockstep::data::detail::ReadsInPlace<D> {
    dataset.read_into(i, row);
  }
  Worker worker() const { return {dataset, read}; }
};

}  // namespace lockstep_test
