// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/nn/elementwise_loss.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn {

struct KlToStandardNormalOptions {
  double factor = 1;  ///< of the loss and its gradient: beta, of a beta-VAE
};

/// The Kullback-Leibler divergence of N(mean, e^(2 log_deviation)) from N(0, 1), summed over the elements:
/// (mean^2 + e^(2 s) - 1) / 2 - s. The weight is the number of elements of the mean. A variational autoencoder adds it
/// to what it reconstructs: reconstruction.with_auxiliary(divergence), the sum of both sums over the weight of the
/// first.
/// @shape mean, log_deviation [rows, width] both, or two Sequences alike
/// @determinism bitwise, for any number of threads
/// @source Kingma, Welling: Auto-Encoding Variational Bayes (2014)
template <class Context, class Prediction>
[[nodiscard]] LossOf<Context> kl_to_standard_normal(Context& context, Prediction const& mean,
                                                    Prediction const& log_deviation,
                                                    KlToStandardNormalOptions const& options = {}) {
  return elementwise_loss(context, kernel::DivergenceOfMean{}, mean, options.factor)
      .with_auxiliary(elementwise_loss(context, kernel::DivergenceOfLogDeviation{}, log_deviation, options.factor));
}

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
