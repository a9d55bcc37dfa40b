// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "halves.hpp"
#include "parse.hpp"

/// Results of instructions that do not access memory, as functions of their operands' bits.
namespace ptx {

__extension__ using Signed128 = __int128;
__extension__ using Unsigned128 = unsigned __int128;

template <class T>
[[nodiscard]] T as(std::uint64_t bits) noexcept {
  if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  else if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<double>(bits);
  else
    return static_cast<T>(bits);
}
template <class T>
[[nodiscard]] std::uint64_t bits_of(T value) noexcept {
  if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<std::uint32_t>(value);
  else if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<std::uint64_t>(value);
  else
    return static_cast<std::uint64_t>(static_cast<std::make_unsigned_t<T>>(value));
}

/// f(a value of the type)
template <class F>
decltype(auto) with_integer(Type type, F&& f) {
  switch (type) {
    case Type::b8:
    case Type::u8:
      return f(std::uint8_t{});
    case Type::s8:
      return f(std::int8_t{});
    case Type::b16:
    case Type::u16:
      return f(std::uint16_t{});
    case Type::s16:
      return f(std::int16_t{});
    case Type::b32:
    case Type::u32:
      return f(std::uint32_t{});
    case Type::s32:
      return f(std::int32_t{});
    case Type::b64:
    case Type::u64:
      return f(std::uint64_t{});
    case Type::s64:
      return f(std::int64_t{});
    default:
      fail("an integer type was expected");
  }
}
template <class F>
decltype(auto) with_type(Type type, F&& f) {
  if (type == Type::f32) return f(float{});
  if (type == Type::f64) return f(double{});
  return with_integer(type, f);
}
[[nodiscard]] inline bool is_real(Type type) noexcept { return type == Type::f32 || type == Type::f64; }

template <class T>
[[nodiscard]] bool compare(Mode mode, T a, T b) {
  bool const unordered = a != a || b != b;
  switch (mode) {
    case Mode::eq:
      return a == b && !unordered;
    case Mode::ne:
      return a != b && !unordered;
    case Mode::lt:
      return a < b;
    case Mode::le:
      return a <= b;
    case Mode::gt:
      return a > b;
    case Mode::ge:
      return a >= b;
    case Mode::equ:
      return a == b || unordered;
    case Mode::neu:
      return a != b || unordered;
    case Mode::ltu:
      return a < b || unordered;
    case Mode::leu:
      return a <= b || unordered;
    case Mode::gtu:
      return a > b || unordered;
    case Mode::geu:
      return a >= b || unordered;
    case Mode::num:
      return !unordered;
    case Mode::nan:
      return unordered;
    default:
      fail("a comparison was expected");
  }
}

/// Evaluates f() in the given rounding mode.
template <class F>
[[gnu::noinline]] auto rounded(Rounding rounding, F const& f) {
  if (rounding == Rounding::none || rounding == Rounding::nearest) return f();
  auto const before = std::fegetround();
  std::fesetround(rounding == Rounding::zero ? FE_TOWARDZERO : rounding == Rounding::down ? FE_DOWNWARD : FE_UPWARD);
  __asm__ volatile("" ::: "memory");  // operands are read, and so computed with, from here on
  auto volatile const result = f();
  std::fesetround(before);
  return static_cast<decltype(f())>(result);
}
template <class T>
[[nodiscard]] T to_integral(Rounding rounding, T value) {
  switch (rounding) {
    case Rounding::zero:
      return std::trunc(value);
    case Rounding::down:
      return std::floor(value);
    case Rounding::up:
      return std::ceil(value);
    default:
      return std::nearbyint(value);
  }
}

[[nodiscard]] inline std::uint64_t convert(Instruction const& how, std::uint64_t bits, std::uint64_t low_bits) {
  if (how.type == Type::tf32) return narrowed_to_tf32(bits, how.rounding);
  if (is_half(how.type)) {
    auto const narrow = [&](std::uint64_t from) { return narrowed(how.type, as<float>(from), how.rounding); };
    return is_pair(how.type) ? narrow(bits) << 16 | narrow(low_bits) : narrow(bits);
  }
  if (is_half(how.from)) return bits_of(widened(how.from, bits));
  return with_type(how.from, [&](auto from) {
    auto value = as<decltype(from)>(bits);
    return with_type(how.type, [&](auto to) -> std::uint64_t {
      using From = decltype(from);
      using To = decltype(to);
      if constexpr (std::is_floating_point_v<From>) {
        if (how.integral || std::is_integral_v<To>) value = to_integral(how.rounding, value);
        if constexpr (std::is_floating_point_v<To>) {
          auto result = rounded(how.integral ? Rounding::none : how.rounding, [&] { return static_cast<To>(value); });
          if (how.saturates) result = result > 0 ? std::min(result, To(1)) : To(0);  // also if it is NaN
          return bits_of(result);
        } else {
          if (value != value) return 0;
          if (value <= static_cast<From>(std::numeric_limits<To>::min()))
            return bits_of(std::numeric_limits<To>::min());
          if (value >= static_cast<From>(std::numeric_limits<To>::max()))
            return bits_of(std::numeric_limits<To>::max());
          return bits_of(static_cast<To>(value));
        }
      } else {
        if (how.saturates) fail("an integer that saturates is not known");
        if constexpr (std::is_floating_point_v<To>)
          return bits_of(rounded(how.rounding, [&] { return static_cast<To>(value); }));
        else if constexpr (std::is_signed_v<From>)  // the register may be wider than the type
          return static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<To>(value)));
        else
          return static_cast<std::uint64_t>(static_cast<std::make_unsigned_t<To>>(value));
      }
    });
  });
}

/// Returns a float; subnormal numbers become zero if the instruction says so.
[[nodiscard]] inline std::uint64_t flushed(Instruction const& how, std::uint64_t bits) noexcept {
  bool const flushes = how.flushes && how.type == Type::f32 && (bits & 0x7f800000u) == 0;
  return flushes ? bits & 0x80000000u : bits;
}

/// Computes instructions with one, two or three operands of the type; `carry` is the thread's carry flag.
[[nodiscard]] inline std::uint64_t compute(Instruction const& how, std::uint64_t a_bits, std::uint64_t b_bits,
                                           std::uint64_t c_bits, bool& carry) {
  if (is_half(how.type)) return compute_halves(how, a_bits, b_bits, c_bits);
  if (is_real(how.type) && how.op != Op::selp) {
    a_bits = flushed(how, a_bits), b_bits = flushed(how, b_bits), c_bits = flushed(how, c_bits);
    auto const result = with_type(how.type, [&](auto kind) -> std::uint64_t {
      using T = decltype(kind);
      auto const a = as<T>(a_bits), b = as<T>(b_bits), c = as<T>(c_bits);
      auto const by = [&](auto const& f) { return bits_of(static_cast<T>(rounded(how.rounding, f))); };
      if constexpr (std::is_floating_point_v<T>) switch (how.op) {
          case Op::abs:
            return bits_of(std::fabs(a));
          case Op::neg:
            return bits_of(-a);
          case Op::add:
            return by([=] { return a + b; });
          case Op::sub:
            return by([=] { return a - b; });
          case Op::mul:
            return by([=] { return a * b; });
          case Op::div:
            return by([=] { return a / b; });
          case Op::fma:
          case Op::mad:
            return by([=] { return std::fma(a, b, c); });
          case Op::min:
            return bits_of(std::fmin(a, b));
          case Op::max:
            return bits_of(std::fmax(a, b));
          case Op::rcp:
            return by([=] { return T(1) / a; });
          case Op::sqrt:
            return by([=] { return std::sqrt(a); });
          case Op::rsqrt:
            return bits_of(T(1) / std::sqrt(a));
          case Op::ex2:
            return bits_of(std::exp2(a));
          case Op::lg2:
            return bits_of(std::log2(a));
          case Op::copysign:  // the sign of the first
            return bits_of(std::copysign(b, a));
          default:
            break;
        }
      fail("line " + std::to_string(how.line) + ": real numbers cannot do that");
    });
    return flushed(how, result);
  }
  auto const type = how.type;
  auto const bits = size_of(type) * 8;
  switch (how.op) {
    case Op::mul:
    case Op::mad:
    case Op::madc:
      return with_integer(type, [&](auto kind) -> std::uint64_t {
        using T = decltype(kind);
        auto const a = as<T>(a_bits), b = as<T>(b_bits);
        auto const product = static_cast<Signed128>(a) * static_cast<Signed128>(b);
        if (how.mode == Mode::wide) {
          auto const sum = static_cast<std::uint64_t>(product) + (how.op == Op::mul ? 0 : c_bits);
          return sizeof(T) == 2 ? sum & 0xffffffffu : sum;
        }
        using Wide = std::make_unsigned_t<T>;
        auto const half = static_cast<Wide>(how.mode == Mode::high ? static_cast<Unsigned128>(product) >> bits
                                                                   : static_cast<Unsigned128>(product));
        if (how.op == Op::mul) return half;
        auto const sum =
            static_cast<Unsigned128>(half) + static_cast<Wide>(c_bits) + (how.op == Op::madc && carry ? 1u : 0u);
        if (how.carries) carry = (sum >> bits) != 0;
        return static_cast<Wide>(sum);
      });
    case Op::add:
    case Op::addc:
    case Op::sub:
    case Op::subc:
      return with_integer(type, [&](auto kind) -> std::uint64_t {
        using T = std::make_unsigned_t<decltype(kind)>;
        bool const subtracts = how.op == Op::sub || how.op == Op::subc;
        auto const a = static_cast<T>(a_bits), b = static_cast<T>(b_bits);
        auto const in = (how.op == Op::addc || how.op == Op::subc) && carry ? 1u : 0u;
        auto const wide = subtracts ? static_cast<Unsigned128>(a) - b - in : static_cast<Unsigned128>(a) + b + in;
        if (how.carries) carry = ((wide >> bits) & 1u) != 0;
        return static_cast<T>(wide);
      });
    case Op::div:
    case Op::rem:
      return with_integer(type, [&](auto kind) -> std::uint64_t {
        using T = decltype(kind);
        auto const a = static_cast<Signed128>(as<T>(a_bits)), b = static_cast<Signed128>(as<T>(b_bits));
        if (b == 0) return how.op == Op::div ? bits_of(static_cast<T>(-1)) : bits_of(as<T>(a_bits));
        return bits_of(static_cast<T>(how.op == Op::div ? a / b : a % b));
      });
    case Op::min:
    case Op::max:
      return with_integer(type, [&](auto kind) -> std::uint64_t {
        auto const a = as<decltype(kind)>(a_bits), b = as<decltype(kind)>(b_bits);
        return bits_of(how.op == Op::min ? std::min(a, b) : std::max(a, b));
      });
    case Op::abs:
      return with_integer(type, [&](auto kind) -> std::uint64_t {
        auto const a = as<decltype(kind)>(a_bits);
        return bits_of(static_cast<decltype(kind)>(a < 0 ? 0 - a : a));
      });
    case Op::neg:
      return with_integer(type, [&](auto kind) -> std::uint64_t {
        using T = std::make_unsigned_t<decltype(kind)>;
        return static_cast<T>(0u - static_cast<T>(a_bits));
      });
    case Op::and_:
      return a_bits & b_bits;
    case Op::or_:
      return a_bits | b_bits;
    case Op::xor_:
      return a_bits ^ b_bits;
    case Op::not_:
      return type == Type::pred ? (a_bits ^ 1) & 1 : ~a_bits;
    case Op::shl: {
      auto const by = static_cast<std::uint32_t>(b_bits);
      if (by >= bits) return 0;
      return with_integer(type, [&](auto kind) -> std::uint64_t {
        using T = std::make_unsigned_t<decltype(kind)>;
        return static_cast<T>(static_cast<std::uint64_t>(static_cast<T>(a_bits)) << by);
      });
    }
    case Op::shr: {
      auto const by = std::min<std::uint64_t>(static_cast<std::uint32_t>(b_bits), bits);
      return with_integer(type, [&](auto kind) -> std::uint64_t {
        using T = decltype(kind);
        if constexpr (std::is_signed_v<T>)
          return bits_of(
              static_cast<T>(static_cast<std::int64_t>(as<T>(a_bits)) >> std::min<std::uint64_t>(by, bits - 1)));
        else
          return by >= bits ? 0 : static_cast<std::uint64_t>(static_cast<T>(a_bits)) >> by;
      });
    }
    case Op::popc:
      return static_cast<std::uint64_t>(bits == 64 ? std::popcount(a_bits)
                                                   : std::popcount(static_cast<std::uint32_t>(a_bits)));
    case Op::clz:
      return static_cast<std::uint64_t>(bits == 64 ? std::countl_zero(a_bits)
                                                   : std::countl_zero(static_cast<std::uint32_t>(a_bits)));
    case Op::brev: {
      std::uint64_t turned = 0;
      for (std::size_t i = 0; i < bits; ++i) turned |= (a_bits >> i & 1) << (bits - 1 - i);
      return turned;
    }
    case Op::bmsk: {  // b bits from bit a on, as far as they exist
      auto const from = std::min<std::uint64_t>(static_cast<std::uint32_t>(a_bits), 32);
      auto const count = std::min<std::uint64_t>(static_cast<std::uint32_t>(b_bits), 32);
      return (((std::uint64_t{1} << count) - 1) << from) & 0xffffffffu;
    }
    case Op::shf: {  // shifts 64 bits
      auto const by = how.wraps ? c_bits & 31u : std::min<std::uint64_t>(static_cast<std::uint32_t>(c_bits), 32);
      auto const whole = (a_bits & 0xffffffffu) | b_bits << 32;
      return (how.mode == Mode::left ? (whole << by) >> 32 : whole >> by) & 0xffffffffu;
    }
    case Op::prmt: {
      auto const bytes = (a_bits & 0xffffffffu) | (b_bits << 32);
      std::uint64_t result = 0;
      for (unsigned i = 0; i < 4; ++i) {
        auto const choice = c_bits >> (4 * i) & 15u;
        auto byte = bytes >> (8 * (choice & 7u)) & 0xffu;
        if (choice & 8u) byte = byte & 0x80u ? 0xffu : 0;
        result |= byte << (8 * i);
      }
      return result;
    }
    default:
      fail("line " + std::to_string(how.line) + ": integers cannot do that");
  }
}

/// Replaces `length` bits of `b`, which has `bits` bits, by bits of `a`, from `begin` on.
[[nodiscard]] inline std::uint64_t insert(unsigned bits, std::uint64_t a, std::uint64_t b, std::uint64_t begin,
                                          std::uint64_t length) {
  begin &= 255u;
  length &= 255u;
  auto const all = ~std::uint64_t{0} >> (64 - bits);
  if (begin >= bits) return b & all;
  auto const mask = (length >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << length) - 1) << begin;
  return ((b & ~mask) | (a << begin & mask)) & all;
}

/// Selects for each bit the bit of the table with the three operands' bits as index.
[[nodiscard]] inline std::uint64_t by_table(std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t table) {
  std::uint64_t result = 0;
  for (unsigned i = 0; i < 32; ++i)
    result |= (table >> ((a >> i & 1u) << 2 | (b >> i & 1u) << 1 | (c >> i & 1u)) & 1u) << i;
  return result;
}

/// Reduces values of a warp's lanes; `a` and `b` are values of lanes or partial results.
[[nodiscard]] inline std::uint64_t joined(Instruction const& how, std::uint64_t a, std::uint64_t b) {
  return with_integer(how.type, [&](auto kind) -> std::uint64_t {
    using T = decltype(kind);
    switch (how.mode) {
      case Mode::add:
        return (a + b) & 0xffffffffu;
      case Mode::min:
        return bits_of(std::min(as<T>(a), as<T>(b)));
      case Mode::max:
        return bits_of(std::max(as<T>(a), as<T>(b)));
      case Mode::and_:
        return a & b;
      case Mode::or_:
        return a | b;
      case Mode::xor_:
        return a ^ b;
      default:
        fail("line " + std::to_string(how.line) + ": a reduction of a warp is not known");
    }
  });
}

/// Returns the value after an atomic operation on `before`.
[[nodiscard]] inline std::uint64_t exchanged(Instruction const& how, std::uint64_t before, std::uint64_t a,
                                             std::uint64_t b) {
  return with_integer(how.type, [&](auto kind) -> std::uint64_t {
    using T = decltype(kind);
    switch (how.mode) {
      case Mode::add:
        return before + a;
      case Mode::min:
        return bits_of(std::min(as<T>(before), as<T>(a)));
      case Mode::max:
        return bits_of(std::max(as<T>(before), as<T>(a)));
      case Mode::exch:
        return a;
      case Mode::cas:
        return as<T>(before) == as<T>(a) ? b : before;
      case Mode::and_:
        return before & a;
      case Mode::or_:
        return before | a;
      case Mode::xor_:
        return before ^ a;
      case Mode::inc:
        return as<T>(before) >= as<T>(a) ? 0 : before + 1;
      default:
        fail("line " + std::to_string(how.line) + ": an atomic operation is not known");
    }
  });
}

/// Returns the source lane of a shuffle, and whether it is another lane in the segment; `b` and `c` are the
/// instruction's operands.
[[nodiscard]] inline std::pair<std::uint32_t, bool> taken_from(Mode mode, std::uint32_t lane, std::uint32_t b,
                                                               std::uint32_t c) noexcept {
  b &= 31u;
  auto const clamp = c & 31u, segment = c >> 8 & 31u, least = lane & segment, end = least | (clamp & ~segment);
  auto from = mode == Mode::up     ? static_cast<int>(lane) - static_cast<int>(b)
              : mode == Mode::down ? static_cast<int>(lane + b)
              : mode == Mode::bfly ? static_cast<int>(lane ^ b)
                                   : static_cast<int>(least | (b & ~segment));
  bool const within = mode == Mode::up ? from >= static_cast<int>(end) : from <= static_cast<int>(end);
  return {within ? static_cast<std::uint32_t>(from) : lane, within};
}

}  // namespace ptx
