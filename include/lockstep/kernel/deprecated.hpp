// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/kernel/activation_rules.hpp>

/// Former names of this folder's types, until the next version. Include the header of the type, too.
namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

template <class Scalar, class Space>
struct ActivationSlope;
template <class Space>
struct Arange;
template <class Space>
struct Copy;
struct FirstOperand;
enum class ImpossibleAlignment;
struct KlDivergenceOfLogDeviation;
struct KlDivergenceOfMean;
struct NegatedOperand;
enum class PositionUnit;
enum class Rotation;
template <class Space>
struct SpatialPooling;
template <class Space>
struct StridedRows;
template <class Space>
struct Sum;

template <ActivationWithSlope Rule>
using BySlope [[deprecated("kernel::ActivationAdapter")]] = ActivationAdapter<Rule>;
using Counted [[deprecated("kernel::PositionUnit")]] = PositionUnit;
using DivergenceOfLogDeviation [[deprecated("kernel::KlDivergenceOfLogDeviation")]] = KlDivergenceOfLogDeviation;
using DivergenceOfMean [[deprecated("kernel::KlDivergenceOfMean")]] = KlDivergenceOfMean;
template <class Space>
using EveryRow [[deprecated("kernel::StridedRows")]] = StridedRows<Space>;
using First [[deprecated("kernel::FirstOperand")]] = FirstOperand;
using Impossible [[deprecated("kernel::ImpossibleAlignment")]] = ImpossibleAlignment;
template <class Space>
using Move [[deprecated("kernel::Copy")]] = Copy<Space>;
using Multiple [[deprecated("kernel::Scale")]] = Scale;
using Negated [[deprecated("kernel::NegatedOperand")]] = NegatedOperand;
template <class Space>
using RowNumbers [[deprecated("kernel::Arange")]] = Arange<Space>;
template <class Scalar, class Space>
using Slope [[deprecated("kernel::ActivationSlope")]] = ActivationSlope<Scalar, Space>;
template <class Space>
using SpacePooling [[deprecated("kernel::SpatialPooling")]] = SpatialPooling<Space>;
template <class Space>
using Total [[deprecated("kernel::Sum")]] = Sum<Space>;
using Turn [[deprecated("kernel::Rotation")]] = Rotation;

}}}  // namespace lockstep::kernel
