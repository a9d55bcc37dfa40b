// SPDX-License-Identifier: Apache-2.0
// CASE without_row: Lockstep: the rule of nn::rowwise_loss is called as constant with (Index row,
// CASE not_const: Lockstep: the rule of nn::rowwise_loss is called as constant with (Index row,
// CASE returns_text: Lockstep: the rule of nn::rowwise_loss is called as constant with (Index row,
// CASE heads: Lockstep: a loss takes a prediction, a Variable or a Sequence; if predict returns several
// CASE gpu: Lockstep: nn::rowwise_loss calls a function of the CPU for each row
#include <span>

#include <lockstep/nn/loss/rowwise_loss.hpp>

using namespace lockstep;
using Context = nn::Context<float, HostSpace>;

struct Heads {
  Context::Variable<2> kind, place;
};
struct OnDevice {
  using Scalar = float;
  using Space = CudaSpace;
};

void losses(Context& context, Context::Variable<2> x, nn::Sequence<float, HostSpace> const& sequence,
            [[maybe_unused]] OnDevice& device, [[maybe_unused]] nn::Sequence<float, CudaSpace> const& there) {
  auto const number = [](Index, std::span<double const> outputs, std::span<double> slopes) {
    slopes[0] = 1;
    return outputs[0];
  };
  static_cast<void>(nn::rowwise_loss(context, number, x));
  static_cast<void>(nn::rowwise_loss(
      context,
      [](Index, auto, auto) {
        return nn::Loss<HostSpace>{1, 2};
      },
      sequence, 0.5));
#if defined(CASE_without_row)
  static_cast<void>(nn::rowwise_loss(
      context, [](std::span<double const>, std::span<double>) { return 1.0; }, x));
#elif defined(CASE_not_const)
  double sum = 0;
  static_cast<void>(nn::rowwise_loss(
      context, [sum](Index, auto, auto) mutable { return sum += 1; }, x));
#elif defined(CASE_returns_text)
  static_cast<void>(nn::rowwise_loss(
      context, [](Index, auto, auto) { return "1"; }, sequence));
#elif defined(CASE_heads)
  static_cast<void>(nn::rowwise_loss(context, number, Heads{x, x}));
#elif defined(CASE_gpu)
  static_cast<void>(nn::rowwise_loss(device, number, there));
#endif
}
