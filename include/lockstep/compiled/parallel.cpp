// SPDX-License-Identifier: Apache-2.0
#include <lockstep/parallel/agreement.ipp>
#include <lockstep/parallel/check/check_memory.ipp>
#include <lockstep/parallel/check/check_replicas.ipp>
#include <lockstep/parallel/detail/block_squares.ipp>
#include <lockstep/parallel/detail/device.ipp>
#include <lockstep/parallel/detail/replica_groups.ipp>
#include <lockstep/parallel/device_threads.ipp>
#include <lockstep/parallel/gradients/gradient_buckets.ipp>
#include <lockstep/parallel/gradients/row_exchange.ipp>
#include <lockstep/parallel/policy.ipp>
#include <lockstep/parallel/policy/detail/common_agreement.ipp>
#include <lockstep/parallel/policy/detail/ready_times.ipp>
#include <lockstep/parallel/policy/reproducible.ipp>
#include <lockstep/parallel/session.ipp>
