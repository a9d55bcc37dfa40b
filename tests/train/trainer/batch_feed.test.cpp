// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/trainer/batch_feed.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <lockstep/memory/space.hpp>

using namespace lockstep;

namespace {

/// The order of events.
using Log = std::vector<std::string>;

/// Batches are their numbers, two devices' at a time. Some fail.
struct Loader {
  using Batch = int;
  struct Held {
    std::shared_ptr<Log> log;
    std::unique_ptr<int[]> numbers;
    Held(std::shared_ptr<Log> to, int step) : log(std::move(to)), numbers(new int[2]{2 * step, 2 * step + 1}) {}
    Held(Held&&) noexcept = default;
    Held& operator=(Held&&) noexcept = default;
    ~Held() {
      if (numbers) log->push_back("back " + std::to_string(numbers[0] / 2));
    }
    [[nodiscard]] std::span<int const> batches() const noexcept { return {numbers.get(), 2}; }
  };
  std::shared_ptr<Log> log = std::make_shared<Log>();
  int failing = -1;
  int step = 0;

  Held next() {
    auto const at = step++;
    log->push_back("take " + std::to_string(at));
    if (at == failing) throw std::runtime_error("sample of " + std::to_string(at));
    return {log, at};
  }
};

struct DeviceSpace {
  static constexpr bool host_accessible = false;
};

template <class Space_>
struct Session {
  struct DeviceReplica {
    using Space = Space_;
    std::shared_ptr<Log> log;
    int each = 1;
    [[nodiscard]] int shards() const { return each; }
    void prefetch(int batch) const { log->push_back("send " + std::to_string(batch)); }
    void cancel_prefetch() const { log->push_back("forget"); }
  };
  DeviceReplica replica;
  template <class F>
  void for_each_shard(F&& f) {
    for (int device = 0; device < 2; ++device) f(device, replica);
  }
};

/// Two of three micro-steps, then the rest.
template <class Space>
Log log_of(int steps, int failing = -1, int shards = 1) {
  Loader loader{.failing = failing};
  Session<Space> session{{loader.log, shards}};
  {
    train::BatchFeed feed(loader, session, 3);
    for (int step = 0; step < steps; ++step) {
      try {
        auto const batches = feed.next();
        CHECK(batches[1] == 2 * step + 1);
      } catch (std::runtime_error const& error) {
        loader.log->push_back(error.what());
        continue;
      }
      loader.log->push_back("compute " + std::to_string(step));
      feed.send_next();
    }
    loader.log->push_back("end");
  }
  return *loader.log;
}

}  // namespace

TEST_CASE("for a device, batches are taken and copied one ahead, and released after their arrival; none is left over") {
  CHECK(log_of<DeviceSpace>(3) == Log{"take 0", "compute 0", "back 0", "take 1", "send 2", "send 3", "compute 1",
                                      "back 1", "take 2", "send 4", "send 5", "compute 2", "back 2", "end"});
}

TEST_CASE("the first shard's batch of a device is copied ahead") {
  CHECK(log_of<DeviceSpace>(2, -1, 2) == Log{"take 0", "compute 0", "back 0", "take 1", "send 2", "compute 1", "back 1",
                                             "take 2", "send 4", "end", "forget", "forget", "back 2"});
}

TEST_CASE("an unused copy is dropped before its batch is released") {
  CHECK(log_of<DeviceSpace>(1) ==
        Log{"take 0", "compute 0", "back 0", "take 1", "send 2", "send 3", "end", "forget", "forget", "back 1"});
}

TEST_CASE("a batch that cannot be made is reported at its request, and the next one arrives") {
  CHECK(log_of<DeviceSpace>(3, 1) ==
        Log{"take 0", "compute 0", "back 0", "take 1", "sample of 1", "take 2", "compute 2", "back 2", "end"});
  CHECK(log_of<DeviceSpace>(1, 0) == Log{"take 0", "sample of 0", "end"});
}

TEST_CASE("on the host no batch is taken ahead") {
  CHECK(log_of<HostSpace>(2) == Log{"take 0", "compute 0", "back 0", "take 1", "compute 1", "back 1", "end"});
}
