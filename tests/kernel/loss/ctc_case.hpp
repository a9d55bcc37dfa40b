// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

#include "kernel/values.hpp"

namespace lockstep_test {

/// Sequences of tokens and of labels, with their logits.
template <class T>
struct CtcCase {
  std::vector<std::int32_t> tokens, counts, labels;
  lockstep::Index classes;
  std::vector<T> logits{};

  [[nodiscard]] static std::vector<CtcCase> some() {
    std::vector<CtcCase> all{{{}, {}, {}, 3},
                             {{0}, {0}, {}, 2},
                             {{1}, {1}, {1}, 2},
                             {{5, 0, 3, 7}, {2, 0, 1, 3}, {1, 1, 2, 2, 1, 2}, 3},
                             {{20, 13, 40}, {7, 0, 15}, {}, 37},
                             {{6, 30}, {2, 9}, {}, 130}};
    for (auto& each : all) {
      auto const wanted = [&] {
        lockstep::Index sum = 0;
        for (auto const count : each.counts) sum += count;
        return sum;
      }();
      for (lockstep::Index i = std::ssize(each.labels); i < wanted; ++i)
        each.labels.push_back(static_cast<std::int32_t>(1 + (i * 7 + i / 3) % (each.classes - 1)));
    }
    return all;
  }
};

}  // namespace lockstep_test
