// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include <lockstep/kernel/embedding/touched_rows.hpp>
#include <lockstep/nn/autograd/parameter_gradients.hpp>
#include <lockstep/parallel/gradients/gradient_buckets.hpp>
#include <lockstep/parallel/policy.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

/// Records when parts of the gradients become ready, for sessions without a communicator. The report shows how well
/// several ranks could overlap their sums. Only on the host: on a device only the times of queueing would be known.
class ReadyTimes {
 public:
  /// Records the gradients of a replica, which must outlive this object.
  template <class Replica>
  explicit ReadyTimes(Replica const& replica)
      : ReadyTimes({replica.gradient_data(), static_cast<std::size_t>(replica.size())}, replica.touched(),
                   Replica::Space::host_accessible) {}

  /// Runs forward and backward of the replica's shards.
  template <class Replica, class Batch>
  void run(Replica& replica, std::span<Batch const> batches, MicroStep const& step) {
    bool const records = on_host_ && step.last;
    if (records) buckets_.begin_step();
    replica.run_shards(batches, step, {}, records ? sink() : nn::ReadySink{});
    if (records) end_step();
  }

  /// Returns the times of the last step; empty before it.
  [[nodiscard]] std::vector<BucketTimes> times() const;

 private:
  ReadyTimes(std::span<float> gradients, std::span<kernel::TouchedRows const> tables, bool on_host);
  [[nodiscard]] nn::ReadySink sink() noexcept;
  void end_step();

  GradientBuckets buckets_;
  std::span<kernel::TouchedRows const> tables_;
  bool on_host_;
  double ended_ = 0;
};

}}}  // namespace lockstep::parallel::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/parallel/policy/detail/ready_times.ipp>
#endif
