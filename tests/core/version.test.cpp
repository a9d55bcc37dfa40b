// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/version.hpp>

#include <doctest/doctest.h>

#include <string>
#include <typeinfo>

namespace lockstep { inline namespace LOCKSTEP_ABI {
struct Tagged {};
}}  // namespace lockstep

TEST_CASE("the text matches the numbers") {
  CHECK(lockstep::version == std::to_string(LOCKSTEP_VERSION_MAJOR) + "." + std::to_string(LOCKSTEP_VERSION_MINOR) +
                                 "." + std::to_string(LOCKSTEP_VERSION_PATCH));
}

TEST_CASE("symbols contain the version and the libraries, so that two builds never mix") {
  auto tag = "v" + std::to_string(LOCKSTEP_VERSION_MAJOR) + "_" + std::to_string(LOCKSTEP_VERSION_MINOR);
#if defined(LOCKSTEP_BLAS)
  tag += "_blas";
#endif
#if defined(LOCKSTEP_ONEDNN)
  tag += "_onednn";
#endif
#if defined(LOCKSTEP_CUDNN)
  tag += "_cudnn";
#endif
  auto const length = std::to_string(tag.size());
  CHECK(std::string(typeid(lockstep::Tagged).name()) == "N8lockstep" + length + tag + "6TaggedE");
}
