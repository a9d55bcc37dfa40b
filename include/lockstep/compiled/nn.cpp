// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/attention/attention.ipp>
#include <lockstep/nn/autograd/parameter.ipp>
#include <lockstep/nn/autograd/parameter_layout.ipp>
#include <lockstep/nn/embedding/fused_embedding.ipp>
#include <lockstep/nn/loss/rowwise_loss.ipp>
#include <lockstep/nn/module/gradient_check.ipp>
#include <lockstep/nn/module/initialize.ipp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

LOCKSTEP_FUSED_EMBEDDING(float, HostSpace);
LOCKSTEP_FUSED_EMBEDDING(double, HostSpace);
LOCKSTEP_FUSED_EMBEDDING(bfloat16, HostSpace);
LOCKSTEP_FUSED_EMBEDDING(float16, HostSpace);

}}}  // namespace lockstep::nn
