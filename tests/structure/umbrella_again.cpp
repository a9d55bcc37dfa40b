// SPDX-License-Identifier: Apache-2.0

// Macros that a user's header may define. Their text is no code, so no header may use these names.
// NOLINTBEGIN(readability-identifier-naming)
#define A 1 no code
#define B 1 no code
#define C 1 no code
#define D 1 no code
#define E 1 no code
#define F 1 no code
#define G 1 no code
#define H 1 no code
#define I 1 no code
#define J 1 no code
#define K 1 no code
#define L 1 no code
#define M 1 no code
#define N 1 no code
#define O 1 no code
#define P 1 no code
#define Q 1 no code
#define R 1 no code
#define S 1 no code
#define T 1 no code
#define U 1 no code
#define V 1 no code
#define W 1 no code
#define X 1 no code
#define Y 1 no code
#define Z 1 no code
// NOLINTEND(readability-identifier-naming)
#include <lockstep/lockstep.hpp>

namespace lockstep_test {
char const* version_seen_by_the_other_unit();
char const* version_seen_by_the_other_unit() { return lockstep::version; }
}  // namespace lockstep_test
