// SPDX-License-Identifier: Apache-2.0
#include <lockstep/parallel/policy/single_device.hpp>

#include "parallel/session_cases.hpp"

using namespace lockstep;

static_assert(parallel::Session<parallel::SingleDevice::Session<toy::Model, optim::SGD>, parallel::SingleDevice,
                                toy::Model, optim::SGD>);

TEST_CASE("a single device steps by the gradient of the weighted mean") {
  for (int threads : {1, 3}) {
    parallel::SingleDevice policy{.threads = threads};
    toy::Model model;
    auto const layout = nn::ParameterLayout::of(model);
    std::vector<float> const start(static_cast<std::size_t>(layout.size()), session_cases::start_value);
    parallel::SingleDevice::Session<toy::Model, optim::SGD> session(policy, model, layout, start);
    session_cases::check_steps(session, layout, 0, 1, 1);
    CHECK(session.report().peak_bytes_per_device.size() == 1);
    CHECK(session.report().peak_bytes_per_device[0] >= 3 * static_cast<std::size_t>(layout.size()) * sizeof(float));
    CHECK(policy.threads_each() == threads);
  }
}

TEST_CASE("buffers are kept") {
  session_cases::Counting model;
  auto const layout = nn::ParameterLayout::of(model);
  parallel::SingleDevice policy{.threads = 1};
  std::vector<float> const values(static_cast<std::size_t>(layout.size()), session_cases::start_value);
  parallel::SingleDevice::Session<session_cases::Counting, optim::SGD> session(policy, model, layout, values);
  session_cases::check_buffers(session, 0, 1, 1);
}
