// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/file_remedy.hpp>

#include <doctest/doctest.h>

#include <string>

TEST_CASE("reasons with a remedy have one, and others add nothing") {
  for (int const reason : {ENOENT, ENOSPC, EACCES, EPERM, EDQUOT, EFBIG, EROFS, EPIPE})
    CHECK(std::string(lockstep::file_remedy(reason)).starts_with("; "));
  CHECK(std::string(lockstep::file_remedy(EIO)).empty());
}
