// SPDX-License-Identifier: Apache-2.0
#include <lockstep/memory/any_host_resource.hpp>
#include <lockstep/memory/scratch.hpp>

#include <doctest/doctest.h>

using namespace lockstep;

namespace {

/// Says in the size of its blocks that it was asked.
struct Padding {
  int bytes = 0;
  [[nodiscard]] memory::Block allocate(std::size_t wanted) const {
    return memory::HostResource{}.allocate(wanted + static_cast<std::size_t>(bytes));
  }
};

}  // namespace

TEST_CASE("any resource of host memory, ordinary memory by default") {
  CHECK(memory::AnyHostResource().allocate(100).bytes() == 100);
  CHECK(memory::AnyHostResource(Padding{7}).allocate(100).bytes() == 107);
  CHECK(memory::AnyHostResource(Padding{7}).allocate(0).bytes() == 7);
}

TEST_CASE("resources are equal when type and state are") {
  memory::AnyHostResource const any;
  CHECK(any == memory::AnyHostResource(memory::HostResource{}));
  CHECK(memory::AnyHostResource(Padding{7}) == memory::AnyHostResource(Padding{7}));
  CHECK(memory::AnyHostResource(Padding{7}) != memory::AnyHostResource(Padding{8}));
  CHECK(memory::AnyHostResource(Padding{}) != any);
}

TEST_CASE("a scratch arena takes its chunks from it") {
  memory::Scratch<memory::AnyHostResource> scratch(memory::AnyHostResource(Padding{64}));
  static_cast<void>(scratch.take(1));
  CHECK(scratch.capacity_bytes() == (std::size_t{1} << 20) + 64);
}
