// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "program.hpp"

namespace ptx {

[[nodiscard]] inline Type type_of(std::string_view name) {
  static std::map<std::string_view, Type> const types{
      {"pred", Type::pred}, {"b8", Type::b8},       {"b16", Type::b16},       {"b32", Type::b32},
      {"b64", Type::b64},   {"u8", Type::u8},       {"u16", Type::u16},       {"u32", Type::u32},
      {"u64", Type::u64},   {"s8", Type::s8},       {"s16", Type::s16},       {"s32", Type::s32},
      {"s64", Type::s64},   {"f32", Type::f32},     {"f64", Type::f64},       {"f16", Type::f16},
      {"bf16", Type::bf16}, {"f16x2", Type::f16x2}, {"bf16x2", Type::bf16x2}, {"tf32", Type::tf32}};
  auto const found = types.find(name);
  return found == types.end() ? Type::none : found->second;
}

/// Number of registers of mma's first matrix, with m x k numbers; the second has half as many.
[[nodiscard]] inline int mma_registers(Instruction const& mma) noexcept {
  return mma.width * static_cast<int>(size_of(mma.from)) / 8;
}

/// Decodes instructions of tensor cores and asynchronous copies; only these forms are supported.
[[nodiscard]] inline bool decode_matrix(std::string opcode, Instruction& to) {
  struct Known {
    Op op;
    std::uint8_t width;
    Type from = Type::b16;
    bool transposed = false;
  };
  static std::map<std::string_view, Known> const all{
      {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", {Op::mma, 16, Type::bf16}},
      {"mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32", {Op::mma, 8, Type::bf16}},
      {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", {Op::mma, 16, Type::f16}},
      {"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", {Op::mma, 8, Type::f16}},
      {"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", {Op::mma, 8, Type::tf32}},
      {"mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32", {Op::mma, 4, Type::tf32}},
      {"ldmatrix.sync.aligned.m8n8.x1.shared.b16", {Op::ldmatrix, 1}},
      {"ldmatrix.sync.aligned.m8n8.x2.shared.b16", {Op::ldmatrix, 2}},
      {"ldmatrix.sync.aligned.m8n8.x4.shared.b16", {Op::ldmatrix, 4}},
      {"ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16", {Op::ldmatrix, 1, Type::b16, true}},
      {"ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16", {Op::ldmatrix, 2, Type::b16, true}},
      {"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16", {Op::ldmatrix, 4, Type::b16, true}},
      {"stmatrix.sync.aligned.m8n8.x1.shared.b16", {Op::stmatrix, 1}},
      {"stmatrix.sync.aligned.m8n8.x2.shared.b16", {Op::stmatrix, 2}},
      {"stmatrix.sync.aligned.m8n8.x4.shared.b16", {Op::stmatrix, 4}},
      {"stmatrix.sync.aligned.m8n8.x1.trans.shared.b16", {Op::stmatrix, 1, Type::b16, true}},
      {"stmatrix.sync.aligned.m8n8.x2.trans.shared.b16", {Op::stmatrix, 2, Type::b16, true}},
      {"stmatrix.sync.aligned.m8n8.x4.trans.shared.b16", {Op::stmatrix, 4, Type::b16, true}},
      {"movmatrix.sync.aligned.m8n8.trans.b16", {Op::movmatrix, 1, Type::b16, true}},
      {"cp.async.ca.shared.global", {Op::cp_async, 0}},
      {"cp.async.cg.shared.global", {Op::cp_async, 16}},  // only 16 bytes
      {"cp.async.commit_group", {Op::cp_async_commit, 0}},
      {"cp.async.wait_group", {Op::cp_async_wait, 0}},
      {"cp.async.wait_all", {Op::cp_async_wait_all, 0}}};
  // Block shared memory without a cluster, and cache hints.
  for (std::string_view const part : {"::cta", ".L2::64B", ".L2::128B", ".L2::256B"})
    if (auto const at = opcode.find(part); at != opcode.npos) opcode.erase(at, part.size());
  auto const found = all.find(opcode);
  if (found == all.end()) return false;
  auto const& known = found->second;
  to.op = known.op;
  to.width = known.width;
  to.type = known.op == Op::mma ? Type::f32 : Type::b16;
  to.from = known.from;
  to.transposed = known.transposed;
  to.space = Space::shared;
  return true;
}

/// Whether an instruction with two-byte numbers or TF32 is supported.
[[nodiscard]] inline bool knows_narrow(Instruction const& how) {
  bool const narrow = is_half(how.type) || how.type == Type::tf32, from = is_half(how.from) || how.from == Type::tf32;
  if (!narrow && !from) return true;
  if (how.flushes || how.saturates) return false;
  if (how.op == Op::cvt) {
    if (narrow && how.from == Type::f32)
      return how.rounding == Rounding::nearest ||
             how.rounding == (how.type == Type::tf32 ? Rounding::away : Rounding::zero);
    return how.type == Type::f32 && (how.from == Type::f16 || how.from == Type::bf16);
  }
  static std::set<Op> const operations{Op::abs, Op::add, Op::fma, Op::max, Op::min, Op::mul, Op::neg, Op::sub};
  return !from && how.type != Type::tf32 && how.mode == Mode::none && operations.contains(how.op);
}

/// Decodes an opcode such as `ld.global.v4.u32`; returns false if it is unknown.
[[nodiscard]] inline bool decode(std::string_view opcode, Instruction& to) {
  if (decode_matrix(std::string(opcode), to)) return true;
  static std::map<std::string_view, Op> const operations{{"abs", Op::abs},       {"add", Op::add},
                                                         {"addc", Op::addc},     {"and", Op::and_},
                                                         {"atom", Op::atom},     {"bar", Op::bar},
                                                         {"barrier", Op::bar},   {"bfi", Op::bfi},
                                                         {"bmsk", Op::bmsk},     {"bra", Op::bra},
                                                         {"brev", Op::brev},     {"call", Op::call},
                                                         {"clz", Op::clz},       {"copysign", Op::copysign},
                                                         {"cvt", Op::cvt},       {"cvta", Op::cvta},
                                                         {"div", Op::div},       {"ex2", Op::ex2},
                                                         {"exit", Op::exit},     {"fma", Op::fma},
                                                         {"ld", Op::ld},         {"lg2", Op::lg2},
                                                         {"lop3", Op::lop3},     {"mad", Op::mad},
                                                         {"madc", Op::madc},     {"max", Op::max},
                                                         {"membar", Op::membar}, {"fence", Op::membar},
                                                         {"min", Op::min},       {"mov", Op::mov},
                                                         {"mul", Op::mul},       {"nanosleep", Op::nanosleep},
                                                         {"neg", Op::neg},       {"not", Op::not_},
                                                         {"or", Op::or_},        {"popc", Op::popc},
                                                         {"prmt", Op::prmt},     {"rcp", Op::rcp},
                                                         {"redux", Op::redux},   {"rem", Op::rem},
                                                         {"ret", Op::ret},       {"rsqrt", Op::rsqrt},
                                                         {"selp", Op::selp},     {"setp", Op::setp},
                                                         {"shf", Op::shf},       {"shfl", Op::shfl},
                                                         {"shl", Op::shl},       {"shr", Op::shr},
                                                         {"sqrt", Op::sqrt},     {"st", Op::st},
                                                         {"sub", Op::sub},       {"subc", Op::subc},
                                                         {"trap", Op::trap},     {"vote", Op::vote},
                                                         {"xor", Op::xor_}};
  static std::map<std::string_view, Mode> const modes{
      {"eq", Mode::eq},   {"ne", Mode::ne},         {"lt", Mode::lt},     {"le", Mode::le},     {"gt", Mode::gt},
      {"ge", Mode::ge},   {"equ", Mode::equ},       {"neu", Mode::neu},   {"ltu", Mode::ltu},   {"leu", Mode::leu},
      {"gtu", Mode::gtu}, {"geu", Mode::geu},       {"num", Mode::num},   {"nan", Mode::nan},   {"lo", Mode::low},
      {"hi", Mode::high}, {"wide", Mode::wide},     {"up", Mode::up},     {"down", Mode::down}, {"bfly", Mode::bfly},
      {"idx", Mode::idx}, {"ballot", Mode::ballot}, {"any", Mode::any},   {"all", Mode::all},   {"add", Mode::add},
      {"min", Mode::min}, {"max", Mode::max},       {"exch", Mode::exch}, {"cas", Mode::cas},   {"and", Mode::and_},
      {"or", Mode::or_},  {"xor", Mode::xor_},      {"inc", Mode::inc},   {"l", Mode::left},    {"r", Mode::right}};
  static std::map<std::string_view, Space> const spaces{{"global", Space::global},      {"shared", Space::shared},
                                                        {"shared::cta", Space::shared}, {"local", Space::local},
                                                        {"param", Space::param},        {"const", Space::constant}};
  // Modifiers that affect only speed or several GPUs, or that always apply here.
  static std::set<std::string_view> const without_effect{"uni",
                                                         "sync",
                                                         "approx",
                                                         "full",
                                                         "to",
                                                         "nc",
                                                         "wb",
                                                         "gpu",
                                                         "cta",
                                                         "gl",
                                                         "clamp",
                                                         "sys",
                                                         "acq_rel",
                                                         "sc",
                                                         "aligned",
                                                         "ca",
                                                         "cs",
                                                         "lu",
                                                         "L1::evict_normal",
                                                         "L1::evict_unchanged",
                                                         "L1::evict_first",
                                                         "L1::evict_last",
                                                         "L1::no_allocate",
                                                         "L2::64B",
                                                         "L2::128B",
                                                         "L2::256B"};
  std::string_view rest = opcode;
  auto const word = [&] {
    auto const dot = std::min(rest.find('.'), rest.size());
    auto const first = rest.substr(0, dot);
    rest.remove_prefix(std::min(dot + 1, rest.size()));
    return first;
  };
  auto const operation = operations.find(word());
  if (operation == operations.end()) return false;
  to.op = operation->second;
  while (!rest.empty()) {
    auto const modifier = word();
    if (auto const type = type_of(modifier); type != Type::none) {
      (to.type == Type::none ? to.type : to.from) = type;
    } else if (auto const mode = modes.find(modifier); mode != modes.end()) {
      to.mode = mode->second;
    } else if (auto const space = spaces.find(modifier); space != spaces.end()) {
      to.space = space->second;
    } else if (modifier == "v2" || modifier == "v4") {
      to.width = modifier == "v2" ? 2 : 4;
    } else if (modifier == "rn" || modifier == "rni") {
      to.rounding = Rounding::nearest, to.integral = modifier.size() == 3;
    } else if (modifier == "rz" || modifier == "rzi") {
      to.rounding = Rounding::zero, to.integral = modifier.size() == 3;
    } else if (modifier == "rm" || modifier == "rmi") {
      to.rounding = Rounding::down, to.integral = modifier.size() == 3;
    } else if (modifier == "rp" || modifier == "rpi") {
      to.rounding = Rounding::up, to.integral = modifier.size() == 3;
    } else if (modifier == "rna") {
      to.rounding = Rounding::away;
    } else if (modifier == "ftz") {
      to.flushes = true;
    } else if (modifier == "wrap") {
      to.wraps = true;
    } else if (modifier == "cc") {
      to.carries = true;
    } else if (modifier == "sat") {
      to.saturates = true;
    } else if (modifier == "warp") {
      to.op = Op::bar_warp;
    } else if (modifier == "red") {
      to.op = Op::bar_red;
    } else if (modifier == "volatile" || modifier == "relaxed" || modifier == "acquire" || modifier == "release" ||
               modifier == "cg") {
      to.strong = true;
    } else if (!without_effect.contains(modifier)) {
      return false;
    }
  }
  return knows_narrow(to) && (to.op != Op::lop3 || to.mode == Mode::none);
}

}  // namespace ptx
