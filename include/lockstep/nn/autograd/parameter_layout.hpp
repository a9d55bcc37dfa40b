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
  /// One parameter: its name, shape and place in the arenas, counted in elements.
  struct Entry {
    std::string name;                                  ///< "encoder.0.attention.query.weight"
    std::vector<Index> shape;                          ///< extents
    Initializer initializer;                           ///< initial values
    Index offset = 0;                                  ///< first element in the arenas
    Index size = 0;                                    ///< elements, without padding
    GradientForm gradient_form = GradientForm::dense;  ///< dense, or by rows of a table
    bool frozen = false;                               ///< excluded from the optimizer

    /// Returns whether this is a table whose gradient is stored by rows.
    [[nodiscard]] bool by_rows() const noexcept { return gradient_form == GradientForm::by_rows && size > 0; }
  };
  /// Alignment of each parameter in elements: one cache line of float32.
  static constexpr Index alignment = 16;

  ParameterLayout();                                             ///< makes a layout without parameters
  ~ParameterLayout();                                            ///< destroys it
  ParameterLayout(ParameterLayout const& other);                 ///< copies all of it
  ParameterLayout(ParameterLayout&& other) noexcept;             ///< takes over the content
  ParameterLayout& operator=(ParameterLayout const& other);      ///< copies all of it
  ParameterLayout& operator=(ParameterLayout&& other) noexcept;  ///< takes over the content

  /// Visits the model, names its parameters and buffers, and writes their offsets into them.
  /// @throws ConfigError if two have equal names, one has an empty name, or one is visited twice
  template <class Model>
  [[nodiscard]] static ParameterLayout of(Model& model) {
    static_assert(!std::is_const_v<Model>,
                  "Lockstep: ParameterLayout::of writes offsets into the parameters of the model, which is const here; "
                  "pass a copy: auto own = model");
    ParameterLayout layout;
    Found found;
    if constexpr (!std::is_const_v<Model>) layout.collect("", model, found);
    layout.assign_offsets(found);
    return layout;
  }

  /// Returns the parameters in forward order. A parameter's ordinal is its index here.
  [[nodiscard]] std::vector<Entry> const& entries() const noexcept { return entries_; }
  /// Returns the number of elements of an arena, padding included.
  [[nodiscard]] Index size() const noexcept { return size_; }
  /// Returns the number of elements at the beginning of the arena that hold all learned parameters. All later
  /// parameters are frozen.
  [[nodiscard]] Index learned_size() const noexcept;
  /// Returns the buffers in forward order. Most models have none.
  [[nodiscard]] std::vector<Entry> const& buffers() const noexcept { return buffers_; }
  /// Returns the number of elements of the buffer arena, padding included.
  [[nodiscard]] Index buffer_size() const noexcept { return buffer_size_; }
  /// Returns the number of parameter elements, without padding.
  [[nodiscard]] Index parameters() const noexcept;
  /// Returns the size rounded up to a multiple of `alignment`.
  [[nodiscard]] static constexpr Index padded(Index size) { return (size + alignment - 1) / alignment * alignment; }

 private:
  /// The model's parameters and buffers, in forward order like the entries.
  struct Found {
    std::vector<Parameter*> parameters;
    std::vector<Buffer*> buffers;
  };

  template <class Node>
  void collect(std::string const& name, Node& node, Found& found) {
    if constexpr (check_layer<Node>()) {
      ChildVisitor const each([&]<class Child>(std::string_view child_name, Child& child) {
        if constexpr (std::is_const_v<Child>)
          ConstChildren<Node, std::is_const_v<Child>>::report();
        else
          collect(name_in(name, child_name), child, found);
      });
      node.visit(each);
    }
  }
  void collect(std::string const& name, Parameter& parameter, Found& found);
  void collect(std::string const& name, Buffer& buffer, Found& found);
  [[nodiscard]] static std::string name_in(std::string const& parent, std::string_view child);

  template <class Node>
  static constexpr bool check_layer() {
    constexpr bool visited = HasParameters<Node>;
    static_assert(visited,
                  "Lockstep: visit calls each(name, child) with a child that is no layer: neither nn::Parameter nor "
                  "nn::Buffer, and without its own visit(each), such as a number; visit the "
                  "layers of a std::vector one by one, each(\"0\", layers[0]); see docs/reference/model.md");
    return visited;
  }
  /// Rejects const children at compile time, once for all children of a node.
  template <class Node, bool constant>
  struct ConstChildren {
    static_assert(!constant,
                  "Lockstep: visit calls each(name, child) with a const child: declare visit(auto&& each) without "
                  "const, and its layers, too; see docs/reference/model.md");
    static void report() {}
  };

  void assign_offsets(Found const& found);

  void check(Found const& found) const;

  std::vector<Entry> entries_, buffers_;
  Index size_ = 0, buffer_size_ = 0;
};

}}}  // namespace lockstep::nn

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/nn/autograd/parameter_layout.ipp>
#endif
