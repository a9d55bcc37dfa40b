// SPDX-License-Identifier: Apache-2.0
#include <lockstep/optim/adam.hpp>
#include <lockstep/optim/adamw.hpp>
#include <lockstep/optim/sgd.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace optim {

namespace detail {
template LOCKSTEP_ADAM_STEP(Decay::coupled, float);
template LOCKSTEP_ADAM_STEP(Decay::decoupled, float);
template LOCKSTEP_ADAM_STEP(Decay::coupled, double);
template LOCKSTEP_ADAM_STEP(Decay::decoupled, double);
}  // namespace detail
template LOCKSTEP_SGD_STEP(float);
template LOCKSTEP_SGD_STEP(double);

}}}  // namespace lockstep::optim
