// SPDX-License-Identifier: Apache-2.0

// Macros that a user's header may define: no header uses these names.
#define E no_name
#define G no_name
#define H no_name
#define I no_name
#define J no_name
#define K no_name
#define L no_name
#define M no_name
#define N no_name
#define Q no_name
#define W no_name
#define Y no_name
#define Z no_name
#include <lockstep/lockstep.hpp>

namespace lockstep_test {
char const* version_seen_by_the_other_unit();
char const* version_seen_by_the_other_unit() { return lockstep::version; }
}  // namespace lockstep_test
