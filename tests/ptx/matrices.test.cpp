// SPDX-License-Identifier: Apache-2.0
// Instructions of tensor-core kernels: products and copies of matrices, asynchronous copies, dynamic shared memory.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "small_kernel.hpp"

namespace {

using namespace ptx_test;
using namespace std::string_literals;

/// Numbers of a matrix in a binary format.
struct Format {
  std::uint32_t total, exponent, read;  // numbers of bits: all, exponent, and the mantissa bits that are read
  [[nodiscard]] std::uint32_t mantissa() const { return total - exponent - 1; }
  [[nodiscard]] std::uint32_t bias() const { return (1u << (exponent - 1)) - 1; }
  /// Between 0.5 and 4, of either sign.
  [[nodiscard]] std::uint32_t number(std::uint32_t random) const {
    auto const digits = mantissa();
    return (random & 1u) << (total - 1) | (bias() - 1 + (random >> 1) % 3) << digits | random >> (32 - digits);
  }
  [[nodiscard]] float value(std::uint32_t bits) const {
    auto const digits = mantissa();
    auto const part = (bits & ((1u << digits) - 1)) >> (digits - read);
    auto const size = std::ldexp(1 + std::ldexp(static_cast<float>(part), -static_cast<int>(read)),
                                 static_cast<int>(bits >> digits & ((1u << exponent) - 1)) - static_cast<int>(bias()));
    return (bits >> (total - 1) & 1u) != 0 ? -size : size;
  }
};

struct Position {
  std::uint32_t row, column;
};
/// Registers of a warp, ordered by register and then by lane: number i of a lane is at place(lane, i).
template <class Place>
std::vector<std::uint32_t> fragments(std::vector<std::uint32_t> const& matrix, std::uint32_t columns,
                                     std::uint32_t registers, std::uint32_t per_register, Place const& place) {
  std::vector<std::uint32_t> all(registers * 32);
  for (std::uint32_t lane = 0; lane < 32; ++lane)
    for (std::uint32_t i = 0; i < registers * per_register; ++i) {
      auto const at = place(lane, i);
      all[i / per_register * 32 + lane] |= matrix[at.row * columns + at.column] << (16 * (i % per_register));
    }
  return all;
}
/// Registers from `first` on, in braces.
std::string list(std::uint32_t first, std::uint32_t count) {
  std::string text = "{";
  for (auto i = first; i < first + count; ++i) text += (i > first ? ", %r" : "%r") + std::to_string(i);
  return text + "}";
}
std::string load(std::uint32_t first, std::uint32_t count) {
  std::string text;
  for (std::uint32_t i = 0; i < count; ++i)
    text += "ld.global.u32 %r" + std::to_string(first + i) + ", [%rd1+" + std::to_string(128 * i) + "];\n";
  return text;
}
std::string store(std::uint32_t first, std::uint32_t count) {
  std::string text;
  for (std::uint32_t i = 0; i < count; ++i)
    text += "st.global.u32 [%rd2+" + std::to_string(128 * i) + "], %r" + std::to_string(first + i) + ";\n";
  return text;
}

/// Compares a warp's product of A, with 16 x k numbers, B and C with plain loops.
void check_product(std::string const& opcode, std::uint32_t k, Format const& format) {
  bool const halves = format.total == 16;
  auto const per_register = halves ? 2u : 1u, of_a = 16 * k / 32 / per_register, of_b = of_a / 2;
  std::uint32_t random = 1;
  auto const numbers = [&](std::uint32_t count) {
    std::vector<std::uint32_t> all(count);
    for (auto& each : all) each = format.number(random = random * 1664525u + 1013904223u);
    return all;
  };
  auto const a = numbers(16 * k), b = numbers(k * 8);
  std::vector<std::uint32_t> c(16 * 8);
  for (std::uint32_t i = 0; i < c.size(); ++i) c[i] = bits(static_cast<float>(i) / 3);

  // Element by element, as in the manual.
  auto const at_a = [=](std::uint32_t lane, std::uint32_t i) -> Position {
    if (!halves) return {lane / 4 + (i == 0 || i == 2 ? 0 : 8), lane % 4 + (i < 2 ? 0 : 4)};
    return {lane / 4 + (i < 2 || (i >= 4 && i < 6) ? 0 : 8), lane % 4 * 2 + (i & 1u) + (i < 4 ? 0 : 8)};
  };
  auto const at_b = [=](std::uint32_t lane, std::uint32_t i) -> Position {
    if (!halves) return {lane % 4 + 4 * i, lane / 4};
    return {lane % 4 * 2 + (i & 1u) + (i < 2 ? 0 : 8), lane / 4};
  };
  auto const at_c = [](std::uint32_t lane, std::uint32_t i) -> Position {
    return {lane / 4 + (i < 2 ? 0 : 8), lane % 4 * 2 + (i & 1u)};
  };
  auto in = fragments(a, k, of_a, per_register, at_a);
  for (auto const& more : {fragments(b, 8, of_b, per_register, at_b), fragments(c, 8, 4, 1, at_c)})
    in.insert(in.end(), more.begin(), more.end());
  Values<std::uint32_t> const memory(in), out(std::vector<std::uint32_t>(4 * 32));
  run(kernel(load(2, of_a + of_b + 4) + opcode + " " + list(14, 4) + ", " + list(2, of_a) + ", " +
             list(2 + of_a, of_b) + ", " + list(2 + of_a + of_b, 4) + ";\n" + store(14, 4)),
      memory.data(), out.data());
  CHECK(found() == "");
  for (std::uint32_t lane = 0; lane < 32; ++lane)
    for (std::uint32_t i = 0; i < 4; ++i) {
      auto const [row, column] = at_c(lane, i);
      auto sum = real(c[row * 8 + column]);
      for (std::uint32_t j = 0; j < k; ++j)
        sum = std::fma(format.value(a[row * k + j]), format.value(b[j * 8 + column]), sum);
      CHECK(real(out[i * 32 + lane]) == sum);
    }
}

/// Writes the two-byte numbers 0 to 255 to shared memory: 32 rows of eight. %r3 is the address of this lane's row.
std::string const rows =
    "mov.u32 %r2, s;\nshl.b32 %r3, %r1, 4;\nadd.s32 %r3, %r2, %r3;\nshl.b32 %r4, %r1, 3;\n"
    "mul.lo.s32 %r4, %r4, 65537;\nadd.s32 %r5, %r4, 65536;\nadd.s32 %r6, %r5, 131074;\nadd.s32 %r7, %r6, 131074;\n"
    "add.s32 %r8, %r7, 131074;\nst.shared.v4.u32 [%r3], {%r5, %r6, %r7, %r8};\nbar.warp.sync -1;\n";
std::string const shared = ".shared .align 16 .b8 s[512];\n";

/// Two adjacent numbers in register `i` of a lane.
std::uint32_t pair(std::uint32_t low, std::uint32_t high) { return low | high << 16; }
std::uint32_t whole(std::uint32_t matrix, std::uint32_t lane) {
  auto const at = 64 * matrix + 2 * lane;
  return pair(at, at + 1);
}
std::uint32_t turned(std::uint32_t matrix, std::uint32_t lane) {
  auto const at = 64 * matrix + 16 * (lane % 4) + lane / 4;
  return pair(at, at + 8);
}

}  // namespace

TEST_CASE("tensor cores multiply matrices of bfloat16, float16 and TF32") {
  Format const bfloat16{16, 8, 7}, float16{16, 5, 10}, tf32{32, 8, 10};
  check_product("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", 16, bfloat16);
  check_product("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32", 8, bfloat16);
  check_product("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 16, float16);
  check_product("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", 8, float16);
  check_product("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 8, tf32);
  check_product("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32", 4, tf32);
}

TEST_CASE("a warp loads, stores and transposes matrices") {
  Values<std::uint32_t> const in({0}), out(std::vector<std::uint32_t>(4 * 32));
  auto const check = [&](std::string const& text, std::uint32_t count, auto const& expected) {
    run(kernel(rows + text + store(10, count), shared), in.data(), out.data());
    CHECK(found() == "");
    for (std::uint32_t i = 0; i < count; ++i)
      for (std::uint32_t lane = 0; lane < 32; ++lane) CHECK(out[i * 32 + lane] == expected(i, lane));
  };
  for (auto const count : {1u, 2u, 4u}) {
    auto const x = ".x" + std::to_string(count);
    check("ldmatrix.sync.aligned.m8n8" + x + ".shared.b16 " + list(10, count) + ", [%r3];\n", count, whole);
    check("ldmatrix.sync.aligned.m8n8" + x + ".trans.shared::cta.b16 " + list(10, count) + ", [%r3];\n", count, turned);
    // A round trip through memory that is otherwise not read, transposed twice.
    auto const back = "ldmatrix.sync.aligned.m8n8" + x + ".trans.shared.b16 " + list(10, count) +
                      ", [%r3];\nadd.s32 %r9, %r3, 512;\nstmatrix.sync.aligned.m8n8" + x + ".trans.shared.b16 [%r9], " +
                      list(10, count) + ";\nbar.warp.sync -1;\nldmatrix.sync.aligned.m8n8" + x + ".shared.b16 " +
                      list(10, count) + ", [%r9];\n" + store(10, count);
    run(kernel(rows + back, ".shared .align 16 .b8 s[1024];\n"), in.data(), out.data());
    CHECK(found() == "");
    CHECK(out[32 * (count - 1) + 5] == whole(count - 1, 5));
  }
  check("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r9}, [%r3];\nmovmatrix.sync.aligned.m8n8.trans.b16 %r10, %r9;\n", 1,
        turned);
}

TEST_CASE("matrix loads need written, aligned and complete rows") {
  Values<std::uint32_t> const in({0}), out(std::vector<std::uint32_t>(4 * 32));
  auto const load_all = "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, [%r3];\n"s;
  auto const without_barrier = rows.substr(0, rows.find("bar.warp.sync"));
  run(kernel(without_barrier + load_all, shared), in.data(), out.data());
  CHECK(found().find("a thread reads at line 30 what another one writes at line 29, and nothing says") !=
        std::string::npos);
  // The second warp reads the first warp's writes.
  auto const by_first_warp = "setp.ge.u32 %p1, %r1, 32;\n@%p1 bra $L1;\n" + rows + "$L1:\n";
  auto const by_second =
      "mov.u32 %r2, s;\nand.b32 %r3, %r1, 31;\nshl.b32 %r3, %r3, 4;\nadd.s32 %r3, %r2, %r3;\n" + load_all;
  run(kernel(by_first_warp + by_second, shared), in.data(), out.data(), 64);
  CHECK(found() != "");
  run(kernel(by_first_warp + "bar.sync 0;\n" + by_second, shared), in.data(), out.data(), 64);
  CHECK(found() == "");

  auto const half =
      "mov.u32 %r2, s;\nshl.b32 %r3, %r1, 4;\nadd.s32 %r3, %r2, %r3;\nst.shared.v2.u32 [%r3], {%r1, %r1};\n"
      "bar.warp.sync -1;\n"s;
  run(kernel(half + load_all, shared), in.data(), out.data());
  CHECK(found().find("shared memory is read at line 25 before it is written") != std::string::npos);

  check_death("an address of 16 bytes is not aligned", kernel(rows + "add.s32 %r3, %r3, 8;\n" + load_all, shared),
              in.data(), out.data());
  check_death("a shared variable has an end before", kernel(rows + "add.s32 %r3, %r3, 16;\n" + load_all, shared),
              in.data(), out.data());
  check_death("an address of shared memory was expected", kernel(rows + "mov.u32 %r3, 4096;\n" + load_all, shared),
              in.data(), out.data());
  check_death("threads wait for others that do not come",
              kernel(rows + "setp.eq.u32 %p1, %r1, 3;\n@%p1 bra $L1;\n" + load_all + "$L1:\nbar.sync 0;", shared),
              in.data(), out.data());
  auto const few = lockstep_test::death_of([&] { run(kernel(rows + load_all, shared), in.data(), out.data(), 31); });
  CHECK_MESSAGE(few.printed.find("a partial warp computes with matrices") != std::string::npos, few.printed);
}

TEST_CASE("asynchronous copies are visible after the wait, and fill unread bytes with zeros") {
  std::vector<std::uint32_t> numbers(128);
  for (std::uint32_t i = 0; i < 128; ++i) numbers[i] = 100 + i;
  Values<std::uint32_t> const in(numbers), out(std::vector<std::uint32_t>(128));
  // %r3 is an address of shared memory, %rd4 of global memory: 16 bytes for each lane.
  auto const start =
      "mov.u32 %r2, s;\nshl.b32 %r3, %r1, 4;\nadd.s32 %r3, %r2, %r3;\nmul.wide.u32 %rd4, %r1, 12;\n"
      "add.s64 %rd5, %rd2, %rd4;\nadd.s64 %rd4, %rd1, %rd4;\n"s;
  auto const finish =
      "ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r3];\nst.global.v4.u32 [%rd5], {%r4, %r5, %r6, %r7};\n"s;
  auto const copy = "cp.async.cg.shared.global.L2::128B [%r3], [%rd4], 16;\n"s;
  auto const commit = "cp.async.commit_group;\n"s, wait = "cp.async.wait_group 0;\n"s;
  auto const found_by = [&](std::string const& text, std::uint32_t threads = 32) {
    run(kernel(start + text, shared), in.data(), out.data(), threads);
    return found();
  };
  auto const early = "before the asynchronous copy to it at line "s;

  CHECK(found_by(copy + commit + wait + finish) == "");
  CHECK((out[0] == 100 && out[127] == 227));
  CHECK(found_by(copy + "cp.async.wait_all;\n" + finish) == "");
  for (auto const& without : {copy + finish, copy + commit + finish, copy + wait + finish})
    CHECK(found_by(without).find("shared memory is read at line ") != std::string::npos);
  CHECK(found_by(copy + "st.shared.u32 [%r3], %r1;\n").find(early) != std::string::npos);
  CHECK(found_by(copy + copy).find(early) != std::string::npos);

  // The last group may be pending, the earlier ones may not.
  auto const small = [](int at) {
    return "cp.async.ca.shared.global [%r3+" + std::to_string(at) + "], [%rd4+" + std::to_string(at) + "], 4;\n";
  };
  auto const read = [](int at) { return "ld.shared.u32 %r4, [%r3+" + std::to_string(at) + "];\n"; };
  auto const two = small(0) + commit + small(4) + commit + "cp.async.wait_group 1;\n";
  CHECK(found_by(two + read(0)) == "");
  CHECK(found_by(two + read(4)).find(early) != std::string::npos);

  // Eight of sixteen bytes, and zero bytes of an invalid address.
  CHECK(found_by("mov.u32 %r8, 8;\ncp.async.ca.shared.global [%r3], [%rd4], 16, %r8;\n" + commit + wait + finish) ==
        "");
  CHECK((out[0] == 100 && out[1] == 101 && out[2] == 0 && out[3] == 0));
  CHECK(found_by("mov.u64 %rd4, 0;\ncp.async.ca.shared.global [%r3], [%rd4], 8, 0;\n" + commit + wait +
                 "ld.shared.v2.u32 {%r4, %r5}, [%r3];\nst.global.v2.u32 [%rd5], {%r4, %r5};\n") == "");
  CHECK((out[0] == 0 && out[1] == 0));

  // Other threads see the bytes after a barrier that follows the wait.
  auto const another =
      "xor.b32 %r8, %r1, 1;\nshl.b32 %r8, %r8, 4;\nadd.s32 %r8, %r2, %r8;\nld.shared.u32 %r4, [%r8];\n"s;
  CHECK(found_by(copy + commit + wait + "bar.warp.sync -1;\n" + another) == "");
  CHECK(found_by(copy + commit + wait + another) != "");
  CHECK(found_by(copy + commit + "bar.sync 0;\n" + wait + another) != "");
  CHECK(found_by(copy + commit + "bar.sync 0;\n" + another).find(early) != std::string::npos);
  // No thread may still read the bytes when a copy to them begins.
  auto const again = copy + commit + wait + "bar.sync 0;\n" + another;
  CHECK(found_by(again + "bar.sync 0;\n" + copy) == "");
  CHECK(found_by(again + copy).find("a thread writes at line ") != std::string::npos);

  auto const dies = [&](std::string const& why, std::string const& text) {
    check_death(why, kernel(start + text, shared), in.data(), out.data());
  };
  dies("an address of 16 bytes is not aligned", "add.s32 %r3, %r3, 4;\n" + copy);
  dies("an address of 16 bytes is not aligned", "add.s64 %rd4, %rd4, 8;\n" + copy);
  dies("a shared variable has an end before", "add.s32 %r3, %r3, 512;\n" + copy);
  dies("there is no device memory where 16 bytes are read", "add.s64 %rd4, %rd4, 16;\n" + copy);
  dies("reads more bytes than it writes", "cp.async.ca.shared.global [%r3], [%rd4], 8, 16;\n");
  dies("a copy of that many bytes is not known", "cp.async.cg.shared.global [%r3], [%rd4], 8;\n");
  dies("%p1 was not expected", "setp.eq.u32 %p1, %r1, 0;\ncp.async.ca.shared.global [%r3], [%rd4], 8, %p1;\n");
}

TEST_CASE("dynamic shared memory has the launch's size") {
  Values<std::uint32_t> const in({0}), out(std::vector<std::uint32_t>(32));
  auto const dynamic = ".extern .shared .align 128 .b8 d[];\n.extern .shared .align 16 .b8 e[];\n" + shared;
  auto const use =
      "mov.u32 %r2, d;\nmov.u32 %r3, e;\nmov.u32 %r4, s;\nshl.b32 %r5, %r1, 2;\nadd.s32 %r4, %r4, %r5;\nst.shared.u32 "
      "[%r4], 7;\n"
      "add.s32 %r6, %r2, %r5;\nst.shared.u32 [%r6], %r1;\nbar.sync 0;\nsub.s32 %r7, %r3, %r5;\n"
      "ld.shared.u32 %r8, [%r7+124];\nst.global.u32 [%rd2], %r8;\n"s;
  run(kernel(use, dynamic), in.data(), out.data(), 32, 1, 128);
  CHECK(found() == "");
  CHECK((out[0] == 31 && out[31] == 0));
  for (auto const bytes : {std::size_t{0}, std::size_t{124}})
    check_death("a shared variable has an end before", kernel(use, dynamic), in.data(), out.data(), bytes);
}

TEST_CASE("bank conflicts are counted for the rows of matrices") {
  ptx::Counts counts(nullptr);
  ptx::Instruction load, copy;
  load.op = ptx::Op::ldmatrix;
  copy.op = ptx::Op::cp_async;
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    counts.note(lane, load, 0, 4096 + 16 * lane, 16, false, true);   // consecutive rows
    counts.note(lane, load, 1, 4096 + 128 * lane, 16, false, true);  // all rows in the same banks
    counts.note(lane, copy, 0, 8192 + 16 * lane, 16, false, false);
    counts.note(lane, copy, 0, 4096 + 16 * lane, 16, true, true);
  }
  counts.end_block("k", 7, [](ptx::Instruction const& at) { return at.op == ptx::Op::ldmatrix ? "a" : "b"; });
  CHECK(counts.text() ==
        "kernel\tplace\taccess\ttimes\tlanes\tpieces\tleast pieces\n"
        "k\ta\tshared read\t2\t64\t36\t8\n"
        "k\tb\tglobal read\t1\t32\t16\t16\n"
        "k\tb\tshared write\t1\t32\t4\t4\n"
        "k\t\tinstructions\t7\n");
}

TEST_CASE("unknown instructions are refused by name") {
  Values<std::uint32_t> const memory({0});
  for (auto const* const opcode :
       {"mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", "mma.sync.aligned.m16n8k16.row.row.f32.bf16.bf16.f32",
        "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16",
        "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8", "cp.async.bulk.commit_group",
        "cp.async.mbarrier.arrive.shared.b64", "cp.async.cg.shared.global.L2::cache_hint", "fma.rn.relu.bf16x2",
        "fma.rn.ftz.f16x2", "add.sat.f16x2", "ex2.approx.ftz.bf16x2", "cvt.rn.satfinite.e4m3x2.f32",
        "cvt.rn.relu.bf16x2.f32", "setp.lt.bf16", "lop3.or.b32"})
    check_death(opcode + " is not known"s, kernel(opcode + " %r4, %r5, %r6;"s), memory.data(), memory.data());
}
