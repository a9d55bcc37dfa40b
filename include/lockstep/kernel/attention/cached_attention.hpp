// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <span>

#include <lockstep/kernel/attention/keys_and_values.hpp>
#include <lockstep/kernel/detail/kernel_types.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Attention of one query per sequence to the kept keys and values of that sequence, for prediction token by token.
template <class Space>
struct CachedAttention : detail::NotIncluded<Space> {};

/// One task per sequence and head of keys. Reads keys and values in place.
template <>
struct CachedAttention<HostSpace> : detail::KernelTypes<HostSpace> {
  /// Arguments of `forward`.
  template <class Scalar>
  struct Inputs {
    Matrix<Scalar const> query;                                        ///< [rows, heads * head width]
    std::span<std::shared_ptr<KeysAndValues<Scalar>> const> attended;  ///< of each row
    Index heads;                                                       ///< of the queries
    double scale;                                                      ///< factor of query . key
    Index query_heads_per_key_head = 1;  ///< adjacent query heads that share one head of keys and values
    Matrix<Scalar const> bias{};         ///< [heads, distances], or null
    Index const* first_bias = nullptr;   ///< [rows]: element of the bias that a row's first key takes
  };

  /// Returns the elements of scratch memory that `forward` needs.
  template <class Scalar>
  [[nodiscard]] static Index scratch(Stream stream, Inputs<Scalar> const& in);

  /// Computes out = sum over j of p[j] value[j], with p = softmax over j of (scale query . key[j] + bias[first_bias +
  /// j]), for each row and head.
  /// @shape out as query   @shape memory [scratch(stream, in)]
  /// @determinism bitwise, for any number of threads; equal to the last query of Attention<HostSpace>::forward
  /// @throws ShapeError if the shapes disagree
  /// @source kernel::Attention, for one query
  template <class Scalar>
  static void forward(Stream stream, Inputs<Scalar> const& in, Matrix<Scalar> out, Vector<Scalar> memory);

 private:
  template <class Product, class Scalar>
  static void forward_head(Product product, Inputs<Scalar> const& in, Index row, Index head, Scalar* out,
                           Scalar* scores);
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/attention/cached_attention.ipp>
#endif
