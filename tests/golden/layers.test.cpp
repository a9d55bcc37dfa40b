// SPDX-License-Identifier: Apache-2.0
#include "golden/layer_cases.hpp"

TEST_CASE_TEMPLATE("outputs and gradients of layers equal PyTorch's", T, double, float, lockstep::bfloat16) {
  golden::OnHost host;
  golden::check_layers<T>(host);
}
