// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/optimizer/layerwise_step.icuh>
#include <lockstep/kernel/optimizer/optimizer_step.icuh>
#include <lockstep/kernel/optimizer/orthogonalize.icuh>
#include <lockstep/optim/adagrad.hpp>
#include <lockstep/optim/adam.hpp>
#include <lockstep/optim/adamw.hpp>
#include <lockstep/optim/lamb.hpp>
#include <lockstep/optim/muon.hpp>
#include <lockstep/optim/nadam.hpp>
#include <lockstep/optim/rmsprop.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/parallel/detail/step_scalars.icuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace optim {

namespace detail {
template LOCKSTEP_ADAM_STEP(Decay::coupled, float, CudaSpace);
template LOCKSTEP_ADAM_STEP(Decay::decoupled, float, CudaSpace);
}  // namespace detail
template LOCKSTEP_ADAGRAD_STEP(float, CudaSpace);
template LOCKSTEP_LAMB_STEP(float, CudaSpace);
template LOCKSTEP_MUON_STEP(float, CudaSpace);
template LOCKSTEP_NADAM_STEP(float, CudaSpace);
template LOCKSTEP_RMSPROP_STEP(float, CudaSpace);
template LOCKSTEP_SGD_STEP(float, CudaSpace);

}}}  // namespace lockstep::optim
