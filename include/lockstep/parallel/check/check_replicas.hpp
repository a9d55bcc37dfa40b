// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <string>
#include <vector>

#include <lockstep/core/checksum.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/parallel/detail/byte_collectives.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel {

/// Arenas of the layout that must be equal on all replicas: the parameters' values, then other state of the learned
/// parameters, for example the optimizer's moments.
using ReplicaArenas = std::vector<float const*>;

namespace detail {

/// Returns a 128-bit checksum for each parameter in each arena, without padding; zeros for state of a frozen one.
[[nodiscard]] std::vector<Checksum> checksums(nn::ParameterLayout const& layout, ReplicaArenas const& arenas);
/// Returns the checksum of checksums.
[[nodiscard]] Checksum checksum_of(std::vector<Checksum> const& checksums);
[[nodiscard]] bool all_equal(std::vector<Checksum> const& checksums) noexcept;

/// Throws an error for unequal replicas.
/// @param all concatenated checksums of every replica
/// @param place name of a replica, for the error
/// @param why possible cause, for the error
/// @throws CollectiveMismatch unless all checksums equal the first replica's
void expect_equal_checksums(nn::ParameterLayout const& layout, std::span<Checksum const> all, std::size_t replicas,
                            std::string const& place, std::string const& why, Index step);

}  // namespace detail

/// Compares the bits of all ranks' parameters, and of the other `arenas`, by 128-bit hashes.
/// @param step named in the error
/// @shape the first of arenas [layout.size()], the others at least [layout.learned_size()], equally many on all ranks
/// @collective
/// @throws CollectiveMismatch on all ranks if replicas differ, with the first parameter that differs and the ranks that
/// differ from rank 0
template <class Communicator>
void check_replicas(Communicator& communicator, nn::ParameterLayout const& layout, ReplicaArenas const& arenas,
                    Index step) {
  auto const ranks = static_cast<std::size_t>(communicator.size());
  if (ranks == 1) return;
  auto const mine = detail::checksums(layout, arenas);
  auto const whole = detail::checksum_of(mine);
  std::vector<Checksum> all(ranks);
  detail::all_gather_bytes(communicator, &whole, all.data(), sizeof whole);
  if (detail::all_equal(all)) return;
  all.resize(ranks * mine.size());
  detail::all_gather_bytes(communicator, mine.data(), all.data(), mine.size() * sizeof(Checksum));
  detail::expect_equal_checksums(layout, {all.data(), all.size()}, ranks, "rank",
                                 "a rank changed its parameters on its own or took a step with other options", step);
}

}}}  // namespace lockstep::parallel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/parallel/check/check_replicas.ipp>
#endif
