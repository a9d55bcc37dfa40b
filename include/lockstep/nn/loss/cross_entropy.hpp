// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <type_traits>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/float16.hpp>
#include <lockstep/kernel/loss/cross_entropy.hpp>
#include <lockstep/kernel/loss/soft_cross_entropy.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/loss.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/autograd/staging.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>
#include <lockstep/nn/loss/detail/expect_present.hpp>
#include <lockstep/nn/loss/expect_same_lengths.hpp>

// The loss with one label per row or token, for its instantiation in the library.
#define LOCKSTEP_CROSS_ENTROPY_OF(Number, Label, Space)                                                \
  LossOf<Context<Number, Space>> cross_entropy<Context<Number, Space>, Label, 1>(                      \
      Context<Number, Space>&, SequenceOf<Context<Number, Space>> const&, TensorView<Label, 1, Space>, \
      TensorView<float const, 1, Space>, CrossEntropyOptions const&)

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

using kernel::CrossEntropyOptions;

namespace detail {

/// Whether labels are probabilities of all classes (soft labels) instead of class indices.
template <class Element>
inline constexpr bool is_class_probability =
    std::is_floating_point_v<Element> || std::is_same_v<Element, bfloat16> || std::is_same_v<Element, float16>;

/// Whether the arguments behind the logits begin with labels: a batch's column or a view.
template <class... Arguments>
inline constexpr bool starts_with_labels = false;
template <class First, class... Others>
inline constexpr bool starts_with_labels<First, Others...> = BatchTensor<First> || requires(First const& column) {
  column.characters;
};

/// Rejects absent labels unless the collate's value for them is the ignored label.
template <class Space, class Labels>
void expect_labels(Labels const& labels, CrossEntropyOptions const& options) {
  if constexpr (!is_class_probability<std::remove_cvref_t<decltype(*numbers_of(labels).data)>>)
    expect_present<Space>(
        "cross_entropy, labels", labels,
        [&](auto row) { return options.ignored == static_cast<Index>(numbers_of(labels)(row)); },
        "data::PadCollate{.value = -1} writes -1 there, and {.ignored = -1} leaves it out of the loss");
}

/// `factors` may be a null view.
template <class Context, class Label, int Rank>
[[nodiscard]] LossOf<Context> cross_entropy(Context& context, SequenceOf<Context> const& logits,
                                            TensorView<Label, Rank, typename Context::Space> labels,
                                            TensorView<float const, 1, typename Context::Space> factors,
                                            CrossEntropyOptions const& options) {
  using Element = std::remove_const_t<Label>;
  static_assert(
      std::is_integral_v<Element> || std::is_enum_v<Element> || (is_class_probability<Element> && Rank > 1),
      "Lockstep: cross_entropy takes integers or enumerators as labels, one per row, or a number for each class, "
      "its share; for several classes at a time use nn::binary_cross_entropy_with_logits");
  using Operand = LossOperand<Context>;
  Extents<1> const slots{logits.tokens.extent(0)};
  auto const losses = context.template temporary<double>(slots), weights = context.template temporary<double>(slots);
  Staging work(context);
  auto const gradient = work.loss_gradient(logits.tokens);
  if constexpr (is_class_probability<Element>) {
    kernel::SoftCrossEntropy<typename Context::Space>::template forward_backward<Operand, Element>(
        context.stream(), logits.layout, options, work.read_for_loss(logits.tokens.value),
        labels.reshape(Extents<1>{labels.size()}), losses, weights, {gradient.data, logits.tokens.value.extent},
        gradient.write, factors);
    return LossOf<Context>::of(context, losses, weights);
  } else {
    kernel::CrossEntropy<typename Context::Space>::template forward_backward<Operand>(
        context.stream(), logits.layout, options, work.read_for_loss(logits.tokens.value),
        labels.reshape(Extents<1>{labels.size()}), losses, weights, {gradient.data, logits.tokens.value.extent},
        gradient.write, factors);
    return LossOf<Context>::of(context, losses, weights);
  }
}

#if defined(LOCKSTEP_COMPILED)
extern template LOCKSTEP_CROSS_ENTROPY_OF(float, std::int32_t const, HostSpace);
extern template LOCKSTEP_CROSS_ENTROPY_OF(float, std::int64_t const, HostSpace);
#endif

}  // namespace detail

/// Cross-entropy: the sum over the tokens of -log softmax(logits)[label]. Padding and ignored labels count nothing. The
/// weight is the sum of the labels' class weights, by default the number of tokens. The mean thus equals
/// torch.nn.functional.cross_entropy with the same weights, smoothing and ignored label. While recording, forward also
/// writes the gradient of the sum next to the logits: one pass serves forward and backward.
///
/// Floating-point labels are shares of all classes, for example from mixed images or a teacher. The loss is then -sum
/// over the classes of share * log softmax(logits). The weight is the number of tokens, as in PyTorch. A class weight
/// multiplies the class's share. Label smoothing spreads a part of all shares evenly.
/// @shape logits.tokens [slots, classes]   @shape labels [slots] or, padded, [rows, length]: integers in [0, classes);
/// shares as many as logits, outermost first: a column of std::array<float, classes>, or nn::softmax(…).value
/// @determinism bitwise, for any number of threads
/// @throws ShapeError if the number of labels is not the number of slots, or of class weights not of classes
/// @throws RowError (at Contract::normal) for a label outside the classes, or a share that is negative or not finite,
/// with row, label and range   @throws ConfigError for shares with an ignored label
template <class Context, class Label, int Rank>
[[nodiscard]] LossOf<Context> cross_entropy(Context& context, SequenceOf<Context> const& logits,
                                            TensorView<Label, Rank, typename Context::Space> labels,
                                            CrossEntropyOptions const& options = {}) {
  return detail::cross_entropy(context, logits, labels, {}, options);
}

/// Cross-entropy with one label per row, or per pixel of an image. The weight is the number of labels.
/// @shape logits [rows, …, classes]   @shape labels [rows, …]
template <class Context, class Label, int LogitsRank, int Rank>
[[nodiscard]] LossOf<Context> cross_entropy(Context& context, VariableOf<Context, LogitsRank> logits,
                                            TensorView<Label, Rank, typename Context::Space> labels,
                                            CrossEntropyOptions const& options = {}) {
  return cross_entropy(context, detail::as_tokens(logits), labels, options);
}

/// Cross-entropy with a column of a batch: any object that holds the labels as `.values`.
/// @throws ShapeError (on the host) if a sequence has more or fewer labels than tokens; RowError for a row whose
/// std::optional label is empty and not ignored
template <class Context, class Logits, class Column>
requires requires(Column const& column) { column.values; }
[[nodiscard]] LossOf<Context> cross_entropy(Context& context, Logits const& logits, Column const& labels,
                                            CrossEntropyOptions const& options = {}) {
  static_assert(detail::LayerOutput<Logits>,
                "Lockstep: cross_entropy takes logits, a Variable or a Sequence; if predict returns several in a "
                "struct, pass one of its members; see docs/reference/model.md");
  if constexpr (detail::LayerOutput<Logits>) {
    expect_same_lengths("cross_entropy", logits, labels);
    detail::expect_labels<typename Context::Space>(labels, options);
    return cross_entropy(context, logits, labels.values, options);
  } else {
    return {};
  }
}

/// Cross-entropy with a factor for each row or token, for example a sample weight or an action's advantage in
/// reinforcement learning. Factors multiply loss and gradient, not the weight: the mean equals PyTorch's losses with
/// reduction='none', times the factors.
/// @shape logits, labels as above, labels as a column or a view   @shape factors [rows] or [slots]: a column or a view
/// of floats
/// @throws ShapeError if the number of factors is not the number of rows of logits
template <class Context, class Logits, class Labels, class Factors>
requires(!std::is_convertible_v<Factors const&, CrossEntropyOptions>)
    [[nodiscard]] LossOf<Context> cross_entropy(Context& context, Logits const& logits, Labels const& labels,
                                                Factors const& factors, CrossEntropyOptions const& options = {}) {
  expect_same_lengths("cross_entropy", logits, labels);
  expect_same_lengths("cross_entropy", logits, factors);
  detail::expect_labels<typename Context::Space>(labels, options);
  auto const each = detail::numbers_of(factors);
  static_assert(std::is_same_v<std::remove_const_t<std::remove_pointer_t<decltype(each.data)>>, float>,
                "Lockstep: cross_entropy takes a float for each row as its factors");
  TensorView<float const, 1, typename Context::Space> const flat{each.data, {each.size()}};
  if constexpr (requires { logits.tokens; })
    return detail::cross_entropy(context, logits, detail::numbers_of(labels), flat, options);
  else
    return detail::cross_entropy(context, detail::as_tokens(logits), detail::numbers_of(labels), flat, options);
}

/// Rejects labels before the logits at compile time.
template <class Context, class Labels, class Logits>
requires(detail::LayerOutput<Logits> &&
         !detail::LayerOutput<Labels>) LossOf<Context> cross_entropy(Context&, Labels const&, Logits const&,
                                                                     CrossEntropyOptions const& = {}) {
  static_assert(!std::is_same_v<Labels, Labels>,
                "Lockstep: cross_entropy takes the logits first: nn::cross_entropy(context, logits, labels)");
  return {};
}

/// Rejects strings as labels at compile time.
template <class Context, class Logits, class Column>
requires requires(Column const& column) { column.characters; }
LossOf<Context> cross_entropy(Context&, Logits const&, Column const&, CrossEntropyOptions const& = {}) {
  static_assert(
      !std::is_same_v<Column, Column>,
      "Lockstep: cross_entropy got strings as labels, but takes integers or enumerators: number the classes when "
      "samples are made; see docs/how-to/bring-your-data.md");
  return {};
}

/// Rejects nn::where_present at compile time.
template <class Context, class Logits, class Labels>
requires requires(Labels const& labels) { labels.targets.present; }
LossOf<Context> cross_entropy(Context&, Logits const&, Labels const&, CrossEntropyOptions const& = {}) {
  static_assert(!std::is_same_v<Labels, Labels>,
                "Lockstep: nn::where_present is for losses of numbers. Leave missing labels out of cross_entropy by "
                "data::PadCollate{.value = -1} and {.ignored = -1}; see docs/reference/model.md");
  return {};
}

/// Rejects calls without labels, or with others than a column or a view, at compile time.
template <detail::IsContext Context, class Logits, class... Labels>
requires(detail::LayerOutput<Logits> && !detail::starts_with_labels<Labels...>)  //
    LossOf<Context> cross_entropy(Context&, Logits const&, Labels const&...) {
  return detail::reject_missing_target<LossOf<Context>>();
}
/// Rejects calls without the context in front at compile time.
auto cross_entropy(detail::NoContext auto const& first, auto const&...) {
  static_cast<void>(detail::reject_call(first));
  return Loss<HostSpace>{};
}

}}}  // namespace lockstep::nn
