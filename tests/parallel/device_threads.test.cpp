// SPDX-License-Identifier: Apache-2.0
#include <lockstep/parallel/device_threads.hpp>

#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

using namespace lockstep;

TEST_CASE("each device runs once per call, always on its own thread, the first on the caller's") {
  for (int devices : {1, 2, 5}) {
    parallel::DeviceThreads threads(devices);
    CHECK(threads.devices() == devices);
    auto const n = static_cast<std::size_t>(devices);
    std::vector<int> calls(n, 0);
    std::vector<std::thread::id> ids(n);
    for (int round = 1; round <= 100; ++round) {
      threads.run([&](int device) {
        auto const at = static_cast<std::size_t>(device);
        if (round > 1) CHECK(ids[at] == std::this_thread::get_id());
        ids[at] = std::this_thread::get_id();
        ++calls[at];
      });
      for (int c : calls) CHECK(c == round);
    }
    CHECK(ids[0] == std::this_thread::get_id());
    for (std::size_t i = 1; i < n; ++i)
      for (std::size_t j = 0; j < i; ++j) CHECK(ids[i] != ids[j]);
  }
}

TEST_CASE("the lowest device's exception is thrown, after all devices have finished") {
  parallel::DeviceThreads threads(3);
  std::vector<int> done(3, 0);
  auto run = [&] {
    threads.run([&](int device) {
      done[static_cast<std::size_t>(device)] = 1;
      if (device > 0) throw std::runtime_error("device " + std::to_string(device));
    });
  };
  CHECK_THROWS_WITH(run(), "device 1");
  CHECK(done == std::vector<int>{1, 1, 1});
  threads.run([&](int device) { done[static_cast<std::size_t>(device)] = 2; });
  CHECK(done == std::vector<int>{2, 2, 2});
}

TEST_CASE("after a fork, they report missing threads, and are destroyed") {
  auto threads = std::make_unique<parallel::DeviceThreads>(4);
  threads->run([](int) {});
  auto const child = ::fork();
  if (child == 0) {
    ::alarm(60);
    bool explained = false;
    try {
      threads->run([](int) {});
    } catch (ConfigError const& error) {
      explained = std::string(error.what()).find("make trainers after the fork") != std::string::npos;
    }
    threads.reset();
    ::_exit(explained ? 0 : 1);
  }
  int status = 1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}
