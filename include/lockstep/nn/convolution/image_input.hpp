// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/convolution/image_input.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/staging.hpp>
#include <lockstep/nn/convolution/per_axis.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Options of ImageInput: size of a sample, mean and deviation of its channels.
template <int Dims>
struct ImageInputOptions {
  PerAxis<Dims> extent = 1;            ///< of a sample, in pixels or voxels
  std::vector<double> mean{0.5};       ///< mean of each channel; white is 1; one number per channel
  std::vector<double> deviation{0.5};  ///< standard deviation of each channel
};

/// Converts images or videos of bytes to activations: y = (x / 255 - mean) / deviation, for each channel. Batches stay
/// bytes until here. Bytes are in row-major order, channels last. No gradient flows in.
/// @determinism bitwise, for any number of threads
template <int Dims>
class ImageInput : detail::RejectedCalls<Dims + 2> {
 public:
  using Options = ImageInputOptions<Dims>;  ///< type of its options

  /// @throws ConfigError unless extents are at least 1, there is at least one mean and one deviation for each mean, and
  /// deviations are above 0
  explicit ImageInput(Options options) : options_(std::move(options)) {
    auto const& [extent, mean, deviation] = options_;
    bool const positive = std::all_of(deviation.begin(), deviation.end(), [](double d) { return d > 0; }) &&
                          std::all_of(extent.values.begin(), extent.values.end(), [](Index e) { return e >= 1; });
    expect<ConfigError>(
        positive && !mean.empty() && mean.size() == deviation.size(),
        [&, means = mean.size(), deviations = deviation.size(), sizes = extent.values] {
          return "ImageInput: extent " + to_string(sizes) + ", " + std::to_string(means) + " means and " +
                 std::to_string(deviations) +
                 " deviations; extents must be at least 1, each channel needs a mean and a deviation above 0";
        });
  }

  /// Names nothing: there are no parameters.
  void visit(auto&&) {}

  /// Returns the number of means.
  [[nodiscard]] Index channels() const noexcept { return static_cast<Index>(options_.mean.size()); }
  /// Returns the bytes of one sample.
  [[nodiscard]] Index sample_size() const noexcept { return elements(options_.extent.values) * channels(); }

  /// Returns the normalized images.
  /// @shape x [rows, …], sample_size() bytes in each row   @shape returns [rows, extent…, channels]
  /// @throws ShapeError if a row has another size
  template <class Context, int Rank>
  [[nodiscard]] VariableOf<Context, Dims + 2> forward(
      Context& context, TensorView<std::uint8_t const, Rank, typename Context::Space> x) const {
    using Scalar = typename Context::Scalar;
    using Kernel = kernel::ImageInput<typename Context::Space>;
    auto const rows = x.extent[0];
    expect<ShapeError>(x.size() == rows * sample_size(), [&] {
      return "ImageInput: the input is " + to_string(x.extent) + "; each row needs " + std::to_string(sample_size()) +
             " bytes, " + to_string(options_.extent.values) + " pixels of " + std::to_string(channels()) +
             " channel(s)";
    });
    Extents<Dims + 2> extent{rows};
    std::copy_n(options_.extent.values.begin(), Dims, extent.begin() + 1);
    extent.back() = channels();
    auto const y = context.template temporary<Scalar>(extent);
    auto const table =
        context.template temporary<typename Context::Real>(Extents<1>{Kernel::table_elements(channels())});
    Extents<2> const matrix{y.size() / channels(), channels()};
    Staging work(context);
    Kernel::template normalize<nn::Operand<Context>>(context.stream(), x.reshape(matrix), options_.mean,
                                                     options_.deviation, work.write(y).reshape(matrix), table.data);
    return context.input(y);
  }

  /// Normalizes a column of a batch: any object that holds the bytes as `.values`.
  /// @throws RowError (at Contract::normal) for a sample shorter than the others, with its row
  template <class Context, class Column>
  requires requires(Column const& column) { column.values; }
  [[nodiscard]] VariableOf<Context, Dims + 2> forward(Context& context, Column const& x) const {
    if constexpr (checks(Contract::normal) && requires { x.lengths(Index{0}); }) {
      for (Index row = 0; row < x.lengths.size(); ++row)
        if (x.lengths(row) != sample_size())
          throw RowError("ImageInput: row " + std::to_string(row) + " of the batch has " +
                             std::to_string(x.lengths(row)) + " bytes; each sample needs " +
                             std::to_string(sample_size()),
                         row);
    }
    return forward(context, x.values);
  }
  /// Rejects calls without the context in front, or without an input, at compile time.
  using detail::RejectedCalls<Dims + 2>::forward;

 private:
  Options options_;
};

}}}  // namespace lockstep::nn
