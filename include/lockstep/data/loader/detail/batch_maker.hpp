// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <span>
#include <string>
#include <utility>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/core/out_of_memory.hpp>
#include <lockstep/data/detail/read_sample.hpp>
#include <lockstep/data/loader/data_loader_options.hpp>
#include <lockstep/data/loader/detail/loader_checks.hpp>
#include <lockstep/data/loader/detail/loader_job.hpp>
#include <lockstep/data/loader/detail/loader_slot.hpp>
#include <lockstep/data/sampler/sampler.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// The work that workers do without holding the loader's mutex: reads samples, collates them, and handles failed
/// samples.
template <class Source, class OrderType, class CollateType>
struct BatchMaker {
  using Job = LoaderJob;
  using Slot = LoaderSlot<Source, CollateType>;
  using Shard = LoaderShard<Source, CollateType>;
  using Worker = LoaderWorker<Source>;

  Source dataset;
  OrderType order;
  CollateType collate;
  std::uint64_t seed;
  OnFailure on_failure;  ///< since the last start

  /// Does a job. Returns false if it stopped early because `generation` differs from `was`.
  bool run(Job& job, Worker& worker, std::atomic<std::uint64_t> const& generation, std::uint64_t was) const {
    auto& shard = static_cast<Shard&>(*job.shard);
    auto& batch = static_cast<Slot&>(*job.slot).batches[job.slot->place(shard)];
    auto const phase = job.phase;
    auto const end = job.end;
    auto row = job.begin;
    try {
      if (phase == Phase::plan || phase == Phase::finish) {
        row = -1;
        phase == Phase::plan ? shard.plan(collate, job.slot->epoch, batch) : shard.finish(collate, batch);
        return true;
      }
      if (phase == Phase::read && shard.restarts == 0) choose_samples(job);
      if (Shard::is_in_memory && row < end) record_current_sample(worker, shard, row);
      for (; row < end; ++row) {
        if (generation.load(std::memory_order_relaxed) != was) return false;
        if constexpr (!Shard::is_in_memory) record_current_sample(worker, shard, row);
        try {
          if (phase == Phase::read) {
            if (read(job, row, worker)) continue;
            job.failed.push_back(row);
            ++job.missing;
          } else {
            shard.write(worker.reader, collate, batch, row);
          }
        } catch (std::bad_alloc const&) {
          throw;  // not the sample's fault
        } catch (OutOfMemoryError const&) {
          throw;
        } catch (...) {
          if (on_failure == OnFailure::raise) {
            job.failure.merge({std::current_exception(), row, !sequential || phase == Phase::read});
            if (sequential && phase == Phase::read) continue;  // other threads' samples follow
            return true;
          }
          if (!can_handle_failure(job)) throw;
          job.failures.push_back(failure_of(shard, row, std::current_exception()));
          job.failed.push_back(row);
        }
      }
    } catch (...) {
      job.failure = {std::current_exception(), row};
    }
    return true;
  }
  /// Removes the failed rows of a batch, or replaces their samples. Returns the number of samples that were removed, or
  /// replaced for the first time. An exception of the order becomes the batch's failure.
  [[gnu::cold]] Index handle_failed_rows(Job& job) const {
    auto& shard = static_cast<Shard&>(*job.shard);
    auto const count = static_cast<Index>(shard.failed.size()) - shard.missing;
    if (sequential || on_failure == OnFailure::skip) {
      shard.remove_failed();
      if (job.phase == Phase::read) {
        shard.advance();  // the batch is planned for the remaining rows
        return count;
      }
      shard.restart();
      return count;
    }
    auto const before = job.substituted;
    auto row = shard.failed.begin();
    try {
      for (; row != shard.failed.end(); ++row) substitute(job, *row, max_substitutes);
      shard.restart();
    } catch (...) {
      shard.failure = {std::current_exception(), *row};
      shard.advance();
    }
    return job.substituted - before;
  }

 private:
  static constexpr bool sequential = SequentialAccess<Source>;
  static constexpr int max_substitutes = 16;  // attempts for one sample

  /// Records the sample that the worker is processing, for messages of a waiting thread.
  static void record_current_sample(Worker& worker, ShardProgress const& shard, Index row) noexcept {
    worker.index.store(shard.indices[static_cast<std::size_t>(row)], std::memory_order_relaxed);
    worker.position.store(shard.positions[static_cast<std::size_t>(row)], std::memory_order_relaxed);
  }
  /// Whether a failed row is handled after the phase. Samples that cannot be read are substituted in `read` already.
  [[nodiscard]] bool can_handle_failure(Job const& job) const noexcept {
    if (sequential && job.phase != Phase::read) return false;  // a stream's sample cannot be read again
    return on_failure == OnFailure::skip ||
           (on_failure == OnFailure::substitute && job.phase == Phase::write && job.shard->restarts < max_substitutes);
  }
  [[nodiscard]] SampleFailure failure_of(ShardProgress const& shard, Index row, std::exception_ptr const& error) const {
    auto const index = shard.indices[static_cast<std::size_t>(row)];
    return {index, name_of(dataset, index) + ": " + message_of(error)};
  }

  /// Chooses the samples of the job's rows.
  void choose_samples(Job& job) const {
    auto& shard = *job.shard;
    auto const begin = static_cast<std::size_t>(job.begin), end = static_cast<std::size_t>(job.end);
    auto const size = static_cast<Index>(order.size());
    auto index_at = order.in(job.slot->epoch);
    auto const first = shard.planned.first, stride = shard.planned.stride;
    auto* const positions = shard.positions.data();
    auto* const chosen = shard.indices.data();
    for (auto k = begin; k < end; ++k) {
      auto const position = first + static_cast<Index>(k) * stride;
      positions[k] = position;
      chosen[k] = position < size ? position : position % size;
    }
    std::span<Index> const indices(shard.indices.data() + begin, end - begin);
    if constexpr (requires { index_at.replace(indices); }) {
      index_at.replace(indices);
    } else {
      for (auto& each : indices) each = index_at(each);
    }
    if constexpr (!sequential)
      for (std::size_t k = 0; k < indices.size(); ++k) check_index(indices[k], job.slot->epoch, positions[begin + k]);
  }
  /// @throws DataError if the order returns an index that the dataset does not have
  void check_index(Index index, Index epoch, Index position) const {
    if constexpr (checks(Contract::cheap))
      if (index < 0 || index >= static_cast<Index>(dataset.size()))
        refuse_index(index, epoch, position, static_cast<Index>(dataset.size()));
  }

  bool read(Job& job, Index row, Worker& worker) const {
    auto const k = static_cast<std::size_t>(row);
    auto& shard = static_cast<Shard&>(*job.shard);
    SampleKey const key{seed, job.slot->epoch, shard.positions[k]};
    for (int attempt = 0;; ++attempt) {
      try {
        if (!shard.read(worker.reader, row, key)) return false;
        auto const& extent = shard.extents[k];
        if constexpr (requires { collate.check(extent.lengths); })
          collate.check(extent.lengths);
        else if constexpr (requires { collate.check(extent); })  // if it depends on the members' types
          collate.check(extent);
        return true;
      } catch (std::bad_alloc const&) {
        throw;
      } catch (OutOfMemoryError const&) {
        throw;
      } catch (...) {
        if (on_failure != OnFailure::substitute || attempt == max_substitutes) throw;
        job.failures.push_back(failure_of(shard, row, std::current_exception()));
      }
      substitute(job, row, attempt);
    }
  }
  /// Replaces a row's sample by another one, chosen by epoch and position. For a BatchOrder, chooses from the row's
  /// batch, because the sampler has limited the cost of that batch.
  void substitute(Job& job, Index row, int attempt) const {
    auto const k = static_cast<std::size_t>(row);
    auto const random = mix(mix("lockstep.data.substitute"), static_cast<std::uint64_t>(job.slot->epoch),
                            static_cast<std::uint64_t>(job.shard->positions[k]),
                            static_cast<std::uint64_t>(Index{job.shard->restarts} * (max_substitutes + 1) + attempt));
    auto const random_below = [random](Index bound) {
      return static_cast<Index>(random % static_cast<std::uint64_t>(bound));
    };
    auto const epoch = job.slot->epoch;
    auto position = random_below(order.size());
    if constexpr (BatchOrder<OrderType>) {
      auto const batch = job.shard->positions[k] / order.max_rows() % order.batches();  // Tail::pad repeats batches
      if (auto const rows = order.rows(epoch, batch); rows > 1)
        position = batch * order.max_rows() + random_below(rows);
    }
    auto const index = order.in(epoch)(position);
    if (index >= 0 && index < dataset.size()) job.shard->indices[k] = index;
    if (std::exchange(job.shard->replaced[k], std::uint8_t{1}) == 0) ++job.substituted;
  }
};

}}}  // namespace lockstep::data::detail
