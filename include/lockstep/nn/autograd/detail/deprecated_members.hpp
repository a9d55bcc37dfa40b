// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <lockstep/core/index.hpp>
#include <lockstep/core/timeline.hpp>
#include <lockstep/kernel/embedding/touched_rows.hpp>
#include <lockstep/nn/autograd/parameter.hpp>
#include <lockstep/nn/autograd/parameter_gradients.hpp>
#include <lockstep/nn/autograd/pass.hpp>
#include <lockstep/nn/autograd/tape.hpp>

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
  [[deprecated("Context::parameters().gradients().add_use")]] void expect_use(Parameter const& p) {
    gradients().add_use(p);
  }
  [[deprecated("Context::parameters().gradients().add_use")]] void add_use(Parameter const& p) {
    gradients().add_use(p);
  }
  [[deprecated("Context::parameters().gradients().finish_use")]] void used(Parameter const& p) {
    gradients().finish_use(p);
  }
  [[deprecated("Context::parameters().gradients().finish_use")]] void finish_use(Parameter const& p) {
    gradients().finish_use(p);
  }
  [[deprecated("Context::cache().cached_tokens"), nodiscard]] Index earlier_tokens() const {
    return self().parts().cache.cached_tokens();
  }
  [[deprecated("Context::cache().cached_tokens"), nodiscard]] Index cached_tokens() const {
    return self().parts().cache.cached_tokens();
  }
  [[deprecated("Context::cache().expect_whole_sequences")]] void expect_whole_sequences(char const* who) const {
    self().parts().cache.expect_whole_sequences(who);
  }

  [[deprecated("Context::cache().is_decoding"), nodiscard]] bool is_decoding() noexcept {
    return self().cache().is_decoding();
  }
  template <class Layout>
  [[deprecated("Context::cache().recurrent_state"), nodiscard]] auto recurrent_state(Layout const& layout,
                                                                                     Index width) {
    return self().cache().recurrent_state(layout, width);
  }
  template <class Sequence, class Make>
  [[deprecated("Context::cache().cached_memory"), nodiscard]] Sequence cached_memory(Make const& make) {
    return self().cache().template cached_memory<Sequence>(make);
  }
  template <class View>
  [[deprecated("Context::cache().is_cached_memory"), nodiscard]] bool is_cached_memory(View x) noexcept {
    return self().cache().is_cached_memory(x);
  }
  [[deprecated("Context::cache().end_decoding")]] void end_decoding() noexcept { self().cache().end_decoding(); }
  [[deprecated("Context::cache().select_rows")]] void select_rows(std::span<Index const> rows) {
    self().cache().select_rows(rows);
  }
  [[deprecated("Context::parameters().gradients().written"), nodiscard]] bool written(std::size_t ordinal) noexcept {
    return gradients().written(ordinal);
  }
  [[deprecated("Context::parameters().gradients().written"), nodiscard]] std::span<std::uint8_t const>
  written() noexcept {
    return gradients().written();
  }
  [[deprecated("Context::parameters().gradients().set_written")]] void set_written(
      std::span<std::uint8_t const> written) noexcept {
    gradients().set_written(written);
  }
  [[deprecated("Context::parameters().gradients().touched"), nodiscard]] std::span<kernel::TouchedRows const>
  touched() noexcept {
    return gradients().touched();
  }
  template <class Scalar>
  [[deprecated("Context::parameters().bind_half_precision_values")]] void bind_half_precision_values(
      Scalar const* values) noexcept {
    self().parameters().bind_half_precision_values(values);
  }
  template <class Group>
  [[deprecated("Context::parts().replicas.bind_group")]] void bind_group(Group* group) noexcept {
    self().parts().replicas.bind_group(group);
  }
  [[deprecated("Context::parts().replicas.take_exchange_seconds"), nodiscard]] double take_exchange_seconds() noexcept {
    return self().parts().replicas.take_exchange_seconds();
  }
  template <class Scale>
  [[deprecated("Context::parts().loss_scale.bind")]] void bind_loss_scale(Scale const* scale) noexcept {
    self().parts().loss_scale.bind(scale);
  }
  [[deprecated("Context::parts().loss_scale.get"), nodiscard]] auto loss_scale() noexcept {
    return self().parts().loss_scale.get();
  }

  template <class... Arguments>
  [[deprecated("Context::parameters().bind")]] void bind(Arguments const&... arguments) {
    self().parameters().bind(arguments...);
  }
  template <class Real>
  [[deprecated("Context::parameters().bind_buffers")]] void bind_buffers(Real* buffers) noexcept {
    self().parameters().bind_buffers(buffers);
  }
  [[deprecated("Pass::begin_step")]] void begin_step() { pass().begin_step(); }
  [[deprecated("Pass::begin_micro_batch")]] void begin_micro_batch(Mode mode, std::uint64_t key) {
    pass().begin_micro_batch(mode, key);
  }
  [[deprecated("Pass::restart_micro_batch")]] void restart_micro_batch() { pass().restart_micro_batch(); }
  [[deprecated("Pass::backward")]] void backward(ReadySink sink) { pass().backward(sink); }
  [[deprecated("Pass::trace")]] void trace(Timeline* timeline, double (*now)(void*), void* data) {
    pass().trace(timeline, now, data);
  }
  [[deprecated("Pass::end_forward")]] void end_forward() { pass().end_forward(); }
  [[deprecated("Pass::memory_version"), nodiscard]] std::uint64_t memory_version() const noexcept {
    return pass().memory_version();
  }
  [[deprecated("Pass::activation_bytes"), nodiscard]] std::size_t activation_bytes() const noexcept {
    return pass().activation_bytes();
  }

  [[deprecated("Context::parts().mode")]] Mode set_mode(Mode mode) noexcept {
    return std::exchange(self().parts().mode, mode);
  }
  [[deprecated("Context::parts().active_tracer"), nodiscard]] auto* tracer() noexcept {
    return self().parts().active_tracer();
  }
  [[deprecated("Context::parts().arena"), nodiscard]] auto& arena() noexcept { return self().parts().arena; }
  [[deprecated("Context::parts().tape"), nodiscard]] auto& tape() noexcept { return self().parts().tape; }
  [[deprecated("Context::parts().random"), nodiscard]] auto& random() noexcept { return self().parts().random; }
  [[deprecated("Context::parts().replicas"), nodiscard]] auto& replicas() noexcept { return self().parts().replicas; }
  [[deprecated("Context::parts().loss_scale"), nodiscard]] auto& loss_scaling() noexcept {
    return self().parts().loss_scale;
  }
  [[deprecated("Context::parts().staging"), nodiscard]] auto& staging() noexcept { return self().parts().staging; }

 private:
  [[nodiscard]] Context& self() noexcept { return static_cast<Context&>(*this); }
  [[nodiscard]] Context const& self() const noexcept { return static_cast<Context const&>(*this); }
  [[nodiscard]] auto& gradients() noexcept { return self().parameters().gradients(); }
  [[nodiscard]] Pass<Context> pass() noexcept { return Pass<Context>(self()); }
  [[nodiscard]] Pass<Context const> pass() const noexcept { return Pass<Context const>(self()); }
};

}}}  // namespace lockstep::nn::detail
