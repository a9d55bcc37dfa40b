// SPDX-License-Identifier: Apache-2.0
#include <lockstep/comm/detail/check.ipp>
#include <lockstep/comm/detail/descriptor.ipp>
#include <lockstep/comm/detail/operation_sizes.ipp>
#include <lockstep/comm/detail/peer_watch.ipp>
#include <lockstep/comm/detail/tree_reduce.ipp>
#include <lockstep/comm/engine/connect.ipp>
#include <lockstep/comm/shared_memory/detail/rank_block.ipp>
#include <lockstep/comm/shared_memory/detail/rank_waiter.ipp>
#include <lockstep/comm/shared_memory/detail/shared_memory_rank.ipp>
#include <lockstep/comm/shared_memory/detail/transfer.ipp>
#include <lockstep/comm/store/detail/store_rank.ipp>
