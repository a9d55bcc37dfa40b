// SPDX-License-Identifier: Apache-2.0
// CASE tensor: Lockstep: Linear takes a Variable [rows, channels] or a Sequence. Of a batch's array column that is
// CASE numbers: Lockstep: Linear takes a Variable [rows, channels] or a Sequence
#include <lockstep/nn/linear.hpp>

using namespace lockstep;
using Context = nn::Context<float, HostSpace>;

Context::Variable<2> run(nn::Linear const& linear, Context& context, TensorView<float const, 2, HostSpace> values,
                         [[maybe_unused]] TensorView<float const, 1, HostSpace> numbers) {
#if defined(CASE_tensor)
  return linear.forward(context, values);
#elif defined(CASE_numbers)
  return linear.forward(context, context.input(numbers));
#else
  return linear.forward(context, context.input(values));
#endif
}
