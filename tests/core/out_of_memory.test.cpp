// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/out_of_memory.hpp>

#include <doctest/doctest.h>

#include <new>
#include <string>
#include <type_traits>

#include "sanitized.hpp"

using namespace lockstep;

TEST_CASE("memory that the system refuses is an error with who, how much and the remedy") {
  auto const refused = [](auto const& f) {
    try {
      with_memory_for("shard.mds", std::uint64_t{3} << 40, f);
    } catch (OutOfMemoryError const& error) {
      static_assert(std::is_base_of_v<DataError, OutOfMemoryError>);
      return std::string(error.what());
    }
    return std::string();
  };
  auto const too_much = refused([] { throw std::bad_alloc(); });
  CHECK(too_much.starts_with("shard.mds: out of memory: it needs at least 3072.0 GiB"));
  CHECK(too_much.find("use a smaller file or a part of it, or raise the limit") != std::string::npos);
  // A sanitizer ends the program instead. If the memory were unused, the compiler might leave the request out.
#if !LOCKSTEP_SANITIZED
  void* volatile memory = nullptr;
  CHECK(refused([&] { memory = ::operator new (std::size_t{1} << 62); }).starts_with("shard.mds: out of memory"));
#endif
  CHECK(refused([] { static_cast<void>(std::string(std::string().max_size() + 1, 'x')); }).starts_with("shard.mds"));
}

TEST_CASE("results and other errors pass unchanged") {
  CHECK(with_memory_for("file", 1, [] { return 7; }) == 7);
  CHECK_THROWS_WITH_AS(with_memory_for("file", 1, [] { throw DataError("damaged"); }), "damaged", DataError);
}
