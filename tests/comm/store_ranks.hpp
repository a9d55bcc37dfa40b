// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <exception>
#include <memory>
#include <thread>
#include <vector>

#include <lockstep/launch/store/store.hpp>
#include <lockstep/launch/store/store_server.hpp>
#include <lockstep/launch/world.hpp>

namespace lockstep_test {

/// Runs `body(world)` on threads that act as ranks on hosts of their own: they share only a store's port.
template <class Body>
std::vector<std::exception_ptr> run_store_ranks(int n, Body const& body, lockstep::launch::WaitLimits limits = {}) {
  lockstep::launch::StoreServer const server({.job = 7, .size = n});
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(n));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < n; ++rank)
    threads.emplace_back([&, rank] {
      try {
        lockstep::launch::World world;
        world.rank = rank;
        world.size = n;
        world.engine = lockstep::launch::Engine::store;
        world.limits = limits;
        world.segment = lockstep::launch::SharedSegment::between_threads(n, 7);
        world.store = std::make_shared<lockstep::launch::Store>(
            lockstep::launch::Store::Options{.port = server.port(), .job = 7, .rank = rank, .size = n});
        body(world);
      } catch (...) {
        errors[static_cast<std::size_t>(rank)] = std::current_exception();
      }
    });
  for (auto& thread : threads) thread.join();
  return errors;
}

}  // namespace lockstep_test
