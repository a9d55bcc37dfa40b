// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/nn/parameter.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn {

/// Where each parameter lies in the arenas. The order is the reverse of the forward order, so backward fills the
/// gradient arena from its start and any byte range of it can leave as soon as it is full.
class ParameterLayout {
 public:
  struct Entry {
    std::string name;  ///< "encoder.0.attention.query.weight"
    std::vector<Index> shape;
    Initializer initializer;
    Index offset = 0;
    Index size = 0;
  };
  /// Every parameter starts on a multiple of this many elements: a cache line of float32.
  static constexpr Index alignment = 16;

  /// Visits the model, names its parameters and writes their places into them.
  /// @throws ConfigError when two parameters share a name or one is visited twice
  template <class Model>
  [[nodiscard]] static ParameterLayout of(Model& model) {
    ParameterLayout layout;
    std::vector<Parameter*> found;
    layout.collect("", model, found);
    layout.check(found);
    for (std::size_t i = found.size(); i-- > 0;) {
      found[i]->offset = layout.entries_[i].offset = layout.size_;
      found[i]->ordinal = static_cast<int>(i);
      layout.size_ += padded(layout.entries_[i].size);
    }
    return layout;
  }

  /// In forward order; a parameter's ordinal is its index here.
  [[nodiscard]] std::vector<Entry> const& entries() const noexcept { return entries_; }
  /// Elements of an arena, padding included.
  [[nodiscard]] Index size() const noexcept { return size_; }
  /// Learned elements, without padding.
  [[nodiscard]] Index parameters() const noexcept {
    Index n = 0;
    for (auto const& entry : entries_) n += entry.size;
    return n;
  }
  [[nodiscard]] static constexpr Index padded(Index size) { return (size + alignment - 1) / alignment * alignment; }

 private:
  template <class Node>
  void collect(std::string const& name, Node& node, std::vector<Parameter*>& found) {
    if constexpr (std::is_same_v<Node, Parameter>) {
      found.push_back(&node);
      entries_.push_back({name, node.shape, node.initializer, 0, node.size()});
    } else {
      node.visit([&](std::string_view child_name, auto& child) {
        collect(name.empty() ? std::string(child_name) : name + "." + std::string(child_name), child, found);
      });
    }
  }

  void check(std::vector<Parameter*> const& found) const {
    for (std::size_t i = 1; i < found.size(); ++i) {
      auto const& name = entries_[i].name;
      for (std::size_t j = 0; j < i; ++j) {
        if (entries_[j].name == name)
          throw ConfigError("model: two parameters are named \"" + name +
                            "\"; give the layers in visit() different names");
        if (found[j] == found[i])
          throw ConfigError("model: parameter \"" + name +
                            "\" is visited twice; to share it, visit it once and pass it to the functions that use it");
      }
    }
  }

  std::vector<Entry> entries_;
  Index size_ = 0;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
