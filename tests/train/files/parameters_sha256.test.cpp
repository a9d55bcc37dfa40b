// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/files/parameters_sha256.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace lockstep;

namespace {
struct Forward {
  nn::Parameter a{{3}, {}}, b{{2}, {}};
  void visit(auto&& each) { each("a", a), each("b", b); }
};
struct Backward {
  nn::Parameter a{{3}, {}}, b{{2}, {}};
  void visit(auto&& each) { each("b", b), each("a", a); }
};
template <class Model>
std::string hash(float padding, float last = 5) {
  Model model;
  auto const layout = nn::ParameterLayout::of(model);
  std::vector<float> values(static_cast<std::size_t>(layout.size()), padding);
  for (int i = 0; i < 3; ++i) values[static_cast<std::size_t>(model.a.offset + i)] = static_cast<float>(i + 1);
  values[static_cast<std::size_t>(model.b.offset)] = 4;
  values[static_cast<std::size_t>(model.b.offset + 1)] = last;
  return train::parameters_sha256(layout, values);
}
}  // namespace

TEST_CASE("the digest covers the parameters in name order, regardless of their order in the arena and the padding") {
  float const all[]{1, 2, 3, 4, 5};
  Sha256 expected;
  expected.update(std::as_bytes(std::span(all)));
  CHECK(hash<Forward>(0) == hex(expected.digest()));
  CHECK(hash<Backward>(9) == hash<Forward>(0));
  CHECK(hash<Forward>(0, 5.000001f) != hash<Forward>(0));
}
