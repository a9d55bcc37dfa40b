// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/name_table.hpp>
#include <lockstep/nn/autograd/buffer.hpp>
#include <lockstep/nn/autograd/model.hpp>
#include <lockstep/nn/autograd/parameter.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Offsets of all parameters in the arenas, and of all buffers in their own arena. Parameters are in reverse forward
/// order. Backward thus fills the gradient arena from its start, and any byte range can be sent as soon as it is full.
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

    /// Returns whether this is a table whose gradient is stored by rows.
    [[nodiscard]] bool by_rows() const noexcept { return gradient_form == GradientForm::by_rows && size > 0; }
  };
  /// Alignment of each parameter in elements: one cache line of float32.
  static constexpr Index alignment = 16;

  /// Visits the model, names its parameters and buffers, and writes their offsets into them.
  /// @throws ConfigError if two have equal names, one has an empty name, or one is visited twice
  template <class Model>
  [[nodiscard]] static ParameterLayout of(Model& model) {
    ParameterLayout layout;
    Found found;
    layout.collect("", model, found);
    layout.assign_offsets(found);
    return layout;
  }

  /// Returns the parameters in forward order. A parameter's ordinal is its index here.
  [[nodiscard]] std::vector<Entry> const& entries() const noexcept { return entries_; }
  /// Returns the number of elements of an arena, padding included.
  [[nodiscard]] Index size() const noexcept { return size_; }
  /// Returns the number of elements at the beginning of the arena that hold all learned parameters. All later
  /// parameters are frozen.
  [[nodiscard]] Index learned_size() const noexcept {
    for (auto const& entry : entries_)
      if (!entry.frozen) return entry.offset + padded(entry.size);
    return 0;
  }
  /// Returns the buffers in forward order. Most models have none.
  [[nodiscard]] std::vector<Entry> const& buffers() const noexcept { return buffers_; }
  /// Returns the number of elements of the buffer arena, padding included.
  [[nodiscard]] Index buffer_size() const noexcept { return buffer_size_; }
  /// Returns the number of parameter elements, without padding.
  [[nodiscard]] Index parameters() const noexcept {
    Index n = 0;
    for (auto const& entry : entries_) n += entry.size;
    return n;
  }
  [[nodiscard]] static constexpr Index padded(Index size) { return (size + alignment - 1) / alignment * alignment; }

 private:
  /// The model's parameters and buffers, in forward order like the entries.
  struct Found {
    std::vector<Parameter*> parameters;
    std::vector<Buffer*> buffers;
  };

  template <class Node>
  void collect(std::string const& name, Node& node, Found& found) {
    if constexpr (check_layer<Node>())
      node.visit(ChildVisitor(
          [&](std::string_view child_name, auto& child) { collect(name_in(name, child_name), child, found); }));
  }
  void collect(std::string const& name, Parameter& parameter, Found& found) {
    found.parameters.push_back(&parameter);
    entries_.push_back({name, parameter.shape, parameter.initializer, 0, parameter.size(),
                        parameter.frozen ? GradientForm::dense : parameter.gradient_form, parameter.frozen});
  }
  void collect(std::string const& name, Buffer& buffer, Found& found) {
    found.buffers.push_back(&buffer);
    buffers_.push_back({name, buffer.shape, buffer.initializer, 0, buffer.size()});
  }
  [[nodiscard]] static std::string name_in(std::string const& parent, std::string_view child) {
    return parent.empty() ? std::string(child) : parent + "." + std::string(child);
  }

  template <class Node>
  static constexpr bool check_layer() {
    static_assert(HasParameters<Node>,
                  "Lockstep: visit calls each(name, child) with a child that is no layer: neither nn::Parameter nor "
                  "nn::Buffer, and without its own visit(each), such as a number or a std::vector of layers; or it is "
                  "const; see docs/reference/model.md");
    return HasParameters<Node>;
  }

  void assign_offsets(Found const& found) {
    auto const& [parameters, buffers] = found;
    check(found);
    for (std::size_t i = parameters.size(); i-- > 0;) {
      parameters[i]->offset = entries_[i].offset = size_;
      parameters[i]->ordinal = static_cast<int>(i);
      parameters[i]->name = entries_[i].name;
      size_ += padded(entries_[i].size);
    }
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      buffers[i]->offset = buffers_[i].offset = buffer_size_;
      buffer_size_ += padded(buffers_[i].size);
    }
  }

  void check(Found const& found) const {
    auto const name_of = [this](std::size_t i) -> std::string const& {
      return i < entries_.size() ? entries_[i].name : buffers_[i - entries_.size()].name;
    };
    NameTable known;
    std::vector<std::pair<void const*, std::size_t>> visited;
    for (auto const* parameter : found.parameters) visited.emplace_back(parameter, visited.size());
    for (auto const* buffer : found.buffers) visited.emplace_back(buffer, visited.size());
    for (std::size_t i = 0; i < visited.size(); ++i) {
      if (name_of(i).empty())
        throw ConfigError("model: a parameter or buffer has an empty name; give it a name in visit(), which files use");
      if (known.add(name_of) != NameTable::none)
        throw ConfigError("model: two parameters or buffers are named \"" + name_of(i) +
                          "\"; give the layers in visit() different names");
    }
    std::sort(visited.begin(), visited.end());
    for (std::size_t k = 1; k < visited.size(); ++k)
      if (visited[k].first == visited[k - 1].first)
        throw ConfigError("model: \"" + name_of(visited[k].second) +
                          "\" is visited twice; to share it, visit it once and pass it to the functions that use it");
  }

  std::vector<Entry> entries_, buffers_;
  Index size_ = 0, buffer_size_ = 0;
};

}}}  // namespace lockstep::nn
