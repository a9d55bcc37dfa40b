// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <memory>
#include <utility>

#include <lockstep/data/dataset.hpp>

namespace lockstep_test {

/// A dataset that makes readers, which count what is read by them.
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
  };
  explicit ReadByWorkers(D of) : dataset(std::move(of)) {}
  lockstep::Index size() const { return dataset.size(); }
  decltype(auto) get(lockstep::Index i) const { return dataset.get(i); }
  Worker worker() const { return {dataset, read}; }
};

}  // namespace lockstep_test
