// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cmath>
#include <cstdint>

#include "thread.hpp"

/// Instructions that a whole warp executes on matrices. Registers hold parts of matrices as in the PTX manual ("Matrix
/// fragments for mma"): lane 4 g + t has numbers of row g, or of column g of the second factor.
namespace ptx {

using Lanes = std::array<Thread*, 32>;

/// D = A B + C with 16 x k, k x 8 and 16 x 8 numbers. Products are added to C one by one, in the order of k, and each
/// sum is rounded to the nearest float. Hardware adds several products at once, in an undocumented order.
inline void multiply(Instruction const& how, Lanes const& lanes) {
  unsigned const k = how.width, registers = static_cast<unsigned>(mma_registers(how));
  unsigned const per_register = how.from == Type::tf32 ? 1 : 2;
  float a[16][16], b[16][8];
  auto const& factors = *how.factors;
  auto const number = [&](unsigned lane, unsigned operand, unsigned part) {
    auto const bits = lanes[lane]->value(factors[operand]);
    return how.from == Type::tf32 ? truncated_to_tf32(bits) : widened(how.from, bits >> (16 * part));
  };
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned part = 0; part < per_register; ++part) {
      auto const group = lane / 4, column = lane % 4 * per_register + part;
      for (unsigned i = 0; i < registers; ++i)
        a[group + 8 * (i % 2)][column + 4 * per_register * (i / 2)] = number(lane, i, part);
      for (unsigned i = 0; i < registers / 2; ++i)
        b[column + 4 * per_register * i][group] = number(lane, registers + i, part);
    }
  for (unsigned lane = 0; lane < 32; ++lane) {
    std::uint64_t results[4];
    for (unsigned i = 0; i < 4; ++i) {
      auto const row = lane / 4 + 8 * (i / 2), column = lane % 4 * 2 + i % 2;
      auto sum = as<float>(lanes[lane]->value(factors[registers / 2 * 3 + i]));
      for (unsigned j = 0; j < k; ++j) sum = std::fma(a[row][j], b[j][column], sum);
      results[i] = bits_of(sum);
    }
    for (unsigned i = 0; i < 4; ++i) lanes[lane]->set(how.to[i], results[i]);
  }
}

/// Calls part(matrix, lane, where, bytes, shift) for each part of a lane's register that is contiguous in memory. Lane
/// 8 i + j has the address of row j of matrix i.
template <class Part>
void for_parts(Instruction const& how, Lanes const& lanes, bool writes, Part const& part) {
  std::uint64_t rows[4][8];
  for (unsigned i = 0; i < how.width; ++i)
    for (unsigned j = 0; j < 8; ++j) rows[i][j] = lanes[8 * i + j]->matrix_row(how, writes);
  for (unsigned i = 0; i < how.width; ++i)
    for (unsigned lane = 0; lane < 32; ++lane) {
      auto const group = lane / 4, pair = lane % 4 * 2;
      if (how.transposed) {
        part(i, lane, rows[i][pair] + 2 * group, 2u, 0u);
        part(i, lane, rows[i][pair + 1] + 2 * group, 2u, 16u);
      } else {
        part(i, lane, rows[i][group] + 2 * pair, 4u, 0u);
      }
    }
}
inline void load_matrices(Instruction const& how, Lanes const& lanes) {
  std::uint64_t results[4][32] = {};
  for_parts(how, lanes, false, [&](unsigned matrix, unsigned lane, std::uint64_t at, unsigned bytes, unsigned shift) {
    results[matrix][lane] |= lanes[lane]->read_part(how, at, bytes) << shift;
  });
  for (unsigned i = 0; i < how.width; ++i)
    for (unsigned lane = 0; lane < 32; ++lane) lanes[lane]->set(how.to[i], results[i][lane]);
}
inline void store_matrices(Instruction const& how, Lanes const& lanes) {
  for_parts(how, lanes, true, [&](unsigned matrix, unsigned lane, std::uint64_t at, unsigned bytes, unsigned shift) {
    lanes[lane]->write_part(how, at, bytes, lanes[lane]->value(how.from_operands[1 + matrix]) >> shift);
  });
}

/// Transposes an 8 x 8 matrix of two-byte numbers.
inline void transpose(Instruction const& how, Lanes const& lanes) {
  std::uint64_t rows[8][8];
  for (unsigned lane = 0; lane < 32; ++lane) {
    auto const bits = lanes[lane]->value(how.from_operands[0]);
    for (unsigned i = 0; i < 2; ++i) rows[lane / 4][lane % 4 * 2 + i] = bits >> (16 * i) & 0xffffu;
  }
  for (unsigned lane = 0; lane < 32; ++lane) {
    auto const column = lane / 4, row = lane % 4 * 2;
    lanes[lane]->set(how.to[0], rows[row][column] | rows[row + 1][column] << 16);
  }
}

[[nodiscard]] inline bool is_of_matrices(Op op) noexcept {
  return op == Op::mma || op == Op::ldmatrix || op == Op::stmatrix || op == Op::movmatrix;
}
inline void on_matrices(Instruction const& how, Lanes const& lanes) {
  if (how.op == Op::mma) multiply(how, lanes);
  if (how.op == Op::ldmatrix) load_matrices(how, lanes);
  if (how.op == Op::stmatrix) store_matrices(how, lanes);
  if (how.op == Op::movmatrix) transpose(how, lanes);
}

}  // namespace ptx
