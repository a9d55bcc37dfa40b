// SPDX-License-Identifier: Apache-2.0
// CASE groups: Lockstep: hold_out per class would split the dataset's groups
#include <cstdint>
#include <vector>

#include <lockstep/data/combine/hold_out.hpp>

using namespace lockstep;

struct Window {
  int activity;
};
struct Windows {
  Index size() const { return 4; }
  Window get(Index i) const { return {static_cast<int>(i)}; }
};
struct WindowsOfFiles : Windows {
  Index groups() const { return 2; }
  Index group(Index i) const { return i / 2; }
};

void part(std::vector<std::int32_t> const& activities) {
  static_cast<void>(data::hold_out(Windows{}, 0.5, 0, activities));
  static_cast<void>(data::hold_out(WindowsOfFiles{}, 0.5, 0));
#if defined(CASE_groups)
  static_cast<void>(data::hold_out(WindowsOfFiles{}, 0.5, 0, activities));
#endif
}
