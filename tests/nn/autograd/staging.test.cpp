// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/autograd/staging.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <tuple>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/float16.hpp>
#include <lockstep/core/thread_pool.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/pass.hpp>

#include "malloc_count.hpp"

using namespace lockstep;

namespace {

template <class Scalar>
struct Fixture {
  using Context = nn::Context<Scalar, HostSpace>;
  ThreadPool pool{2};
  Context context{memory::Stream<HostSpace>(pool)};

  Fixture() { nn::Pass(context).begin_micro_batch(nn::Mode::training, 1); }
  /// Returns i / 4 for i < count, from 1 on: exact in bfloat16 up to 256 / 4.
  nn::Variable<Scalar, 2, HostSpace> quarters(Index count) {
    auto const x = context.template variable<2>({1, count});
    for (Index i = 0; i < count; ++i) x.value.data[i] = static_cast<Scalar>(static_cast<float>(i + 1) / 4);
    return x;
  }
};
constexpr float not_exact = 1.0f + 0x1p-9f;  // bfloat16 has 8 bits

}  // namespace

TEST_CASE("float activations are passed without a copy") {
  Fixture<float> f;
  auto const x = f.quarters(3), y = f.quarters(3);
  {
    nn::Staging work(f.context);
    CHECK(work.read(x.value).data == x.value.data);
    CHECK(work.write(y.value).data == y.value.data);
    CHECK(work.update(y.value).data == y.value.data);
    auto const first = work.gradient(x), second = work.gradient(x);
    CHECK(first.data == x.slot->data);
    CHECK(first.write == Write::overwrite);
    CHECK(second.write == Write::add);
  }
  CHECK(y.value.data[0] == 0.25f);
}

TEST_CASE("bfloat16 is read exactly, and written values are rounded at the end") {
  Fixture<bfloat16> f;
  for (Index const count : {0, 1, 31, 32, 33, 200}) {
    CAPTURE(count);
    auto const x = f.quarters(count), y = f.quarters(count), z = f.quarters(count);
    {
      nn::Staging work(f.context);
      auto const from = work.read(x.value);
      auto const to = work.write(y.value), changed = work.update(z.value);
      for (Index i = 0; i < count; ++i) {
        to.data[i] = from.data[i] * not_exact;
        changed.data[i] += 1;
      }
      if (count > 0) CHECK(static_cast<float>(y.value.data[0]) == 0.25f);  // nothing is written before
    }
    bool right = true;
    for (Index i = 0; i < count; ++i) {
      auto const value = static_cast<float>(i + 1) / 4;
      right = right && y.value.data[i].bits == bfloat16(value * not_exact).bits;
      right = right && z.value.data[i].bits == bfloat16(value + 1).bits;
    }
    CHECK(right);
  }
}

TEST_CASE("gradients are accumulated in bfloat16, in the order of requests") {
  Fixture<bfloat16> f;
  auto const x = f.quarters(2);
  {
    nn::Staging work(f.context);
    auto const first = work.gradient(x), second = work.gradient(x);  // as for x + x
    CHECK(second.write == Write::overwrite);                         // the kernel's own memory
    std::fill_n(first.data, 2, 1.0f);
    std::fill_n(second.data, 2, 0.5f);
  }
  CHECK(static_cast<float>(x.slot->data[1]) == 1.5f);
  {
    nn::Staging work(f.context);
    std::fill_n(work.gradient(x).data, 2, 2.0f);
  }
  CHECK(static_cast<float>(x.slot->data[1]) == 3.5f);
}

TEST_CASE("a gradient that replaces another is written after that one has been read") {
  Fixture<bfloat16> f;
  auto const x = f.quarters(2), y = f.quarters(2);
  auto const dy = f.context.gradient(y);
  std::fill_n(dy.data, 2, bfloat16(3.0f));
  ++y.slot->producers;
  {
    nn::Staging work(f.context);
    auto const from = work.read(y.gradient());
    auto const dx = work.gradient_in_place(x, y);
    for (Index i = 0; i < 2; ++i) dx.data[i] = from.data[i] + 1;
  }
  CHECK(x.slot->data == dy.data);
  CHECK(static_cast<float>(x.slot->data[0]) == 4.0f);
}

TEST_CASE("a loss's gradient is scaled before it is rounded to float16, and not for other types") {
  Fixture<float16> f;
  float const scale = 0x1p10f, faint = 0x1p-26f;  // without scaling it would be zero
  f.context.parts().loss_scale.bind(&scale);
  auto const x = f.quarters(2), y = f.quarters(2);
  {
    nn::Staging work(f.context);
    CHECK(work.read_for_loss(x.value).data[1] == 0.5f);
    for (auto const& to : {work.loss_gradient(x), work.loss_gradient(x)}) std::fill_n(to.data, 2, faint);
    CHECK_FALSE(work.loss_gradient(nn::Variable<float16, 2, HostSpace>{}));
  }
  CHECK(static_cast<float>(x.slot->data[1]) == 2 * scale * faint);  // two losses
  std::string const sentence = "call nn::Staging::loss_gradient instead";
  CHECK_THROWS_WITH_AS(static_cast<void>(f.context.gradient(y)), doctest::Contains(sentence.c_str()), ConfigError);
  f.context.on_backward(x, std::tuple{}, [y](auto& context) {
    nn::Staging work(context);
    std::fill_n(work.gradient(y).data, 2, 1.0f);
  });
  nn::Pass(f.context).backward({});
  CHECK(static_cast<float>(y.slot->data[1]) == 1.0f);  // later results are not scaled again
  nn::Pass(f.context).begin_micro_batch(nn::Mode::training, 2);
  auto const of_next = f.quarters(2);
  CHECK_THROWS_AS(static_cast<void>(f.context.gradient(of_next)), ConfigError);

  Fixture<bfloat16> other;
  auto const z = other.quarters(2);
  {
    nn::Staging work(other.context);
    std::fill_n(work.loss_gradient(z).data, 2, faint);
  }
  CHECK(static_cast<float>(z.slot->data[1]) == faint);
}

TEST_CASE("absent arguments stay absent") {
  Fixture<bfloat16> f;
  nn::Staging work(f.context);
  TensorView<bfloat16, 2, HostSpace> const none{nullptr, {3, 4}};
  CHECK(work.read(none).data == nullptr);
  CHECK(work.write(none).data == nullptr);
  CHECK(work.update(none).data == nullptr);
  CHECK(work.gradient(nn::Variable<bfloat16, 2, HostSpace>{}).data == nullptr);
}

TEST_CASE("a nested staging does not touch an outer one's memory, and neither allocates again") {
  Fixture<bfloat16> f;
  auto const x = f.quarters(100), y = f.quarters(100), z = f.quarters(100);
  long before = 0;
  for (int round = 0; round < 3; ++round) {
    if (round == 1) before = lockstep_test::mallocs;
    std::fill_n(x.value.data, 100, bfloat16(static_cast<float>(round)));
    nn::Staging outer(f.context);
    auto const from = outer.read(x.value);
    auto const to = outer.write(z.value);
    {
      nn::Staging inner(f.context);
      std::fill_n(inner.write(y.value).data, 100, 9.0f);
    }
    std::copy_n(from.data, 100, to.data);
  }
  if (lockstep_test::counts_mallocs) CHECK(lockstep_test::mallocs == before);
  CHECK(static_cast<float>(y.value.data[99]) == 9.0f);
  CHECK(static_cast<float>(z.value.data[99]) == 2.0f);
  CHECK(nn::Pass(f.context).activation_bytes() > 0);
}
