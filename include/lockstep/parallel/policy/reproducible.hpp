// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <bit>
#include <string>
#include <type_traits>

#include <lockstep/core/error.hpp>
#include <lockstep/parallel/detail/space_of.hpp>
#include <lockstep/parallel/policy.hpp>
#include <lockstep/parallel/wire_format.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel {

/// Returns why `shards` shards cannot be distributed over `devices` ranks or devices, with the nearest number that
/// fits. Returns an empty string if they can.
[[nodiscard]] std::string shard_count_error(int shards, int devices);

/// Deprecated: use shard_count_error().
[[nodiscard, deprecated("parallel::shard_count_error")]] inline std::string why_not_dealt(int shards, int devices) {
  return shard_count_error(shards, devices);
}

/// A policy whose results do not depend on the number of ranks or devices: they are bit-identical to one device per
/// shard. Every micro-step has `all` shards with one batch each, so the batch size counts the samples of a shard. A
/// rank or device computes an equal part of the shards in turns. Sums over shards use the same tree as sums over ranks
/// and devices:
///   Trainer trainer(model, optimizer, parallel::Reproducible{parallel::DataParallel{.devices = 2}, 8});
/// A device needs log2(its shards) more arenas of gradients. With accumulation it needs one more for each shard.
/// @determinism bitwise, for any policy, host engine and number of ranks or devices that divides `all`; on GPUs, for
/// one kind of GPU
template <class Policy>
struct Reproducible : Policy {
  static_assert(
      !requires(Policy const& policy) {
        requires !detail::SpaceOf<std::remove_cvref_t<decltype(policy.communicator)>>::type::host_accessible;
      },
      "Lockstep: NCCL chooses the order of additions, so that bits depend on the number of ranks: give Reproducible a "
      "policy over a communicator of the host, as comm::connect(world) makes it");

  int all = 0;  ///< shards of a micro-step, a power of two; 0: one per rank or device, as without Reproducible

  /// Returns the shards of each device.   @throws ConfigError if devices cannot have equally many, or for a wire format
  /// that rounds
  [[nodiscard]] int shards_each() const {
    if (all == 0) return 1;
    if constexpr (requires(Policy const& policy) { policy.gradient_wire; })
      if (this->gradient_wire != WireFormat::float32)
        throw ConfigError(std::string("Reproducible: gradient_wire ") + parallel::name(this->gradient_wire) +
                          ": each rank rounds its sum over shards, so that bits depend on the number of "
                          "ranks; leave out either");
    auto const device_count = Policy::all_shards();
    if (auto const why = shard_count_error(all, device_count); !why.empty())
      throw ConfigError("Reproducible: " + std::to_string(all) + " shards: " + why);
    return device_count < 1 ? 1 : all / device_count;
  }
  [[nodiscard]] int shards() const { return Policy::shards() * shards_each(); }            ///< of this process
  [[nodiscard]] int first_shard() const { return Policy::first_shard() * shards_each(); }  ///< of this process
  /// `all`, or one per rank or device
  [[nodiscard]] int all_shards() const { return Policy::all_shards() * shards_each(); }
  /// Returns the policy's place, with shards_each() shards.
  [[nodiscard]] Place place(int device) const {
    auto place = Policy::place(device);
    place.shards = shards_each();
    return place;
  }
};
/// Takes the type of the policy from the first argument.
template <class Policy>
Reproducible(Policy) -> Reproducible<Policy>;
/// Takes the type of the policy from the first argument.
template <class Policy>
Reproducible(Policy, int) -> Reproducible<Policy>;

}}}  // namespace lockstep::parallel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/parallel/policy/reproducible.ipp>
#endif
