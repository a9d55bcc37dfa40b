// SPDX-License-Identifier: Apache-2.0
#include <lockstep/memory/space.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/parallel/policy/detail/device_replicas.hpp>
#include <lockstep/parallel/policy/detail/replica_sum.hpp>
#include <lockstep/parallel/replica/optimizer_state.hpp>
#include <lockstep/parallel/replica/replica.hpp>
#include <lockstep/parallel/session_base.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

template class OptimizerMoments<HostSpace>;
template class ReplicaBase<nn::Context<float, HostSpace>>;
template class DeviceReplicas<ReplicaBase<nn::Context<float, HostSpace>>>;
template class ReplicaSession<ReplicaBase<nn::Context<float, HostSpace>>>;
template class ReplicaSum<ReplicaBase<nn::Context<float, HostSpace>>, HostSpace>;

}}}  // namespace lockstep::parallel::detail

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel {

LOCKSTEP_OPTIMIZER_STATE(template, optim::SGD);
LOCKSTEP_OPTIMIZER_STATE(template, optim::Adam);
LOCKSTEP_OPTIMIZER_STATE(template, optim::AdamW);

}}}  // namespace lockstep::parallel
