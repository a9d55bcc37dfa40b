// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <thread>

#include <lockstep/core/error.hpp>

namespace lockstep_test {

/// Whether the call throws a ConfigError with this text when another thread makes it.
template <class F>
bool refused_elsewhere(F const& call, std::string_view message) {
  bool refused = false;
  std::thread([&] {
    try {
      call();
    } catch (lockstep::ConfigError const& error) {
      refused = std::string_view(error.what()).find(message) != std::string_view::npos;
    }
  }).join();
  return refused;
}

}  // namespace lockstep_test
