// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "small_kernel.hpp"

namespace {

using namespace ptx_test;
using namespace std::string_literals;

constexpr std::uint32_t all_ones = ~0u;

}  // namespace

TEST_CASE("integer instructions follow the PTX manual") {
  CHECK(evaluate("mul.hi.u32 %r4, %r1, %r2;", 0x80000000u, 6) == 3);
  CHECK(evaluate("mul.hi.s32 %r4, %r1, %r2;", 0x80000000u, 6) == static_cast<std::uint32_t>(-3));
  CHECK(evaluate("mad.lo.s32 %r4, %r1, %r2, %r3;", 7, all_ones, 3) == static_cast<std::uint32_t>(-4));
  CHECK(evaluate("div.s32 %r4, %r1, %r2;", static_cast<std::uint32_t>(-7), 2) == static_cast<std::uint32_t>(-3));
  CHECK(evaluate("rem.s32 %r4, %r1, %r2;", static_cast<std::uint32_t>(-7), 2) == all_ones);
  CHECK(evaluate("shl.b32 %r4, %r1, %r2;", 3, 31) == 0x80000000u);
  CHECK(evaluate("shl.b32 %r4, %r1, %r2;", 3, 32) == 0);
  CHECK(evaluate("shr.s32 %r4, %r1, %r2;", 0x80000000u, 40) == all_ones);
  CHECK(evaluate("shr.u32 %r4, %r1, %r2;", 0x80000000u, 31) == 1);
  CHECK(evaluate("prmt.b32 %r4, %r1, %r2, 0x1054;", 0x33221100u, 0x77665544u) == 0x11005544u);
  CHECK(evaluate("bfi.b32 %r4, %r1, %r2, 8, 4;", 0xffu, 0) == 0xf00u);
  auto const insert_64 = [](std::string const& position, std::string const& half) {
    return evaluate("cvt.u64.u32 %rd5, %r1;\ncvt.u64.u32 %rd6, %r2;\nbfi.b64 %rd7, %rd5, %rd6, " + position +
                        ";\nshr.u64 %rd7, %rd7, " + half + ";\ncvt.u32.u64 %r4, %rd7;",
                    0x12345678u, 0x9abcdef0u);
  };
  CHECK(insert_64("32, 32", "0") == 0x9abcdef0u);
  CHECK(insert_64("32, 32", "32") == 0x12345678u);
  CHECK(insert_64("0, 64", "0") == 0x12345678u);
  CHECK(insert_64("60, 64", "32") == 0x80000000u);
  CHECK(insert_64("64, 4", "0") == 0x9abcdef0u);
  CHECK(evaluate("bmsk.clamp.b32 %r4, %r1, %r2;", 30, 8) == 0xc0000000u);
  CHECK(evaluate("clz.b32 %r4, %r1;", 0) == 32);
  CHECK(evaluate("lop3.b32 %r4, %r1, %r2, %r3, 0xca;", 0xff00ff00u, 0x12345678u, 0x9abcdef0u) == 0x12bc56f0u);
  CHECK(evaluate("shf.l.wrap.b32 %r4, %r1, %r2, 36;", 0x12345678u, 0x9abcdef0u) == 0xabcdef01u);
  CHECK(evaluate("shf.r.wrap.b32 %r4, %r1, %r2, 36;", 0x12345678u, 0x9abcdef0u) == 0x01234567u);
  CHECK(evaluate("shf.r.clamp.b32 %r4, %r1, %r2, 36;", 0x12345678u, 0x9abcdef0u) == 0x9abcdef0u);
  CHECK(evaluate("brev.b32 %r4, %r1;", 1) == 0x80000000u);
  CHECK(evaluate("popc.b32 %r4, %r1;", 0xf0f0u) == 8);
  CHECK(evaluate("max.s32 %r4, %r1, %r2;", all_ones, 1) == 1);
  CHECK(evaluate("max.u32 %r4, %r1, %r2;", all_ones, 1) == all_ones);
  CHECK(evaluate("cvt.u16.u32 %rs1, %r1;\ncvt.s32.s16 %r4, %rs1;", 0x1ffffu) == all_ones);
}

TEST_CASE("a carry passes from one addition to the next") {
  CHECK(evaluate("add.cc.u32 %r4, %r1, %r2;\naddc.u32 %r4, %r3, 0;", all_ones, 1, 5) == 6);
  CHECK(evaluate("add.cc.u32 %r4, %r1, %r2;\naddc.u32 %r4, %r3, 0;", 1, 1, 5) == 5);
  CHECK(evaluate("sub.cc.u32 %r4, %r1, %r2;\nsubc.u32 %r4, %r3, 0;", 0, 1, 5) == 4);
  CHECK(evaluate("mad.lo.cc.u32 %r4, %r1, %r2, %r3;\nmadc.hi.u32 %r4, %r1, %r2, 0;", 0x80000000u, 2, 0) == 1);
  CHECK(evaluate("mad.lo.cc.u32 %r4, %r1, %r2, %r3;\nmadc.hi.u32 %r4, %r1, %r2, 0;", all_ones, 1, 1) == 1);
}

TEST_CASE("real numbers are rounded as the instruction says, and min and max ignore one NaN") {
  auto const of = [](std::string const& instruction, float a, float b = 0, float c = 0) {
    return real(
        evaluate("mov.b32 %f1, %r1;\nmov.b32 %f2, %r2;\nmov.b32 %f3, %r3;\n" + instruction + "\nmov.b32 %r4, %f4;",
                 bits(a), bits(b), bits(c)));
  };
  auto const nan = std::numeric_limits<float>::quiet_NaN();
  auto const small = std::ldexp(1.0f, -30);
  CHECK(of("fma.rn.f32 %f4, %f1, %f2, %f3;", 1 + small * 128, 1 - small * 128, -1) == -std::ldexp(1.0f, -46));
  CHECK(of("add.f32 %f4, %f1, %f2;", 1, small) == 1);
  CHECK(of("fma.rm.f32 %f4, %f1, %f2, %f3;", 1, 1, -small) < 1);
  CHECK(of("fma.rn.f32 %f4, %f1, %f2, %f3;", 1, 1, -small) == 1);
  CHECK(of("max.f32 %f4, %f1, %f2;", nan, 2) == 2);
  CHECK(of("cvt.sat.f32.f32 %f4, %f1;", 3) == 1);
  CHECK(of("cvt.sat.f32.f32 %f4, %f1;", nan) == 0);
  CHECK(of("cvt.rni.f32.f32 %f4, %f1;", 2.5f) == 2);
  CHECK(of("ex2.approx.f32 %f4, %f1;", -130) == std::ldexp(1.0f, -130));
  CHECK(of("ex2.approx.ftz.f32 %f4, %f1;", -130) == 0);
  CHECK(of("ex2.approx.ftz.f32 %f4, %f1;", 3) == 8);
  CHECK(of("lg2.approx.ftz.f32 %f4, %f1;", std::ldexp(1.0f, -130)) == -std::numeric_limits<float>::infinity());
  CHECK(of("mul.ftz.f32 %f4, %f1, %f2;", std::ldexp(1.0f, -140), std::ldexp(1.0f, 40)) == 0);
  CHECK(of("copysign.f32 %f4, %f1, %f2;", -0.0f, 3) == -3);
  CHECK(of("cvt.f64.f32 %d1, %f1;\nadd.f64 %d1, %d1, %d1;\ncvt.rn.f32.f64 %f4, %d1;", 0.1f) == 0.2f);
  CHECK(evaluate("mov.b32 %f1, %r1;\ncvt.rzi.s32.f32 %r4, %f1;", bits(-2.9f)) == static_cast<std::uint32_t>(-2));
  CHECK(evaluate("mov.b32 %f1, %r1;\ncvt.rzi.s32.f32 %r4, %f1;", bits(1e20f)) == 0x7fffffffu);
  CHECK(evaluate("mov.b32 %f1, %r1;\ncvt.rzi.s32.f32 %r4, %f1;", bits(nan)) == 0);
  for (auto const& [comparison, result] : {std::pair{"lt", 0u}, {"ltu", 1u}, {"neu", 1u}, {"ne", 0u}, {"nan", 1u}})
    CHECK(evaluate("mov.b32 %f1, %r1;\nsetp."s + comparison + ".f32 %p1, %f1, %f1;\nselp.u32 %r4, 1, 0, %p1;",
                   bits(nan)) == result);
}

TEST_CASE("two-byte numbers are rounded once, and TF32 keeps ten bits") {
  auto const pair = [](std::string const& type, float high, float low) {
    return evaluate("mov.b32 %f1, %r1;\nmov.b32 %f2, %r2;\ncvt.rn." + type + ".f32 %r4, %f1, %f2;", bits(high),
                    bits(low));
  };
  auto const nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(pair("f16x2", 1, -2) == 0x3c00c000u);
  CHECK(pair("f16x2", 65504, 65520) == 0x7bff7c00u);
  CHECK(pair("f16x2", std::ldexp(1.0f, -24), std::ldexp(1.0f, -25)) == 0x00010000u);
  CHECK(pair("f16x2", nan, std::ldexp(1023.75f, -24)) == 0x7fff0400u);
  CHECK(pair("bf16x2", 1 + std::ldexp(1.0f, -8), 1 + std::ldexp(3.0f, -8)) == 0x3f803f82u);
  CHECK(pair("bf16x2", -0.0f, std::ldexp(1.0f, -133)) == 0x80000001u);
  CHECK(pair("bf16x2", std::numeric_limits<float>::max(), std::numeric_limits<float>::lowest()) == 0x7f80ff80u);
  for (auto const type : {ptx::Type::f16, ptx::Type::bf16})
    for (std::uint32_t i = 0; i < 0x10000u; ++i)
      if (auto const value = ptx::widened(type, i); value == value && ptx::narrowed(type, value) != i)
        FAIL(i, " differs from its expected value");
  CHECK(evaluate("cvt.u16.u32 %rs1, %r1;\ncvt.f32.f16 %f1, %rs1;\nmov.b32 %r4, %f1;", 0xc001u) == bits(-2.001953125f));
  CHECK(evaluate("mov.b32 %f1, %r1;\ncvt.rz.bf16.f32 %rs1, %f1;\ncvt.u32.u16 %r4, %rs1;", 0x3fffffffu) == 0x3fffu);

  // 1.5 (1 + 2^-7) is between two bfloat16 numbers, and is rounded up unless the least bit is missing.
  CHECK(evaluate("fma.rn.bf16x2 %r4, %r1, %r2, %r3;", 0x3fc03fc0u, 0x3f813f81u, 0x80009d80u) == 0x3fc23fc1u);
  CHECK(evaluate("mul.bf16x2 %r4, %r1, %r2;", 0x40004000u, 0x3f80bf00u) == 0x4000bf80u);
  CHECK(evaluate("add.f16x2 %r4, %r1, %r2;", 0x3c004000u, 0x3c00c000u) == 0x40000000u);
  CHECK(evaluate("max.bf16x2 %r4, %r1, %r2;", 0x7fff3f80u, 0x40004000u) == 0x40004000u);
  CHECK(evaluate("neg.bf16x2 %r4, %r1;", 0x3f80bf80u) == 0xbf803f80u);

  auto const tf32 = [](std::string const& rounding, std::uint32_t from) {
    return evaluate("mov.b32 %f1, %r1;\ncvt." + rounding + ".tf32.f32 %r4, %f1;", from);
  };
  CHECK(tf32("rna", 0x3f801000u) == 0x3f802000u);
  CHECK(tf32("rna", 0x3f800fffu) == 0x3f800000u);
  CHECK(tf32("rn", 0x3f801000u) == 0x3f800000u);
  CHECK(tf32("rn", 0x3f803000u) == 0x3f804000u);
}

TEST_CASE("vectors, 64 bits in two halves, calls, loops and predicates") {
  Values<std::uint32_t> const in({1, 2, 3, 4}), out({0, 0, 0, 0});
  run(".func (.param .b32 r) twice(.param .b32 x)\n{\n.reg .b32 %r<3>;\nld.param.u32 %r1, [x];\nadd.s32 %r2, %r1, "
      "%r1;\n"
      "st.param.b32 [r+0], %r2;\nret;\n}\n" +
          kernel(
              "ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd1];\nmov.b64 %rd4, {%r2, %r3};\nshl.b64 %rd4, %rd4, 1;\n"
              "mov.b64 {%r2, %r3}, %rd4;\n{\n.param .b32 p0;\nst.param.b32 [p0+0], %r4;\n.param .b32 v0;\n"
              "call.uni (v0), twice, (p0);\nld.param.b32 %r4, [v0+0];\n}\nmov.u32 %r6, 0;\n$L1:\nadd.s32 %r6, %r6, 1;\n"
              "add.s32 %r5, %r5, 1;\nsetp.lt.s32 %p1, %r6, 10;\n@%p1 bra $L1;\n@!%p1 add.s32 %r5, %r5, 100;\n"
              "st.global.v4.u32 [%rd2], {%r2, %r3, %r4, %r5};"),
      in.data(), out.data(), 1);
  CHECK(std::array{out[0], out[1], out[2], out[3]} == std::array{2u, 4u, 6u, 114u});
  CHECK(found() == "");
}

TEST_CASE("lanes of a warp exchange values, each with its own source") {
  auto const after = [](std::string const& exchange) {
    std::vector<std::uint32_t> numbers(32);
    for (std::uint32_t i = 0; i < 32; ++i) numbers[i] = 100 + i;
    Values<std::uint32_t> const in(numbers), out(std::vector<std::uint32_t>(32));
    run(kernel("ld.global.u32 %r2, [%rd1];\n" + exchange + "\nst.global.u32 [%rd2], %r3;"), in.data(), out.data());
    CHECK(found() == "");
    return std::array{out[0], out[1], out[8], out[31]};
  };
  CHECK(after("shfl.sync.bfly.b32 %r3|%p1, %r2, 1, 31, -1;") == std::array{101u, 100u, 109u, 130u});
  CHECK(after("shfl.sync.up.b32 %r3|%p1, %r2, 1, 0, -1;") == std::array{100u, 100u, 107u, 130u});
  CHECK(after("shfl.sync.down.b32 %r3|%p1, %r2, 2, 31, -1;") == std::array{102u, 103u, 110u, 131u});
  CHECK(after("shfl.sync.idx.b32 %r3|%p1, %r2, 5, 31, -1;") == std::array{105u, 105u, 105u, 105u});
  // In segments of eight.
  CHECK(after("shfl.sync.idx.b32 %r3|%p1, %r2, 1, 6175, -1;") == std::array{101u, 101u, 109u, 125u});
  CHECK(after("shfl.sync.up.b32 %r3|%p1, %r2, 1, 6144, -1;") == std::array{100u, 100u, 108u, 130u});
  CHECK(after("redux.sync.add.s32 %r3, %r2, -1;")[2] == 32 * 100 + 31 * 16);
  CHECK(after("sub.s32 %r2, %r2, 110;\nredux.sync.min.s32 %r3, %r2, -1;")[0] == static_cast<std::uint32_t>(-10));
  CHECK(after("sub.s32 %r2, %r2, 110;\nredux.sync.max.u32 %r3, %r2, -1;")[3] == all_ones);
  CHECK(after("redux.sync.or.b32 %r3, %r2, -1;")[0] == 255);
  CHECK(after("setp.lt.u32 %p1, %r1, 2;\nvote.sync.ballot.b32 %r3, %p1, -1;") == std::array{3u, 3u, 3u, 3u});
}

TEST_CASE("writes before a barrier are visible after it, and missing barriers are reported") {
  Values<std::uint32_t> const in(std::vector<std::uint32_t>(64, 1)), out(std::vector<std::uint32_t>(64));
  auto const turned = [&](std::string const& meet) {
    run(kernel("mov.u32 %r5, s;\nmul.lo.s32 %r6, %r1, 4;\nadd.s32 %r7, %r5, %r6;\nst.shared.u32 [%r7], %r1;\n" + meet +
                   "\nsub.s32 %r6, 252, %r6;\nadd.s32 %r7, %r5, %r6;\nld.shared.u32 %r2, [%r7];\nst.global.u32 [%rd2], "
                   "%r2;",
               ".shared .align 4 .b8 s[256];\n"),
        in.data(), out.data(), 64);
    return found();
  };
  CHECK(turned("bar.sync 0;") == "");
  CHECK((out[0] == 63 && out[63] == 0));
  CHECK(turned("").find("nothing says who comes first") != std::string::npos);
  CHECK(turned("bar.warp.sync -1;").find("nothing says who comes first") != std::string::npos);
  // A shuffle is not a memory barrier.
  CHECK(turned("shfl.sync.bfly.b32 %r8|%p1, %r1, 1, 31, -1;").find("nothing says") != std::string::npos);
}

TEST_CASE("after __syncwarp, lanes see the writes of their warp") {
  Values<std::uint32_t> const in(std::vector<std::uint32_t>(32, 1)), out(std::vector<std::uint32_t>(32));
  auto const turned = [&](std::string const& meet) {
    run(kernel("st.global.u32 [%rd1], %r1;\n" + meet +
               "\nld.global.u32 %r2, [%rd1+0];\nxor.b32 %r4, %r1, 1;\n"
               "mul.wide.u32 %rd4, %r4, 4;\nsub.s64 %rd5, %rd1, %rd3;\nadd.s64 %rd5, %rd5, %rd4;\n"
               "ld.global.u32 %r2, [%rd5];\nst.global.u32 [%rd2], %r2;"),
        in.data(), out.data());
    return found();
  };
  CHECK(turned("bar.warp.sync -1;") == "");
  CHECK(out[0] == 1);
  CHECK(turned("").find("nothing says who comes first") != std::string::npos);
}

TEST_CASE("races between blocks are reported, except between atomic operations") {
  Values<std::uint32_t> const in({0, 0}), out({0, 0});
  run(kernel("st.global.u32 [%rd1], 1;"), in.data(), out.data(), 1, 2);
  CHECK(found().find("in another block") != std::string::npos);
  run(kernel("atom.global.add.u32 %r2, [%rd1], 1;"), out.data(), in.data(), 1, 2);
  CHECK(found() == "");
  CHECK(out[0] == 2);
}

TEST_CASE("atomic operations of a block do not race with each other, but with other accesses") {
  Values<std::uint32_t> const in(std::vector<std::uint32_t>(64)), out(std::vector<std::uint32_t>(64));
  // Each thread counts in shared memory, as a histogram does, and reads the count.
  auto const counted = [&](std::string const& reset, std::string const& meet, std::uint32_t threads) {
    run(kernel("setp.eq.u32 %p1, %r1, 0;\n@%p1 st.shared.u32 [s], 0;\n" + reset +
                   "\natom.shared.add.u32 %r2, [s], 1;\n" + meet +
                   "\nld.shared.u32 %r2, [s];\n"
                   "st.global.u32 [%rd2], %r2;",
               ".shared .align 4 .b8 s[4];\n"),
        in.data(), out.data(), threads);
    return found();
  };
  CHECK(counted("bar.sync 0;", "bar.sync 0;", 64) == "");
  CHECK(out[0] == 64);
  CHECK(counted("bar.warp.sync -1;", "bar.warp.sync -1;", 32) == "");
  CHECK(out[0] == 32);
  CHECK(counted("bar.sync 0;", "bar.warp.sync -1;", 64).find("nothing says who comes first") != std::string::npos);
  CHECK(counted("bar.sync 0;", "", 32).find("nothing says who comes first") != std::string::npos);
  CHECK(counted("", "bar.sync 0;", 32).find("nothing says who comes first") != std::string::npos);

  auto const in_one_word = [&](std::string const& access) {
    run(kernel("sub.s64 %rd1, %rd1, %rd3;\n" + access), in.data(), out.data());
    return found();
  };
  CHECK(in_one_word("atom.global.add.u32 %r2, [%rd1], 1;\nld.volatile.global.u32 %r3, [%rd1];") == "");
  CHECK(in_one_word("atom.global.add.u32 %r2, [%rd1], 1;\nld.global.u32 %r3, [%rd1];").find("nothing says") !=
        std::string::npos);
}

TEST_CASE(
    "reads of uninitialized memory and accesses outside of arrays are reported, and undefined values end the program") {
  Values<std::uint32_t> const in(std::vector<std::uint32_t>(32, 1)), out(std::vector<std::uint32_t>(32));
  auto const shared = ".shared .align 4 .b8 s[16];\n"s;
  run(kernel("ld.shared.u32 %r2, [s];", shared), in.data(), out.data(), 1);
  CHECK(found().find("before it is written") != std::string::npos);

  check_death("there is no device memory where 4 bytes are read", kernel("ld.global.u32 %r2, [%rd1+4];"), in.data(),
              out.data());
  check_death("there is no device memory where 4 bytes are written", kernel("st.u32 [0], %r1;"), in.data(), out.data());
  check_death("an address of 16 bytes is not aligned", kernel("ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd1];"),
              in.data(), out.data());
  check_death("a shared variable has an end before", kernel("st.shared.u32 [s+16], %r1;", shared), in.data(),
              out.data());
  check_death("it traps", kernel("trap;"), in.data(), out.data());
  check_death("threads wait for others that do not come",
              kernel("setp.lt.u32 %p1, %r1, 7;\n@%p1 bra $L1;\nbar.warp.sync -1;\n$L1:\nbar.sync 0;"), in.data(),
              out.data());
  check_death("unheard.of is not known", kernel("unheard.of;"), in.data(), out.data());
}

TEST_CASE("divergent barriers, and barriers after a thread's return, are reported") {
  Values<std::uint32_t> const in(std::vector<std::uint32_t>(32)), out(std::vector<std::uint32_t>(32));
  run(kernel("setp.lt.u32 %p1, %r1, 7;\n@%p1 bra $L1;\nbar.sync 0;\nbra $L2;\n$L1:\nbar.sync 0;\n$L2:"), in.data(),
      out.data());
  CHECK(found().find("threads of a block meet at line ") != std::string::npos);
  run(kernel("setp.lt.u32 %p1, %r1, 7;\n@%p1 ret;\nbar.sync 0;"), in.data(), out.data());
  CHECK(found().find("some threads of a block have returned") != std::string::npos);
}

TEST_CASE("an access's traffic is counted, and the minimum that it needs") {
  ptx::Counts counts(nullptr);
  ptx::Instruction load, store;
  load.op = ptx::Op::ld;
  store.op = ptx::Op::st;
  for (std::uint32_t i = 0; i < 32; ++i) {
    auto const lane = (i + 5) % 32;  // lanes may access in any order
    std::uint64_t const at = 4096;
    counts.note(lane, load, 0, at + 32 * lane, 16, false, false);    // half of each sector
    counts.note(lane, load, 1, at, 4, false, false);                 // one word for all lanes
    counts.note(lane, store, 0, at + 128 * lane, 4, true, true);     // all in one bank
    counts.note(32 + lane, store, 0, at + 4 * lane, 4, true, true);  // each in its own
    // A quarter of a warp at a time, the second quarter in reverse.
    counts.note(64 + lane, store, 0, at + 16 * (lane / 8 == 1 ? 23 - lane : lane), 16, true, true);
  }
  for (int i = 0; i < 2; ++i) counts.note_product("k");
  counts.end_block("k", 7, [](ptx::Instruction const& at) { return at.op == ptx::Op::ld ? "a" : "b"; });
  CHECK(counts.text() ==
        "kernel\tplace\taccess\ttimes\tlanes\tpieces\tleast pieces\n"
        "k\ta\tglobal read\t2\t64\t33\t17\n"
        "k\tb\tshared write\t3\t96\t37\t6\n"
        "k\t\tinstructions\t7\n"
        "k\t\tproducts of matrices\t2\n");
}
