// SPDX-License-Identifier: Apache-2.0
// CASE ranks: Lockstep: nn::add takes two activations of one shape, or a Sequence or an image and, second, a Variable
// CASE image_second: Lockstep: nn::add takes two activations of one shape, or a Sequence or an image and, second, a
// CASE sequence_second: Lockstep: nn::add takes the Sequence first and the addend of its tokens second
// CASE image_to_sequence: Lockstep: nn::add takes a Sequence and, second, another or a Variable [rows, channels]
#include <lockstep/nn/elementwise/add.hpp>

using namespace lockstep;
using Context = nn::Context<float, HostSpace>;

void sums(Context& context, Context::Variable<2> row, Context::Variable<4> image,
          [[maybe_unused]] Context::Variable<3> series, nn::Sequence<float, HostSpace> const& sequence) {
  static_cast<void>(nn::add(context, row, row));
  static_cast<void>(nn::add(context, image, image));
  static_cast<void>(nn::add(context, image, row));
  static_cast<void>(nn::add(context, sequence, sequence));
  static_cast<void>(nn::add(context, sequence, row));
#if defined(CASE_ranks)
  static_cast<void>(nn::add(context, image, series));
#elif defined(CASE_image_second)
  static_cast<void>(nn::add(context, row, image));
#elif defined(CASE_sequence_second)
  static_cast<void>(nn::add(context, row, sequence));
#elif defined(CASE_image_to_sequence)
  static_cast<void>(nn::add(context, sequence, image));
#endif
}
