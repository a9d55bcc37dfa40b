// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/start_thread.hpp>

#include <doctest/doctest.h>
#include <pthread.h>

#include <string>

#include <lockstep/core/thread_pool.hpp>

#include "message_on_stack.hpp"
#include "no_threads.hpp"

using namespace lockstep;

TEST_CASE("a started thread runs") {
  int ran = 0;
  start_thread("Loader", "worker 1 of 2", [&] { ++ran; }).join();
  CHECK(ran == 1);
}

TEST_CASE("a failed thread start is an error with the requester, the number of threads and a remedy") {
  std::string message;
  {
    lockstep_test::NoThreads const refused;
    try {
      start_thread("Loader", "worker 1 of 2", [] {}).join();
    } catch (ConfigError const& error) {
      message = error.what();
    }
  }
  CAPTURE(message);
  CHECK(message.starts_with("Loader: the system refused worker 1 of 2 ("));
  CHECK(message.find("; this process has ") != std::string::npos);
  CHECK(message.find("; ask for fewer, or raise the limit of threads (ulimit -u") != std::string::npos);
}

namespace {

/// Sets the stack size of new threads while it lives.
class DefaultStack {
 public:
  explicit DefaultStack(std::size_t bytes) {
    REQUIRE(pthread_getattr_default_np(&before_) == 0);
    pthread_attr_t attributes;
    REQUIRE(pthread_attr_init(&attributes) == 0);
    REQUIRE(pthread_attr_setstacksize(&attributes, bytes) == 0);
    REQUIRE(pthread_setattr_default_np(&attributes) == 0);
    pthread_attr_destroy(&attributes);
  }
  ~DefaultStack() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }

 private:
  pthread_attr_t before_{};
};

}  // namespace

TEST_CASE("a thread with a small stack is refused before it computes") {
  auto const call = [] { expect_stack("fit"); };
  auto const message = lockstep_test::message_on_stack(std::size_t{128} << 10, call);
  CAPTURE(message);
  CHECK(message.starts_with("fit: the calling thread has a stack of 1"));
  CHECK(message.find(" KiB, and computing needs 512 KiB; start the thread with a larger stack") != std::string::npos);
  CHECK(lockstep_test::message_on_stack(std::size_t{512} << 10, call).empty());
  CHECK_NOTHROW(expect_stack("fit"));
}

TEST_CASE("pools do not start threads with a small stack") {
  {
    DefaultStack const small(std::size_t{128} << 10);
    CHECK_THROWS_WITH_AS(ThreadPool(2),
                         "ThreadPool: new threads have a stack of 128 KiB, and computing needs 512 KiB; raise ulimit "
                         "-s before the program starts, or, with musl, link with -Wl,-z,stack-size=8388608",
                         ConfigError);
    CHECK_NOTHROW(ThreadPool(1));
  }
  DefaultStack const enough(std::size_t{512} << 10);
  CHECK_NOTHROW(ThreadPool(2));
}
