// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <doctest/doctest.h>
#include <pthread.h>

#include <cstddef>
#include <functional>
#include <string>
#include <utility>

#include <lockstep/core/error.hpp>

namespace lockstep_test {

/// Calls the function on a thread with a stack of this size. Returns the message of its ConfigError, or "".
inline std::string message_on_stack(std::size_t bytes, std::function<void()> call) {
  struct Run {
    std::function<void()> call;
    std::string message;
  } run{std::move(call), {}};
  pthread_attr_t attributes;
  REQUIRE(pthread_attr_init(&attributes) == 0);
  REQUIRE(pthread_attr_setstacksize(&attributes, bytes) == 0);
  pthread_t thread;
  auto const body = [](void* argument) -> void* {
    auto& own = *static_cast<Run*>(argument);
    try {
      own.call();
    } catch (lockstep::ConfigError const& error) {
      own.message = error.what();
    }
    return nullptr;
  };
  REQUIRE(pthread_create(&thread, &attributes, body, &run) == 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  return run.message;
}

}  // namespace lockstep_test
