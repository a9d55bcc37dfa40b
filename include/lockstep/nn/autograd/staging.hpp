// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <type_traits>

#include <lockstep/core/float16.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/copy/convert.hpp>
#include <lockstep/kernel/write.hpp>
#include <lockstep/memory/resource.hpp>
#include <lockstep/memory/scratch.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/parameter.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Element type in which kernels read and write a context's activations: their template argument. On the host, the
/// compute type; on a device, the storage type, because kernels convert when they load and store.
template <class Context>
using Operand = std::conditional_t<Context::Space::host_accessible, typename Context::Real, typename Context::Scalar>;

/// Operand of losses. For float16 activations it is Real, because gradients are scaled before they are rounded.
template <class Context>
using LossOperand =
    std::conditional_t<std::is_same_v<typename Context::Scalar, float16>, typename Context::Real, Operand<Context>>;

/// Views for a layer's kernels, of type Operand. If activations are stored in another type, as 16-bit ones are on the
/// host, reads convert. Writes are then rounded once, when this object goes out of scope. Otherwise the views are the
/// activations themselves, at no cost. Also provides temporary memory for the kernels of one pass.
///
/// Make one for each pass of a layer, on the context's thread. Its views end with it. Nested ones must end in reverse
/// order.
template <class Context>
class [[nodiscard]] Staging {
 public:
  using Scalar = typename Context::Scalar;  ///< type of stored activations
  using Real = typename Context::Real;      ///< type of parameters
  using Space = typename Context::Space;    ///< memory of the views
  using Operand = nn::Operand<Context>;     ///< type of the views

  /// Begins the pass of a layer on this context.
  explicit Staging(Context& context) : context_(&context), mark_(context.parts().staging.scratch.mark()) {
    if constexpr (converts) first_ = context.parts().staging.results.size();
  }
  Staging(Staging const&) = delete;
  Staging& operator=(Staging const&) = delete;
  ~Staging() {
    if constexpr (converts) {
      auto& staged = context_->parts().staging.results;
      for (auto i = first_; i < staged.size(); ++i) store(staged[i]);
      staged.resize(first_);
    }
    context_->parts().staging.scratch.rewind(mark_);
  }

  /// Returns x's current values. A null view stays null.
  template <class Element, int Rank>
  [[nodiscard]] TensorView<Operand const, Rank, Space> read(TensorView<Element, Rank, Space> x) {
    return as<Operand>(TensorView<Scalar const, Rank, Space>{x.data, x.extent});
  }
  /// Returns x's current values for a kernel that takes Real regardless of the storage type.
  template <class Element, int Rank>
  [[nodiscard]] TensorView<Real const, Rank, Space> read_real(TensorView<Element, Rank, Space> x) {
    return as<Real>(TensorView<Scalar const, Rank, Space>{x.data, x.extent});
  }

  /// Returns x's current values for a loss.
  template <class Element, int Rank>
  [[nodiscard]] TensorView<LossOperand<Context> const, Rank, Space> read_for_loss(TensorView<Element, Rank, Space> x) {
    return as<LossOperand<Context>>(TensorView<Scalar const, Rank, Space>{x.data, x.extent});
  }

  /// Returns a parameter that is multiplied with activations, in the activations' type.
  template <int Rank>
  [[nodiscard]] TensorView<Operand const, Rank, Space> factor(Parameter const& p) {
    auto const value = context_->template value<Rank>(p);
    if constexpr (!std::is_same_v<Operand, Real>)
      if (auto const* const half = context_->parameters().half_precision_value(p)) return {half, value.extent};
    return as<Operand>(value);
  }

  /// Returns where to write y. The kernel must write all of it.
  template <int Rank>
  [[nodiscard]] TensorView<Operand, Rank, Space> write(TensorView<Scalar, Rank, Space> y) {
    return target<Operand>(y, Write::overwrite);
  }

  /// Returns y's current values, to update in place.
  template <int Rank>
  [[nodiscard]] TensorView<Operand, Rank, Space> update(TensorView<Scalar, Rank, Space> y) {
    if constexpr (!std::is_same_v<Operand, Scalar>) {
      if (!y.data) return {nullptr, y.extent};
      auto const now = read(y);
      Real* const data = const_cast<Real*>(now.data);  // memory of this object
      store_later(data, y, Write::overwrite);
      return {data, y.extent};
    } else {
      return y;
    }
  }

  /// Returns uninitialized memory for the kernels of this pass. Later passes reuse it.
  template <class Element = Real, std::size_t Rank>
  [[nodiscard]] TensorView<Element, static_cast<int>(Rank), Space> temporary(std::array<Index, Rank> extent) {
    return take<Element>(extent);
  }

  /// Context::gradient for kernels. Call it in the order in which gradients of one variable are to be added.
  template <int Rank>
  [[nodiscard]] GradientTarget<Operand> gradient(Variable<Scalar, Rank, Space> const& v) {
    return staged<Operand>(v, context_->gradient(v));
  }
  /// Context::gradient for kernels that compute in Real on a device, too.
  template <int Rank>
  [[nodiscard]] GradientTarget<Real> gradient_real(Variable<Scalar, Rank, Space> const& v) {
    return staged<Real>(v, context_->gradient(v));
  }
  /// Returns where a loss writes, in forward, the gradient of its input. The gradient is multiplied by the context's
  /// loss scale, if bound.
  template <int Rank>
  [[nodiscard]] GradientTarget<LossOperand<Context>> loss_gradient(Variable<Scalar, Rank, Space> const& v) {
    auto const to = staged<LossOperand<Context>>(v, context_->parts().arena.target(v.slot));
    if constexpr (std::is_same_v<Scalar, float16>)
      if (to) context_->parts().staging.results.back().scale = context_->parts().loss_scale.get();
    return to;
  }
  /// Context::gradient_in_place for kernels. Read y's gradient first.
  template <int Rank>
  [[nodiscard]] GradientTarget<Operand> gradient_in_place(Variable<Scalar, Rank, Space> const& x,
                                                          Variable<Scalar, Rank, Space> const& y) {
    return staged<Operand>(x, context_->gradient_in_place(x, y));
  }

 private:
  static constexpr bool converts = !std::is_same_v<Scalar, Real>;

  struct Nothing {};

  void store(detail::Staged<Real, Scalar, Space> const& staged) const {
    using Convert = kernel::Convert<Space>;
    if constexpr (std::is_same_v<Scalar, float16>)
      if (staged.scale)
        return Convert::template run_scaled<Scalar, Real>(context_->stream(), staged.from, staged.scale, staged.to,
                                                          staged.write);
    Convert::template run<Scalar, Real>(context_->stream(), staged.from, staged.to, staged.write);
  }
  template <class Element, std::size_t Rank>
  [[nodiscard]] TensorView<Element, static_cast<int>(Rank), Space> take(std::array<Index, Rank> extent) {
    return {context_->parts().staging.scratch.template take_elements<Element>(elements(extent)), extent};
  }
  template <class To, class From, int Rank>
  [[nodiscard]] TensorView<To const, Rank, Space> as(TensorView<From const, Rank, Space> x) {
    if constexpr (std::is_same_v<To, From>) {
      return x;
    } else {
      if (!x.data) return {nullptr, x.extent};
      auto const copy = take<To>(x.extent);
      Extents<1> const flat{x.size()};
      kernel::Convert<Space>::template run<To, From>(context_->stream(), {x.data, flat}, {copy.data, flat});
      return {copy.data, copy.extent};
    }
  }
  template <int Rank>
  void store_later(Real const* from, TensorView<Scalar, Rank, Space> to, Write write) {
    Extents<1> const flat{to.size()};
    context_->parts().staging.results.push_back({{from, flat}, {to.data, flat}, write, nullptr});
  }
  template <class Element, int Rank>
  [[nodiscard]] TensorView<Element, Rank, Space> target(TensorView<Scalar, Rank, Space> y, Write write) {
    if constexpr (std::is_same_v<Element, Scalar>) {
      static_cast<void>(write);
      return y;
    } else {
      if (!y.data) return {nullptr, y.extent};
      auto const operand = take<Element>(y.extent);
      store_later(operand.data, y, write);
      return operand;
    }
  }
  template <class Element, int Rank>
  [[nodiscard]] GradientTarget<Element> staged(Variable<Scalar, Rank, Space> const& v, GradientTarget<Scalar> to) {
    if constexpr (std::is_same_v<Element, Scalar>) {
      return to;
    } else {
      return {target<Element>(TensorView<Scalar, Rank, Space>{to.data, v.value.extent}, to.write).data,
              Write::overwrite};
    }
  }

  Context* context_;
  typename memory::Scratch<memory::DefaultResource<Space>>::Mark mark_;
  std::conditional_t<converts, std::size_t, Nothing> first_{};
};

}}}  // namespace lockstep::nn
