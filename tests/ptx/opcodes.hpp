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
      {"pred", Type::pred}, {"b8", Type::b8},   {"b16", Type::b16}, {"b32", Type::b32}, {"b64", Type::b64},
      {"u8", Type::u8},     {"u16", Type::u16}, {"u32", Type::u32}, {"u64", Type::u64}, {"s8", Type::s8},
      {"s16", Type::s16},   {"s32", Type::s32}, {"s64", Type::s64}, {"f32", Type::f32}, {"f64", Type::f64}};
  auto const found = types.find(name);
  return found == types.end() ? Type::none : found->second;
}

/// What an opcode says, as in `ld.global.v4.u32`; false where it is not known.
[[nodiscard]] inline bool decode(std::string_view opcode, Instruction& to) {
  static std::map<std::string_view, Op> const operations{{"abs", Op::abs},
                                                         {"add", Op::add},
                                                         {"addc", Op::addc},
                                                         {"and", Op::and_},
                                                         {"atom", Op::atom},
                                                         {"bar", Op::bar},
                                                         {"barrier", Op::bar},
                                                         {"bfi", Op::bfi},
                                                         {"bmsk", Op::bmsk},
                                                         {"bra", Op::bra},
                                                         {"brev", Op::brev},
                                                         {"call", Op::call},
                                                         {"clz", Op::clz},
                                                         {"copysign", Op::copysign},
                                                         {"cvt", Op::cvt},
                                                         {"cvta", Op::cvta},
                                                         {"div", Op::div},
                                                         {"ex2", Op::ex2},
                                                         {"exit", Op::exit},
                                                         {"fma", Op::fma},
                                                         {"ld", Op::ld},
                                                         {"lg2", Op::lg2},
                                                         {"mad", Op::mad},
                                                         {"madc", Op::madc},
                                                         {"max", Op::max},
                                                         {"membar", Op::membar},
                                                         {"fence", Op::membar},
                                                         {"min", Op::min},
                                                         {"mov", Op::mov},
                                                         {"mul", Op::mul},
                                                         {"nanosleep", Op::nanosleep},
                                                         {"neg", Op::neg},
                                                         {"not", Op::not_},
                                                         {"or", Op::or_},
                                                         {"popc", Op::popc},
                                                         {"prmt", Op::prmt},
                                                         {"rcp", Op::rcp},
                                                         {"rem", Op::rem},
                                                         {"ret", Op::ret},
                                                         {"rsqrt", Op::rsqrt},
                                                         {"selp", Op::selp},
                                                         {"setp", Op::setp},
                                                         {"shfl", Op::shfl},
                                                         {"shl", Op::shl},
                                                         {"shr", Op::shr},
                                                         {"sqrt", Op::sqrt},
                                                         {"st", Op::st},
                                                         {"sub", Op::sub},
                                                         {"subc", Op::subc},
                                                         {"trap", Op::trap},
                                                         {"vote", Op::vote},
                                                         {"xor", Op::xor_}};
  static std::map<std::string_view, Mode> const modes{
      {"eq", Mode::eq},   {"ne", Mode::ne},         {"lt", Mode::lt},     {"le", Mode::le},     {"gt", Mode::gt},
      {"ge", Mode::ge},   {"equ", Mode::equ},       {"neu", Mode::neu},   {"ltu", Mode::ltu},   {"leu", Mode::leu},
      {"gtu", Mode::gtu}, {"geu", Mode::geu},       {"num", Mode::num},   {"nan", Mode::nan},   {"lo", Mode::low},
      {"hi", Mode::high}, {"wide", Mode::wide},     {"up", Mode::up},     {"down", Mode::down}, {"bfly", Mode::bfly},
      {"idx", Mode::idx}, {"ballot", Mode::ballot}, {"any", Mode::any},   {"all", Mode::all},   {"add", Mode::add},
      {"min", Mode::min}, {"max", Mode::max},       {"exch", Mode::exch}, {"cas", Mode::cas},   {"and", Mode::and_},
      {"or", Mode::or_},  {"xor", Mode::xor_},      {"inc", Mode::inc}};
  static std::map<std::string_view, Space> const spaces{{"global", Space::global},
                                                        {"shared", Space::shared},
                                                        {"local", Space::local},
                                                        {"param", Space::param},
                                                        {"const", Space::constant}};
  // What matters to a GPU's speed alone, or to several, or is so here anyway.
  static std::set<std::string_view> const without_effect{"uni", "sync",    "ftz", "approx", "full", "to",
                                                         "nc",  "wb",      "gpu", "cta",    "gl",   "clamp",
                                                         "sys", "acq_rel", "sc",  "aligned"};
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
      to.synchronises = true;
    } else if (!without_effect.contains(modifier)) {
      return false;
    }
  }
  return true;
}

}  // namespace ptx
