// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <type_traits>

#include <lockstep/kernel/activation_rules.hpp>
#include <lockstep/kernel/attention/rotary.hpp>
#include <lockstep/kernel/copy/copy.hpp>
#include <lockstep/kernel/deprecated.hpp>
#include <lockstep/kernel/elementwise/binary_operation.hpp>
#include <lockstep/kernel/embedding/embedding_inputs.hpp>
#include <lockstep/kernel/linear/activation_slope.hpp>
#include <lockstep/kernel/loss/ctc.hpp>
#include <lockstep/kernel/loss/loss_rules.hpp>
#include <lockstep/kernel/pooling/spatial_pooling.hpp>
#include <lockstep/kernel/reduction/sum.hpp>
#include <lockstep/kernel/sequence/arange.hpp>
#include <lockstep/kernel/sequence/strided_rows.hpp>

using namespace lockstep;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace {

struct Square {
  [[maybe_unused]] static constexpr char const* name = "square";
  template <class T>
  constexpr kernel::ActivationAt<T> operator()(T x) const {
    return {x * x, 2 * x};
  }
};

}  // namespace

TEST_CASE("former names of kernels are aliases") {
  CHECK(std::is_same_v<kernel::BySlope<Square>, kernel::ActivationAdapter<Square>>);
  CHECK(std::is_same_v<kernel::Counted, kernel::PositionUnit>);
  CHECK(std::is_same_v<kernel::DivergenceOfLogDeviation, kernel::KlDivergenceOfLogDeviation>);
  CHECK(std::is_same_v<kernel::DivergenceOfMean, kernel::KlDivergenceOfMean>);
  CHECK(std::is_same_v<kernel::EveryRow<HostSpace>, kernel::StridedRows<HostSpace>>);
  CHECK(std::is_same_v<kernel::First, kernel::FirstOperand>);
  CHECK(std::is_same_v<kernel::Impossible, kernel::ImpossibleAlignment>);
  CHECK(std::is_same_v<kernel::Move<HostSpace>, kernel::Copy<HostSpace>>);
  CHECK(std::is_same_v<kernel::Multiple, kernel::Scale>);
  CHECK(std::is_same_v<kernel::Negated, kernel::NegatedOperand>);
  CHECK(std::is_same_v<kernel::RowNumbers<HostSpace>, kernel::Arange<HostSpace>>);
  CHECK(std::is_same_v<kernel::Slope<float, HostSpace>, kernel::ActivationSlope<float, HostSpace>>);
  CHECK(std::is_same_v<kernel::SpacePooling<HostSpace>, kernel::SpatialPooling<HostSpace>>);
  CHECK(std::is_same_v<kernel::Total<HostSpace>, kernel::Sum<HostSpace>>);
  CHECK(std::is_same_v<kernel::Turn, kernel::Rotation>);
}

TEST_CASE("former enumerators have the values of the new ones") {
  CHECK(kernel::Rotation::forwards == kernel::Rotation::forward);
  CHECK(kernel::Rotation::back == kernel::Rotation::inverse);
  CHECK(kernel::ImpossibleAlignment::refuse == kernel::ImpossibleAlignment::reject);
  CHECK(kernel::ImpossibleAlignment::leave_out == kernel::ImpossibleAlignment::ignore);
}

#pragma GCC diagnostic pop
