// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

#include <lockstep/comm/operation.hpp>
#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm::detail {

/// An operation in progress, with the engine's own state of it.
struct Request {
  CollectiveOperation* operation = nullptr;
  Index address = -1;      // offset of the input in the segment, for other ranks; -1: they cannot reach it
  bool copied = false;     // a copy in the slot replaces the memory
  bool needs_all = false;  // others work on this rank's memory or its copy: complete once they are done
};

/// Ring buffer of requests by number, from the oldest incomplete one. Grows to the largest number of requests in
/// progress, then allocates nothing. Numbers wrap.
class RequestQueue {
 public:
  explicit RequestQueue(std::uint32_t first) : first_(first), end_(first), requests_(128) {}

  [[nodiscard]] std::uint32_t first() const noexcept { return first_; }
  [[nodiscard]] std::uint32_t end() const noexcept { return end_; }
  [[nodiscard]] bool empty() const noexcept { return first_ == end_; }
  [[nodiscard]] Request& operator[](std::uint32_t number) noexcept { return requests_[number & (size() - 1)]; }

  void push(Request const& request) {
    if (end_ - first_ == size()) grow();
    requests_[end_ & (size() - 1)] = request;
    ++end_;
  }
  void pop() noexcept { ++first_; }

 private:
  [[nodiscard]] std::uint32_t size() const noexcept {
    return static_cast<std::uint32_t>(requests_.size());
  }  // a power of two

  void grow() {
    std::vector<Request> larger(requests_.size() * 2);
    for (auto i = first_; i != end_; ++i) larger[i & (2 * size() - 1)] = (*this)[i];
    requests_.swap(larger);
  }

  std::uint32_t first_, end_;
  std::vector<Request> requests_;
};

}}}  // namespace lockstep::comm::detail
