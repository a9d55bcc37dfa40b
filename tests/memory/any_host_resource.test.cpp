// SPDX-License-Identifier: Apache-2.0
#include <lockstep/memory/any_host_resource.hpp>
#include <lockstep/memory/scratch.hpp>

#include <doctest/doctest.h>

using namespace lockstep;

namespace {

/// Its blocks' sizes show that it was called.
struct Padding {
  int bytes = 0;
  [[nodiscard]] memory::Block allocate(std::size_t wanted) const {
    return memory::HostResource{}.allocate(wanted + static_cast<std::size_t>(bytes));
  }
};

}  // namespace

TEST_CASE("any resource of host memory is accepted; the default is ordinary memory") {
  CHECK(memory::AnyHostResource().allocate(100).bytes() == 100);
  CHECK(memory::AnyHostResource(Padding{7}).allocate(100).bytes() == 107);
  CHECK(memory::AnyHostResource(Padding{7}).allocate(0).bytes() == 7);
}

TEST_CASE("resources are equal if type and state are") {
  memory::AnyHostResource const any;
  CHECK(any == memory::AnyHostResource(memory::HostResource{}));
  CHECK(memory::AnyHostResource(Padding{7}) == memory::AnyHostResource(Padding{7}));
  CHECK(memory::AnyHostResource(Padding{7}) != memory::AnyHostResource(Padding{8}));
  CHECK(memory::AnyHostResource(Padding{}) != any);
}

TEST_CASE("a scratch arena gets its chunks from it") {
  memory::Scratch<memory::AnyHostResource> scratch(memory::AnyHostResource(Padding{64}));
  static_cast<void>(scratch.take(1));
  CHECK(scratch.capacity_bytes() == (std::size_t{1} << 20) + 64);
}
