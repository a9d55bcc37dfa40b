// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/linear/linear.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "linear_case.hpp"

using lockstep::HostSpace;
using lockstep::Index;
using lockstep::ThreadPool;
using lockstep::Write;
using lockstep::kernel::Linear;
using lockstep::memory::Stream;
using lockstep_test::LinearCase;
using lockstep_test::values;
using lockstep_test::view;

namespace {

/// |got - exact| in units of terms * 2^-24 * sum |terms|, over a sum of `terms` products in float: each of its
/// roundings is at most half an epsilon of the sum of the magnitudes.
class Bound {
 public:
  void add(double term) {
    sum_ += term;
    magnitude_ += std::abs(term);
    ++terms_;
  }
  [[nodiscard]] bool holds(float got) const {
    return std::abs(static_cast<double>(got) - sum_) <= (terms_ + 3) * 0x1p-24 * magnitude_;
  }

 private:
  double sum_ = 0, magnitude_ = 0, terms_ = 0;
};

template <class T>
bool same_bits(std::vector<T> const& a, std::vector<T> const& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

}  // namespace

TEST_CASE("float results are within their bound of the definition") {
  for (auto const& shape : {std::tuple<Index, Index, Index>{0, 3, 4},
                            {1, 1, 1},
                            {33, 31, 32},
                            {32, 128, 4},
                            {512, 20, 9},
                            {513, 9, 20},
                            {1100, 33, 5},
                            {600, 3, 512},
                            {700, 64, 33},
                            {40, 530, 7}}) {
    Index const rows = std::get<0>(shape);
    Index const inputs = std::get<1>(shape);
    Index const outputs = std::get<2>(shape);
    for (Write write : {Write::overwrite, Write::add}) {
      for (bool with_factor : {false, true}) {
        LinearCase<float> const c{.rows = rows, .inputs = inputs, .outputs = outputs};
        auto const r = c.on_host(write, with_factor, 2);
        auto const at = [](std::vector<float> const& v, Index i) {
          return static_cast<double>(v[static_cast<std::size_t>(i)]);
        };
        bool y = true, dx = true, dweight = true, dbias = true;
        for (Index row = 0; row < rows; ++row) {
          for (Index o = 0; o < outputs; ++o) {
            Bound b;
            b.add(at(c.bias, o));
            for (Index i = 0; i < inputs; ++i) b.add(at(c.x, row * inputs + i) * at(c.weight, o * inputs + i));
            y &= b.holds(r.y[static_cast<std::size_t>(row * outputs + o)]);
          }
          for (Index i = 0; i < inputs; ++i) {
            Bound b;
            if (write == Write::add && !with_factor) b.add(1);
            double const factor = with_factor ? at(c.factor, row * inputs + i) : 1;
            for (Index o = 0; o < outputs; ++o)
              b.add(at(c.dy, row * outputs + o) * at(c.weight, o * inputs + i) * factor);
            dx &= b.holds(r.dx[static_cast<std::size_t>(row * inputs + i)]);
          }
        }
        for (Index o = 0; o < outputs; ++o) {
          for (Index i = 0; i < inputs; ++i) {
            Bound b;
            if (write == Write::add) b.add(1);
            for (Index row = 0; row < rows; ++row) b.add(at(c.dy, row * outputs + o) * at(c.x, row * inputs + i));
            dweight &= b.holds(r.dweight[static_cast<std::size_t>(o * inputs + i)]);
          }
          Bound b;
          if (write == Write::add) b.add(1);
          for (Index row = 0; row < rows; ++row) b.add(at(c.dy, row * outputs + o));
          dbias &= b.holds(r.dbias[static_cast<std::size_t>(o)]);
        }
        CAPTURE(rows);
        CHECK(y);
        CHECK(dx);
        CHECK(dweight);
        CHECK(dbias);
      }
    }
  }
}

TEST_CASE("gelu's output, recomputed chunk by chunk, gives the bits of the saved one") {
  using Kernel = Linear<HostSpace>;
  using lockstep::kernel::Activation;
  struct Shape {
    Index rows, inputs, outputs;
  };
  for (auto const& shape : {Shape{0, 3, 4}, Shape{1, 1, 1}, Shape{33, 31, 32}, Shape{513, 9, 20}, Shape{1100, 33, 5},
                            Shape{600, 3, 512}, Shape{40, 530, 7}})
    for (int threads : {1, 3})
      for (Write write : {Write::overwrite, Write::add}) {
        Index const rows = shape.rows, inputs = shape.inputs, outputs = shape.outputs;
        CAPTURE(rows);
        ThreadPool pool(threads);
        Stream<HostSpace> const stream(pool);
        LinearCase<float> const c{.rows = rows, .inputs = inputs, .outputs = outputs};
        auto const unset = [](Index size) {
          return std::vector<float>(static_cast<std::size_t>(size), std::numeric_limits<float>::quiet_NaN());
        };
        auto const start = [&](Index size) {
          return write == Write::add ? std::vector<float>(static_cast<std::size_t>(size), 1.0F) : unset(size);
        };
        // h is another layer's output with `outputs` columns.
        auto const below = view(c.dy, rows, outputs), weight_below = view(c.weight, outputs, inputs);
        std::vector<float> const to_h = values<float>(inputs * outputs, 6);
        lockstep::TensorView<float const, 1, HostSpace> const none;  // no bias
        auto x = unset(rows * inputs), slope = x, y = x, h = x, dh = x;
        auto const as_x = [&](auto& v) { return view(v, rows, inputs); };
        Kernel::forward<float>(stream, below, view(to_h, inputs, outputs), none, Activation::gelu, {}, as_x(x),
                               as_x(slope));
        Kernel::forward_gelu<float>(stream, below, view(to_h, inputs, outputs), none, as_x(h), as_x(y));
        CHECK(same_bits(x, y));

        auto partial = unset(Kernel::partial_elements(stream, rows, inputs, outputs));
        auto again = unset(Kernel::recomputed_elements(stream, rows, inputs));
        auto dweight = start(outputs * inputs), dbias = start(outputs), dweight_again = dweight, dbias_again = dbias;
        Kernel::backward<float>(stream, below, as_x(x), weight_below, {as_x(slope)}, as_x(dh), Write::overwrite,
                                view(dweight, outputs, inputs), write, view(dbias, outputs), write, partial.data());
        Kernel::backward_through_gelu<float>(stream, below, as_x(h), weight_below, view(dweight_again, outputs, inputs),
                                             write, view(dbias_again, outputs), write, partial.data(), again.data());
        CHECK(same_bits(h, dh));
        CHECK(same_bits(dweight_again, dweight));
        CHECK(same_bits(dbias_again, dbias));
      }
}

TEST_CASE_TEMPLATE("bits do not depend on threads or repetition", T, float, double) {
  for (Index outputs : {24, 512}) {
    for (Write write : {Write::overwrite, Write::add}) {
      LinearCase<T> const c{.rows = 1300, .inputs = 40, .outputs = outputs};
      auto const one = c.on_host(write, false);
      for (int threads : {1, 2, 4}) {
        auto const other = c.on_host(write, false, threads);
        CHECK(same_bits(one.y, other.y));
        CHECK(same_bits(one.dx, other.dx));
        CHECK(same_bits(one.dweight, other.dweight));
        CHECK(same_bits(one.dbias, other.dbias));
        CHECK(same_bits(one.dx, c.input_gradient_on_host(write, threads)));  // without gradients of parameters
      }
    }
  }
}

TEST_CASE("sums over more rows than a block of partial sums do not depend on threads") {
  using Kernel = Linear<HostSpace>;
  for (Write write : {Write::overwrite, Write::add}) {
    LinearCase<float> const c{.rows = Kernel::chunk_rows * 1030, .inputs = 3, .outputs = 2};
    auto const one = c.on_host(write, false), two = c.on_host(write, false, 2);
    CHECK(same_bits(one.dweight, two.dweight));
    CHECK(same_bits(one.dbias, two.dbias));
  }
}

TEST_CASE("the fused activation equals the separate one") {
  using lockstep::kernel::Activation;
  LinearCase<float> const c{.rows = 70, .inputs = 12, .outputs = 300};
  ThreadPool pool(2);
  Stream<HostSpace> const stream(pool);
  auto const h = c.on_host(Write::overwrite, false).y;
  auto const size = static_cast<Index>(h.size());
  std::vector<Index> const positions{5, 9};
  auto const mask = lockstep::kernel::DropoutMask::of(77, 0.25);
  for (auto activation :
       {Activation::none, Activation::gelu, Activation::gelu_tanh, Activation::silu, Activation::relu}) {
    std::vector<float> y(h.size()), slope(h.size()), expected(h.size()), expected_slope(h.size());
    auto const expect = [&]<class Rule>(Rule rule) {
      lockstep::kernel::Elementwise<HostSpace>::forward<Rule, float>(stream, view(h, size), view(expected, size),
                                                                     view(expected_slope, size), rule);
    };
    if (activation == Activation::gelu)
      expect(lockstep::kernel::Gelu{});
    else if (activation == Activation::gelu_tanh)
      expect(lockstep::kernel::GeluTanh{});
    else if (activation == Activation::silu)
      expect(lockstep::kernel::Silu{});
    else if (activation == Activation::relu)
      lockstep::kernel::Elementwise<HostSpace>::forward<lockstep::kernel::Relu, float>(stream, view(h, size),
                                                                                       view(expected, size));
    else
      expected = h;
    auto const forward = [&](lockstep::kernel::RowDropout<HostSpace> dropout,
                             lockstep::TensorView<float, 2, HostSpace> slopes) {
      Linear<HostSpace>::forward<float>(stream, view(c.x, c.rows, c.inputs), view(c.weight, c.outputs, c.inputs),
                                        view(c.bias, c.outputs), activation, dropout, view(y, c.rows, c.outputs),
                                        slopes);
    };
    forward({}, {});
    CHECK(same_bits(y, expected));
    forward({}, view(slope, c.rows, c.outputs));
    CHECK(same_bits(y, expected));
    CHECK(same_bits(slope, expected_slope));

    auto const dropped = [&](lockstep::TensorView<float, 2, HostSpace> slopes) {
      forward({.mask = mask, .layout = lockstep::kernel::SequenceLayout<HostSpace>::padded(35, {}, view(positions, 2))},
              slopes);
      for (Index i = 0; i < size; ++i) {
        auto const row = i / c.outputs, element = row % 35 * c.outputs + i % c.outputs;
        bool const keeps = mask.keeps(static_cast<std::uint64_t>(positions[static_cast<std::size_t>(row / 35)]),
                                      static_cast<std::uint64_t>(element));
        auto const at = static_cast<std::size_t>(i);
        auto const factor = keeps ? static_cast<float>(mask.scale()) : 0.0F;
        CHECK(y[at] == expected[at] * factor);
        if (slopes.data) CHECK(slope[at] == expected_slope[at] * factor);
      }
    };
    dropped({});
    dropped(view(slope, c.rows, c.outputs));
  }
}

TEST_CASE("backward through a rectifier: the gradient of positive values, scaled") {
  LinearCase<float> c{.rows = 61, .inputs = 9, .outputs = 20};
  for (auto i = 0U; i < c.x.size(); i += 3) c.x[i] = i % 2 == 0 ? 0 : -c.x[i];
  c.x[4] = std::numeric_limits<float>::quiet_NaN();
  ThreadPool pool(2);
  Stream<HostSpace> const stream(pool);
  std::vector<float> plain(c.x.size()), dx(c.x.size(), 7), dweight(c.weight.size());
  auto const backward = [&](lockstep::kernel::ActivationSlope<float, HostSpace> slope, std::vector<float>& to) {
    Linear<HostSpace>::backward<float>(stream, view(c.dy, c.rows, c.outputs), view(c.x, c.rows, c.inputs),
                                       view(c.weight, c.outputs, c.inputs), slope, view(to, c.rows, c.inputs),
                                       Write::overwrite, view(dweight, c.outputs, c.inputs), Write::overwrite, {},
                                       Write::overwrite, nullptr);
  };
  backward({}, plain);
  backward({.positive = 1.25F}, dx);
  for (std::size_t i = 0; i < dx.size(); ++i) CHECK(dx[i] == (c.x[i] <= 0 ? 0 : plain[i] * 1.25F));
}

TEST_CASE("a bias of another size is refused with both numbers") {
  LinearCase<float> const c{.rows = 3, .inputs = 4, .outputs = 5};
  ThreadPool pool(1);
  std::vector<float> y(15);
  std::string what;
  try {
    Linear<HostSpace>::forward<float>(Stream<HostSpace>(pool), view(c.x, 3, 4), view(c.weight, 5, 4), view(c.x, 4),
                                      view(y, 3, 5));
  } catch (lockstep::ShapeError const& error) {
    what = error.what();
  }
  CHECK(what == "Linear: weight is [5, 4] and bias is [4]; bias needs one element per row of weight");
}

TEST_CASE("slopes, inputs of gelu and bias gradients of another size are refused") {
  using lockstep::ShapeError;
  using Kernel = Linear<HostSpace>;
  LinearCase<float> const c{.rows = 3, .inputs = 4, .outputs = 5};
  ThreadPool pool(1);
  Stream<HostSpace> const stream(pool);
  std::vector<float> y(15), slope(15), dx(12), dweight(20), dbias(5);
  auto const x = view(c.x, 3, 4), weight = view(c.weight, 5, 4);
  auto const backward = [&](lockstep::Index factors, lockstep::Index biases) {
    Kernel::backward<float>(stream, view(c.dy, 3, 5), x, weight, {view(c.factor, factors, 4)}, view(dx, 3, 4),
                            Write::overwrite, view(dweight, 5, 4), Write::overwrite, view(dbias, biases),
                            Write::overwrite, nullptr);
  };
  backward(3, 5);
  auto const shapes = "Linear: the layer has the shape [5, 3] and its activation's slope or input has [3, 5]";
  CHECK_THROWS_WITH_AS(Kernel::forward<float>(stream, x, weight, view(c.bias, 5), lockstep::kernel::Activation::gelu,
                                              {}, view(y, 5, 3), view(slope, 3, 5)),
                       doctest::Contains(shapes), ShapeError);
  CHECK_THROWS_WITH_AS(
      Kernel::forward_gelu<float>(stream, x, weight, view(c.bias, 5), view(slope, 3, 5), view(y, 5, 3)),
      doctest::Contains(shapes), ShapeError);
  CHECK_THROWS_WITH_AS(backward(2, 5), doctest::Contains("[3, 4] and its activation's slope or input has [2, 4]"),
                       ShapeError);
  CHECK_THROWS_WITH_AS(backward(3, 4), doctest::Contains("weight is [5, 4] and bias is [4]"), ShapeError);
}
