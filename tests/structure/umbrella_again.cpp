// SPDX-License-Identifier: Apache-2.0
#include <lockstep/lockstep.hpp>

namespace lockstep_test {
char const* version_seen_by_the_other_unit();
char const* version_seen_by_the_other_unit() { return lockstep::version; }
}  // namespace lockstep_test
