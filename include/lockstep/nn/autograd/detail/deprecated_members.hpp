// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include <lockstep/core/index.hpp>
#include <lockstep/kernel/embedding/touched_rows.hpp>
#include <lockstep/nn/autograd/parameter.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn::detail {

/// Old names of a context's members, and members that moved to its parts, for one version.
template <class Context>
class DeprecatedMembers {
 public:
  template <class Variable>
  [[deprecated("Context::release_until_backward")]] void set_aside(Variable const& x) {
    self().release_until_backward(x);
  }
  template <class Variable, class Function>
  [[deprecated("Context::on_recompute")]] void can_make_again(Variable const& x, Function f) {
    self().on_recompute(x, f);
  }
  template <class Variable>
  [[deprecated("Context::saved_value"), nodiscard]] auto value_of(Variable const& x) {
    return self().saved_value(x);
  }
  template <class Element>
  [[deprecated("Context::persistent"), nodiscard]] Element& kept(void const* owner) {
    return self().template persistent<Element>(owner);
  }
  [[deprecated("Context::add_use")]] void expect_use(Parameter const& p) { self().add_use(p); }
  [[deprecated("Context::finish_use")]] void used(Parameter const& p) { self().finish_use(p); }
  [[deprecated("Context::cached_tokens"), nodiscard]] Index earlier_tokens() const noexcept {
    return static_cast<Context const&>(*this).cached_tokens();
  }

  [[deprecated("Context::cache().is_decoding"), nodiscard]] bool is_decoding() noexcept {
    return self().cache().is_decoding();
  }
  template <class View, class Layout>
  [[deprecated("Context::cache().append"), nodiscard]] View append(View x, Layout const& layout) {
    return self().cache().append(x, layout);
  }
  template <class Layout>
  [[deprecated("Context::cache().recurrent_state"), nodiscard]] auto recurrent_state(Layout const& layout,
                                                                                     Index width) {
    return self().cache().recurrent_state(layout, width);
  }
  template <class View, class Make>
  [[deprecated("Context::cache().cached_projection"), nodiscard]] View cached_projection(View memory, Index width,
                                                                                         Make const& make) {
    return self().cache().cached_projection(memory, width, make);
  }
  template <class Sequence, class Make>
  [[deprecated("Context::cache().cached_memory"), nodiscard]] Sequence cached_memory(Make const& make) {
    return self().cache().template cached_memory<Sequence>(make);
  }
  template <class View>
  [[deprecated("Context::cache().is_cached_memory"), nodiscard]] bool is_cached_memory(View x) noexcept {
    return self().cache().is_cached_memory(x);
  }
  [[deprecated("Context::cache().begin_decoding_pass")]] void begin_decoding_pass(Index earlier) noexcept {
    self().cache().begin_decoding_pass(earlier);
  }
  [[deprecated("Context::cache().end_decoding")]] void end_decoding() noexcept { self().cache().end_decoding(); }
  [[deprecated("Context::cache().select_rows")]] void select_rows(std::span<Index const> rows) {
    self().cache().select_rows(rows);
  }
  [[deprecated("Context::cache().appended_tokens"), nodiscard]] Index appended_tokens() noexcept {
    return self().cache().appended_tokens();
  }
  [[deprecated("Context::parameters().gradients().written"), nodiscard]] bool written(std::size_t ordinal) noexcept {
    return self().parameters().gradients().written(ordinal);
  }
  [[deprecated("Context::parameters().gradients().written"), nodiscard]] std::span<std::uint8_t const>
  written() noexcept {
    return self().parameters().gradients().written();
  }
  [[deprecated("Context::parameters().gradients().set_written")]] void set_written(
      std::span<std::uint8_t const> written) noexcept {
    self().parameters().gradients().set_written(written);
  }
  [[deprecated("Context::parameters().gradients().touched"), nodiscard]] std::span<kernel::TouchedRows const>
  touched() noexcept {
    return self().parameters().gradients().touched();
  }
  template <class Scalar>
  [[deprecated("Context::parameters().bind_half_precision_values")]] void bind_half_precision_values(
      Scalar const* values) noexcept {
    self().parameters().bind_half_precision_values(values);
  }
  template <class Group>
  [[deprecated("Context::replicas().bind_group")]] void bind_group(Group* group) noexcept {
    self().replicas().bind_group(group);
  }
  [[deprecated("Context::replicas().take_exchange_seconds"), nodiscard]] double take_exchange_seconds() noexcept {
    return self().replicas().take_exchange_seconds();
  }
  template <class Scale>
  [[deprecated("Context::loss_scaling().bind")]] void bind_loss_scale(Scale const* scale) noexcept {
    self().loss_scaling().bind(scale);
  }
  [[deprecated("Context::loss_scaling().get"), nodiscard]] auto loss_scale() noexcept {
    return self().loss_scaling().get();
  }

 private:
  [[nodiscard]] Context& self() noexcept { return static_cast<Context&>(*this); }
};

}}}  // namespace lockstep::nn::detail
