// SPDX-License-Identifier: Apache-2.0
#include <lockstep/optim/adagrad.hpp>
#include <lockstep/optim/adam.hpp>
#include <lockstep/optim/adamw.hpp>
#include <lockstep/optim/detail/expect_setting.ipp>
#include <lockstep/optim/detail/parameter_rule.ipp>
#include <lockstep/optim/lamb.hpp>
#include <lockstep/optim/loss_scaler.ipp>
#include <lockstep/optim/muon.hpp>
#include <lockstep/optim/muon.ipp>
#include <lockstep/optim/nadam.hpp>
#include <lockstep/optim/rmsprop.hpp>
#include <lockstep/optim/sgd.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace optim {

namespace detail {
template LOCKSTEP_ADAM_STEP(Decay::coupled, float, HostSpace);
template LOCKSTEP_ADAM_STEP(Decay::decoupled, float, HostSpace);
template LOCKSTEP_ADAM_STEP(Decay::coupled, double, HostSpace);
template LOCKSTEP_ADAM_STEP(Decay::decoupled, double, HostSpace);
}  // namespace detail
template LOCKSTEP_ADAGRAD_STEP(float, HostSpace);
template LOCKSTEP_ADAGRAD_STEP(double, HostSpace);
template LOCKSTEP_LAMB_STEP(float, HostSpace);
template LOCKSTEP_LAMB_STEP(double, HostSpace);
template LOCKSTEP_MUON_STEP(float, HostSpace);
template LOCKSTEP_MUON_STEP(double, HostSpace);
template LOCKSTEP_NADAM_STEP(float, HostSpace);
template LOCKSTEP_NADAM_STEP(double, HostSpace);
template LOCKSTEP_RMSPROP_STEP(float, HostSpace);
template LOCKSTEP_RMSPROP_STEP(double, HostSpace);
template LOCKSTEP_SGD_STEP(float, HostSpace);
template LOCKSTEP_SGD_STEP(double, HostSpace);

}}}  // namespace lockstep::optim
