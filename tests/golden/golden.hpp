// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include <lockstep/core/index.hpp>
#include <lockstep/core/json.hpp>

/// Results of PyTorch for small inputs, in float64; generate.py writes the files.
namespace golden {
using lockstep::Index;
namespace json = lockstep::json;

/// Returns the cases of a file.
[[nodiscard]] inline json::Value load(std::string const& name) {
  auto const path = std::string(LOCKSTEP_SOURCE_DIR) + "/tests/golden/" + name + ".json";
  std::ifstream file(path);
  REQUIRE_MESSAGE(file.good(), path);
  return json::parse(std::string(std::istreambuf_iterator<char>(file), {}), path);
}

template <class T>
[[nodiscard]] std::vector<T> numbers(json::Value const& array) {
  std::vector<T> out;
  for (auto const& number : array.array()) out.push_back(static_cast<T>(number.number()));
  return out;
}
/// Reads {"shape": [...], "data": [...]}.
template <class T>
[[nodiscard]] std::vector<T> data(json::Value const& tensor) {
  return numbers<T>(tensor.at("data"));
}
[[nodiscard]] inline std::vector<Index> shape(json::Value const& tensor) { return numbers<Index>(tensor.at("shape")); }

/// Half a unit in the last place of 1.
template <class T>
inline constexpr double unit = std::numeric_limits<T>::epsilon() / 2;

/// Returns the largest absolute value in a tree of numbers.
[[nodiscard]] inline double largest(json::Value const& value) {
  double most = 0;
  if (value.is<json::Array>())
    for (auto const& each : value.array()) most = std::max(most, largest(each));
  if (value.is<json::Object>())
    for (auto const& [name, each] : value.object())
      if (name != "shape") most = std::max(most, largest(each));
  if (value.is<double>()) most = std::abs(value.number());
  return most;
}

/// Returns the largest difference in units of the bound; elements with counts(i) == false are left out.
template <class T, class Counts>
[[nodiscard]] double difference(T const* got, std::vector<double> const& expected, Counts const& counts) {
  double most = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (!counts(i)) continue;
    double const off = std::abs(static_cast<double>(got[i]) - expected[i]) / unit<T>;
    if (!(off <= most)) most = off;  // also for NaN
  }
  return most;
}
template <class T>
[[nodiscard]] double difference(T const* got, std::vector<double> const& expected) {
  return difference(got, expected, [](std::size_t) { return true; });
}

/// Returns the root of the mean square of the differences.
class MeanDifference {
 public:
  template <class T, class Counts>
  void add(T const* got, std::vector<double> const& expected, Counts const& counts) {
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (!counts(i)) continue;
      double const off = static_cast<double>(got[i]) - expected[i];
      squares_ += off * off;
      ++count_;
    }
  }
  template <class T>
  void add(T const* got, std::vector<double> const& expected) {
    add(got, expected, [](std::size_t) { return true; });
  }
  [[nodiscard]] double value() const { return std::sqrt(squares_ / static_cast<double>(count_)); }

 private:
  double squares_ = 0;
  Index count_ = 0;
};

/// Tolerance of results in bfloat16: a tenth more than PyTorch's error, which is given to four digits.
constexpr double of_pytorchs = 1.1;

}  // namespace golden
