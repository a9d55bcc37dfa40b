// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

/// A parsed PTX module, with the terms of NVIDIA's manual "Parallel Thread Execution ISA".
namespace ptx {

enum class Type : std::uint8_t {
  none,
  pred,
  b8,
  b16,
  b32,
  b64,
  u8,
  u16,
  u32,
  u64,
  s8,
  s16,
  s32,
  s64,
  f32,
  f64,
  f16,
  bf16,
  f16x2,
  bf16x2,
  tf32,
};
/// Types with two bytes per number, alone or in pairs in registers.
[[nodiscard]] constexpr bool is_half(Type type) noexcept {
  return type == Type::f16 || type == Type::bf16 || type == Type::f16x2 || type == Type::bf16x2;
}
[[nodiscard]] constexpr bool is_pair(Type type) noexcept { return type == Type::f16x2 || type == Type::bf16x2; }

[[nodiscard]] constexpr std::size_t size_of(Type type) noexcept {
  switch (type) {
    case Type::none:
      return 0;
    case Type::pred:
    case Type::b8:
    case Type::u8:
    case Type::s8:
      return 1;
    case Type::b16:
    case Type::u16:
    case Type::s16:
    case Type::f16:
    case Type::bf16:
      return 2;
    case Type::b32:
    case Type::u32:
    case Type::s32:
    case Type::f32:
    case Type::f16x2:
    case Type::bf16x2:
    case Type::tf32:
      return 4;
    default:
      return 8;
  }
}

struct Operand {
  enum class Kind : std::uint8_t {
    none,
    reg,      // the register with that index
    value,    // a literal, or the address of a module variable
    local,    // an address at that offset in the function's frame
    formal,   // the address of the parameter with that index
    special,  // a special register by index, for example %tid.x
  };
  Kind kind = Kind::none;
  std::int32_t index = 0;
  std::uint64_t value = 0;  // for a formal: bytes beyond it
};

enum class Special : std::int32_t {
  tid_x,
  tid_y,
  tid_z,
  ntid_x,
  ntid_y,
  ntid_z,
  ctaid_x,
  ctaid_y,
  ctaid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  laneid,
  warpid,
  lanemask_eq,
  lanemask_lt,
  lanemask_le,
  lanemask_gt,
  lanemask_ge,
};

enum class Op : std::uint8_t {
  unknown,
  abs,
  add,
  addc,
  and_,
  atom,
  bar,
  bar_red,
  bar_warp,
  bfi,
  bmsk,
  bra,
  brev,
  call,
  clz,
  copysign,
  cp_async,
  cp_async_commit,
  cp_async_wait,
  cp_async_wait_all,
  cvt,
  cvta,
  div,
  ex2,
  exit,
  fma,
  ld,
  ldmatrix,
  lg2,
  lop3,
  mad,
  madc,
  max,
  membar,
  min,
  mma,
  mov,
  movmatrix,
  mul,
  nanosleep,
  neg,
  not_,
  or_,
  popc,
  prmt,
  rcp,
  redux,
  rem,
  ret,
  rsqrt,
  selp,
  setp,
  shf,
  shfl,
  shl,
  shr,
  sqrt,
  st,
  stmatrix,
  sub,
  subc,
  trap,
  vote,
  xor_,
};

enum class Space : std::uint8_t { generic, global, shared, local, param, constant };
/// The modifier that selects an instruction's variant.
enum class Mode : std::uint8_t {
  none,
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
  equ,
  neu,
  ltu,
  leu,
  gtu,
  geu,
  num,
  nan,
  low,
  high,
  wide,
  up,
  down,
  bfly,
  idx,
  ballot,
  any,
  all,
  add,
  min,
  max,
  exch,
  cas,
  and_,
  or_,
  xor_,
  inc,
  left,
  right,
};
enum class Rounding : std::uint8_t { none, nearest, zero, down, up, away };

struct Function;

struct Instruction {
  Op op = Op::unknown;
  Type type = Type::none, from = Type::none;  // types of the result and of the conversion's source
  Mode mode = Mode::none;
  Rounding rounding = Rounding::none;
  Space space = Space::generic;
  bool guard_not = false, carries = false, saturates = false, integral = false, takes_apart = false;
  bool flushes = false;      // subnormal floats count as zero
  bool wraps = false;        // a shift by its amount modulo 32
  bool transposed = false;   // for matrices
  bool strong = false;       // a volatile, relaxed, acquiring, releasing or L2-only access
  std::uint8_t width = 1;    // width of a vector; for ldmatrix and stmatrix the number of matrices; for mma, k
  std::int32_t guard = -1;   // the register
  std::int32_t target = -1;  // target of a branch
  std::int32_t call = -1;    // among the function's calls
  Operand to[4], from_operands[5];
  std::shared_ptr<std::array<Operand, 10>> factors = {};  // for mma: the registers of A, B and C
  Operand also_to;                                        // the predicate after "|"
  std::uint32_t line = 0, file = 0;                       // place in the source, or in the PTX
};

struct Call {
  std::string callee;
  Function const* function = nullptr;
  std::vector<Operand> results, arguments;  // their address
};

struct Parameter {
  std::string name;
  std::size_t bytes = 0, alignment = 1, at = 0;
};

struct SharedVariable {
  std::size_t at, bytes;
  bool dynamic = false;  // with the launch's size
};

struct Module;

struct Function {
  Module const* module = nullptr;
  std::string name;
  bool has_body = false;
  std::vector<Parameter> results, parameters;  // formals are numbered in this order
  std::size_t parameter_bytes = 0, registers = 0, local_bytes = 0;
  std::vector<Instruction> code;
  std::vector<Call> calls;
  std::vector<SharedVariable> shared;  // that it names

  [[nodiscard]] std::size_t static_shared_bytes() const noexcept {
    std::size_t bytes = 0;
    for (auto const& variable : shared) bytes += variable.bytes;
    return bytes;
  }
};

struct Global {
  std::byte* begin;
  std::size_t bytes;
};

struct Module {
  std::map<std::string, std::unique_ptr<Function>> functions;
  std::vector<Global> globals;
  std::vector<std::unique_ptr<std::byte[]>> memory;
  std::vector<std::string> files;  // source files
  unsigned target = 0;             // compute capability, such as 80 for 8.0
};

}  // namespace ptx
