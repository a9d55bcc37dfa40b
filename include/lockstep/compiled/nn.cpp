// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/attention/attention.ipp>
#include <lockstep/nn/autograd/parameter_layout.ipp>
#include <lockstep/nn/embedding/fused_embedding.ipp>
#include <lockstep/nn/module/gradient_check.ipp>
#include <lockstep/nn/module/initialize.ipp>
