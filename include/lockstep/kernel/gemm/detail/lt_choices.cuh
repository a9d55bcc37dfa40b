// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cublasLt.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Several products of equal shapes in one call. The k-th one uses a + k * a_stride and so on, in elements.
struct LtBatch {
  Index count = 1, a_stride = 0, b_stride = 0, c_stride = 0, bias_stride = 0;
  auto operator<=>(LtBatch const&) const = default;
};

/// Everything that determines how a matrix product is computed. Products of the same kind share descriptors and
/// algorithm.
struct LtProduct {
  cudaDataType_t type, c_type;  // type of the factors; type of the result and of the bias
  bool a_transposed, b_transposed;
  bool with_bias;  // the kernel adds a bias [n] to each row
  Index m, n, k;
  std::uint32_t alignment;  // largest power of two (up to 16) that divides all addresses
  bool tf32 = false;        // factors in float are rounded to 10 bits of fraction, for tensor cores
  LtBatch batch{};
  auto operator<=>(LtProduct const&) const = default;
};

/// Wrapped in a named type: nvcc cannot destroy an unnamed one in a container.
struct LtAlgorithm {
  cublasLtMatmulAlgo_t value;
};

/// Algorithm of each kind of matrix product on one kind of machine.
struct LtChoices {
  std::string machine;  // GPU and version of cuBLASLt: an algorithm is only valid for them
  std::map<LtProduct, LtAlgorithm> algorithms;

  /// Returns a line for the machine and one for each product, whose algorithm is written in hexadecimal digits.
  [[nodiscard]] std::string to_text() const {
    std::ostringstream out;
    out << machine << '\n';
    for (auto const& [kind, algorithm] : algorithms) {
      out << int{kind.type} << ' ' << int{kind.c_type} << ' ' << kind.a_transposed << ' ' << kind.b_transposed << ' '
          << kind.with_bias << ' ' << kind.m << ' ' << kind.n << ' ' << kind.k << ' ' << kind.alignment << ' ';
      unsigned char bytes[sizeof algorithm];
      std::memcpy(bytes, &algorithm, sizeof algorithm);
      for (auto const byte : bytes) out << digits[byte / 16] << digits[byte % 16];
      if (kind.tf32) out << " tf32";
      if (kind.batch.count > 1)
        out << " batch " << kind.batch.count << ' ' << kind.batch.a_stride << ' ' << kind.batch.b_stride << ' '
            << kind.batch.c_stride << ' ' << kind.batch.bias_stride;
      out << '\n';
    }
    return std::move(out).str();
  }
  /// @throws DataError if the text does not come from to_text; reports the line
  [[nodiscard]] static LtChoices from_text(std::string const& text) {
    static_assert(std::is_trivially_copyable_v<LtAlgorithm>);
    LtChoices out;
    std::istringstream in(text);
    std::getline(in, out.machine);
    int number = 1;
    for (std::string line; std::getline(in, line);) {
      ++number;
      std::istringstream words(line);
      LtProduct kind{};
      int type = 0, c_type = 0;
      std::string algorithm;
      words >> type >> c_type >> kind.a_transposed >> kind.b_transposed >> kind.with_bias >> kind.m >> kind.n >>
          kind.k >> kind.alignment >> algorithm;
      kind.type = static_cast<cudaDataType_t>(type);
      kind.c_type = static_cast<cudaDataType_t>(c_type);
      unsigned char bytes[sizeof(LtAlgorithm)];
      if (!words || !read(algorithm, bytes) || !read_rest(words, kind))
        throw DataError("Gemm: line " + std::to_string(number) + " of the file of chosen GEMM algorithms is '" + line +
                        "', which does not name a kind of GEMM and its algorithm; choose the algorithms again");
      std::memcpy(&out.algorithms[kind], bytes, sizeof bytes);
    }
    return out;
  }

 private:
  static constexpr char digits[] = "0123456789abcdef";

  /// Reads the words that only some kinds have.
  [[nodiscard]] static bool read_rest(std::istream& words, LtProduct& kind) {
    for (std::string word; words >> word;) {
      auto& batch = kind.batch;
      if (word == "tf32") {
        kind.tf32 = true;
      } else if (word != "batch" ||
                 !(words >> batch.count >> batch.a_stride >> batch.b_stride >> batch.c_stride >> batch.bias_stride)) {
        return false;
      }
    }
    return true;
  }

  template <std::size_t size>
  [[nodiscard]] static bool read(std::string const& word, unsigned char (&to)[size]) {
    if (word.size() != 2 * size || word.find_first_not_of(digits) != std::string::npos) return false;
    auto const digit = [&](std::size_t i) { return std::strchr(digits, word[i]) - digits; };
    for (std::size_t i = 0; i < size; ++i) to[i] = static_cast<unsigned char>(16 * digit(2 * i) + digit(2 * i + 1));
    return true;
  }
};

}}}  // namespace lockstep::kernel::detail
