// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/nn/loss/elementwise_loss.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Options of kl_to_standard_normal.
struct KlToStandardNormalOptions {
  double factor = 1;  ///< multiplies loss and gradient: the beta of a beta-VAE
};

/// Kullback-Leibler divergence of N(mean, e^(2 log_deviation)) from N(0, 1), summed over the elements:
/// (mean^2 + e^(2 s) - 1) / 2 - s with s = log_deviation. The weight is the number of elements of the mean. A
/// variational autoencoder adds it to its reconstruction loss: reconstruction.with_auxiliary(divergence). That adds the
/// sums and keeps the weight of the reconstruction.
/// @shape mean, log_deviation both [rows, width], or two Sequences of equal layout
/// @determinism bitwise, for any number of threads
/// @source Kingma, Welling: Auto-Encoding Variational Bayes (2014)
template <class Context, class Prediction>
[[nodiscard]] LossOf<Context> kl_to_standard_normal(Context& context, Prediction const& mean,
                                                    Prediction const& log_deviation,
                                                    KlToStandardNormalOptions const& options = {}) {
  return elementwise_loss(context, kernel::KlDivergenceOfMean{}, mean, options.factor)
      .with_auxiliary(elementwise_loss(context, kernel::KlDivergenceOfLogDeviation{}, log_deviation, options.factor));
}

}}}  // namespace lockstep::nn
