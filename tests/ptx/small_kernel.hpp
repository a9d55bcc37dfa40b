// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cuda_runtime.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "death_of.hpp"
#include "machine.hpp"

/// Runs small kernels that tests write in PTX.
namespace ptx_test {

/// Memory of the emulated device with these values.
template <class T>
class Values {
 public:
  explicit Values(std::vector<T> const& values) : size_(values.size()) {
    void* memory = nullptr;
    REQUIRE(cudaMalloc(&memory, std::max<std::size_t>(size_, 1) * sizeof(T)) == cudaSuccess);
    memory_ = static_cast<T*>(memory);
    std::copy(values.begin(), values.end(), memory_);
  }
  Values(Values const&) = delete;
  Values& operator=(Values const&) = delete;
  ~Values() {
    CHECK(cudaFree(memory_) == cudaSuccess);
    ptx::Regions::instance().forget(memory_);
  }
  [[nodiscard]] T* data() const { return memory_; }
  [[nodiscard]] T operator[](std::size_t i) const { return memory_[i]; }

 private:
  std::size_t size_;
  T* memory_;
};

/// A kernel with the parameters `a` and `b`, both addresses, and this body; registers are %p, %r, %f, %d and %rd.
inline std::string kernel(std::string const& body, std::string const& variables = "") {
  return ".version 9.0\n.target sm_80\n.address_size 64\n" + variables +
         ".visible .entry k(.param .u64 a, .param .u64 b)\n{\n.reg .pred %p<9>;\n.reg .b16 %rs<9>;\n.reg .b32 %r<20>;\n"
         ".reg .f32 %f<9>;\n.reg .f64 %d<9>;\n.reg .b64 %rd<9>;\nld.param.u64 %rd1, [a];\nld.param.u64 %rd2, [b];\n"
         "cvta.to.global.u64 %rd1, %rd1;\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd3, %r1, 4;\nadd.s64 %rd1, %rd1, %rd3;\n"
         "add.s64 %rd2, %rd2, %rd3;\n" +
         body + "\nret;\n}\n";
}

inline void run(std::string const& text, void const* a, void const* b, std::uint32_t threads = 32,
                std::uint32_t blocks = 1, std::size_t shared_bytes = 0) {
  ptx::Module module;
  ptx::Parser(text, module).parse();
  std::vector<std::byte> parameters(16);
  std::memcpy(parameters.data(), &a, 8);
  std::memcpy(parameters.data() + 8, &b, 8);
  ptx::Machine::instance().run(*module.functions.at("k"), {blocks}, {threads}, parameters, shared_bytes);
}

inline std::string found() {
  std::string all;
  for (auto const& each : ptx::Findings::instance().take()) all += each + "\n";
  return all;
}

inline void check_death(std::string const& why, std::string const& text, void const* a, void const* b,
                        std::size_t shared_bytes = 0) {
  auto const death = lockstep_test::death_of([&] { run(text, a, b, 32, 1, shared_bytes); });
  CHECK((WIFEXITED(death.status) && WEXITSTATUS(death.status) == 66));
  CHECK_MESSAGE(death.printed.find(why) != std::string::npos, death.printed);
}

/// Returns %r4 after `instructions` have read %r1 to %r3.
inline std::uint32_t evaluate(std::string const& instructions, std::uint32_t a = 0, std::uint32_t b = 0,
                              std::uint32_t c = 0) {
  Values<std::uint32_t> const in({a, b, c}), out({0});
  run(kernel("ld.global.u32 %r1, [%rd1];\nld.global.u32 %r2, [%rd1+4];\nld.global.u32 %r3, [%rd1+8];\n" + instructions +
             "\nst.global.u32 [%rd2], %r4;"),
      in.data(), out.data(), 1);
  CHECK(found() == "");
  return out[0];
}
inline std::uint32_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }
inline float real(std::uint32_t value) { return std::bit_cast<float>(value); }

}  // namespace ptx_test
