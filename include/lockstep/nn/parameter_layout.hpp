// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/nn/buffer.hpp>
#include <lockstep/nn/model.hpp>
#include <lockstep/nn/parameter.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn {

/// Where each parameter lies in the arenas, and each buffer in an arena of its own. The parameters' order is the
/// reverse of the forward order, so backward fills the gradient arena from its start and any byte range of it can leave
/// as soon as it is full.
class ParameterLayout {
 public:
  struct Entry {
    std::string name;  ///< "encoder.0.attention.query.weight"
    std::vector<Index> shape;
    Initializer initializer;
    Index offset = 0;
    Index size = 0;
    GradientForm gradient_form = GradientForm::dense;
    bool frozen = false;

    /// Whether this is a table whose gradient goes by rows.
    [[nodiscard]] bool by_rows() const noexcept { return gradient_form == GradientForm::by_rows && size > 0; }
  };
  /// Every parameter starts on a multiple of this many elements: a cache line of float32.
  static constexpr Index alignment = 16;

  /// Visits the model, names its parameters and buffers and writes their places into them.
  /// @throws ConfigError when two of them share a name or one is visited twice
  template <class Model>
  [[nodiscard]] static ParameterLayout of(Model& model) {
    ParameterLayout layout;
    std::vector<Parameter*> found;
    std::vector<Buffer*> buffers;
    layout.collect("", model, found, buffers);
    layout.check(found, buffers);
    for (std::size_t i = found.size(); i-- > 0;) {
      found[i]->offset = layout.entries_[i].offset = layout.size_;
      found[i]->ordinal = static_cast<int>(i);
      found[i]->name = layout.entries_[i].name;
      layout.size_ += padded(layout.entries_[i].size);
    }
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      buffers[i]->offset = layout.buffers_[i].offset = layout.buffer_size_;
      layout.buffer_size_ += padded(layout.buffers_[i].size);
    }
    return layout;
  }

  /// In forward order; a parameter's ordinal is its index here.
  [[nodiscard]] std::vector<Entry> const& entries() const noexcept { return entries_; }
  /// Elements of an arena, padding included.
  [[nodiscard]] Index size() const noexcept { return size_; }
  /// Elements at the arena's beginning in which all that learns lies: behind them all is frozen.
  [[nodiscard]] Index learned_size() const noexcept {
    for (auto const& entry : entries_)
      if (!entry.frozen) return entry.offset + padded(entry.size);
    return 0;
  }
  /// The buffers, in forward order; most models have none.
  [[nodiscard]] std::vector<Entry> const& buffers() const noexcept { return buffers_; }
  /// Elements of the arena of buffers, padding included.
  [[nodiscard]] Index buffer_size() const noexcept { return buffer_size_; }
  /// Learned elements, without padding.
  [[nodiscard]] Index parameters() const noexcept {
    Index n = 0;
    for (auto const& entry : entries_) n += entry.size;
    return n;
  }
  [[nodiscard]] static constexpr Index padded(Index size) { return (size + alignment - 1) / alignment * alignment; }

 private:
  template <class Node>
  void collect(std::string const& name, Node& node, std::vector<Parameter*>& found, std::vector<Buffer*>& buffers) {
    if constexpr (std::is_same_v<Node, Parameter>) {
      found.push_back(&node);
      entries_.push_back({name, node.shape, node.initializer, 0, node.size(),
                          node.frozen ? GradientForm::dense : node.gradient_form, node.frozen});
    } else if constexpr (std::is_same_v<Node, Buffer>) {
      buffers.push_back(&node);
      buffers_.push_back({name, node.shape, node.initializer, 0, node.size()});
    } else if constexpr (check_layer<Node>()) {
      node.visit([&](std::string_view child_name, auto& child) {
        collect(name.empty() ? std::string(child_name) : name + "." + std::string(child_name), child, found, buffers);
      });
    }
  }

  template <class Node>
  static constexpr bool check_layer() {
    static_assert(HasParameters<Node>,
                  "Lockstep: visit hands each(name, child) something that is no layer: neither nn::Parameter nor "
                  "nn::Buffer, and without a visit(each) of its own, as a number or a std::vector of layers; or it is "
                  "const itself; see docs/reference/model.md");
    return HasParameters<Node>;
  }

  void check(std::vector<Parameter*> const& found, std::vector<Buffer*> const& buffers) const {
    struct Named {
      std::string const* name;
      void const* address;
    };
    std::vector<Named> all;
    for (std::size_t i = 0; i < found.size(); ++i) all.push_back({&entries_[i].name, found[i]});
    for (std::size_t i = 0; i < buffers.size(); ++i) all.push_back({&buffers_[i].name, buffers[i]});
    for (std::size_t i = 0; i < all.size(); ++i) {
      auto const& name = *all[i].name;
      if (name.empty())
        throw ConfigError(
            "model: a parameter or buffer has an empty name; give it one in visit(), by which files know it");
      for (std::size_t j = 0; j < i; ++j) {
        if (*all[j].name == name)
          throw ConfigError("model: two parameters or buffers are named \"" + name +
                            "\"; give the layers in visit() different names");
        if (all[j].address == all[i].address)
          throw ConfigError("model: \"" + name +
                            "\" is visited twice; to share it, visit it once and pass it to the functions that use it");
      }
    }
  }

  std::vector<Entry> entries_, buffers_;
  Index size_ = 0, buffer_size_ = 0;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
