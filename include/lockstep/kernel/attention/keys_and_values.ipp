// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <utility>

#include <lockstep/core/version.hpp>
#include <lockstep/kernel/attention/keys_and_values.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

template <class Scalar>
LOCKSTEP_INLINE void KeysAndValues<Scalar>::reserve(Index tokens) {
  if (tokens <= capacity_) return;
  Index const capacity = (tokens + panel - 1) / panel * panel;
  auto const grow = [&](std::vector<Scalar>& all, Index readable) {
    std::vector<Scalar> larger(static_cast<std::size_t>(heads_ * head_width_ * capacity + readable));
    for (Index head = 0; head < heads_; ++head)
      std::copy_n(all.data() + head * head_width_ * capacity_, head_width_ * capacity_,
                  larger.data() + head * head_width_ * capacity);
    all = std::move(larger);
  };
  grow(keys_, 0);
  grow(values_, panel);
  capacity_ = capacity;
}

template <class Scalar>
LOCKSTEP_INLINE void KeysAndValues<Scalar>::append(Scalar const* keys, Scalar const* values, Index count) {
  reserve(tokens_ + count);
  for (Index t = 0; t < count; ++t, ++tokens_)
    for (Index head = 0; head < heads_; ++head, keys += head_width_, values += head_width_) {
      auto* const key =
          keys_.data() + head * head_width_ * capacity_ + tokens_ / panel * panel * head_width_ + tokens_ % panel;
      for (Index c = 0; c < head_width_; ++c) key[c * panel] = keys[c];
      std::copy_n(values, head_width_, values_.data() + (head * capacity_ + tokens_) * head_width_);
    }
}

// Instantiations in the library, for programs that link it.
#if defined(LOCKSTEP_COMPILED)
template class KeysAndValues<float>;
template class KeysAndValues<double>;
#endif

}}}  // namespace lockstep::kernel
