// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/data/dataset.hpp>
#include <lockstep/data/detail/read_sample.hpp>
#include <lockstep/data/detail/sample_reader.hpp>
#include <lockstep/data/sample_extent.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {
namespace detail {

/// Number of channels of a member that can be scaled, each with a mean and a deviation; 0 for others.
template <class Member>
inline constexpr std::size_t channels_of = std::is_floating_point_v<Member> ? 1 : 0;
template <std::floating_point Value, std::size_t Count>
inline constexpr std::size_t channels_of<std::array<Value, Count>> = Count;
template <std::floating_point Value>
inline constexpr std::size_t channels_of<std::optional<Value>> = 1;
template <class Element>
inline constexpr std::size_t channels_of<std::vector<Element>> = channels_of<Element>;

/// Calls f(number, channel) for each number that is present.
template <class Member, class Function>
void each_number(Member& member, Function const& f, std::size_t channel = 0) {
  if constexpr (std::is_floating_point_v<std::remove_const_t<Member>>) {
    f(member, channel);
  } else if constexpr (requires { member.has_value(); }) {
    if (member) f(*member, channel);
  } else if constexpr (requires { std::tuple_size<std::remove_const_t<Member>>::value; }) {
    for (auto& number : member) f(number, channel++);
  } else {
    for (auto& element : member) each_number(element, f);
  }
}

/// Mean and standard deviation of one channel.
struct ChannelScale {
  double mean = 0, deviation = 1;
};

/// Returns numbers as text, with all digits.
[[nodiscard]] std::string text_of(std::span<ChannelScale const> scales);
/// Reads what text_of wrote.   @throws DataError if the text is not of as many channels
void read_scales(std::string_view text, std::span<ChannelScale> scales);

}  // namespace detail

/// Standardizes members of a sample, as scikit-learn's StandardScaler: subtracts the mean of the training samples and
/// divides by their standard deviation. `StandardScaler const scale{training, &Run::setup, &Run::energy}` is a function
/// for Transform: `Transform{training, scale}`, `Transform{held_out, scale}`.
///
/// A member of float or double, or an std::optional of one, has one mean and deviation; so have all elements of an
/// std::vector together. An std::array<float, N> has N, one for each element, and so have the steps of an
/// std::vector<std::array<float, N>>. A channel whose numbers are all equal gets the deviation 1. Save `to_text()` with
/// the parameters, as metadata: a program that predicts needs the same numbers.
/// @cost the constructor reads all samples once
/// @determinism bitwise: statistics are computed in the order of the samples, by Welford's algorithm in double
template <class Sample, class... Members>
class StandardScaler {
  static_assert(sizeof...(Members) > 0 && ((detail::channels_of<Members> > 0) && ...),
                "Lockstep: StandardScaler takes members of the sample that are float or double, or an std::optional, "
                "std::array or std::vector of them, or an std::vector of such arrays");

  /// Returns 0, the channel of a member that has no other. nvcc requires it before the default arguments.
  template <class Member>
  [[nodiscard]] static constexpr Index only_channel() noexcept {
    static_assert(
        detail::channels_of<Member> <= 1,
        "Lockstep: this member of the sample has several channels, each with a mean and a deviation: name the "
        "channel, such as scale.deviation(&Sample::member, 0)");
    return 0;
  }

 public:
  /// Computes means and deviations of a dataset. Pass the training part only.
  /// @throws DataError for a dataset without samples, and for a sample that cannot be made or has an infinity or a
  /// NaN, by its name
  template <Dataset Source>
  requires std::same_as<SampleOf<Source>, Sample>
  explicit StandardScaler(Source const& training, Members Sample::*... members) : members_(members...) {
    std::array<double, channels> counts{};
    for (auto& scale : scales_) scale.deviation = 0;  // sums of squares until all samples have been read
    Index const size = static_cast<Index>(training.size());
    if (size == 0) throw DataError("StandardScaler: there are no samples to compute means and deviations of");
    for (Index i = 0; i < size; ++i) {
      auto const& sample = detail::read_sample("StandardScaler", training, i);
      each_member([&](auto member, std::size_t first) {
        detail::each_number(sample.*member, [&](auto const& number, std::size_t channel) {
          auto const x = static_cast<double>(number);
          if (!std::isfinite(x))
            throw DataError(detail::name_of(training, i) +
                            " holds an infinity or a NaN, of which StandardScaler cannot compute a mean; correct the "
                            "data, or leave such samples out by data::Subset");
          auto& [mean, squares] = scales_[first + channel];
          double const off = x - mean;
          mean += off / ++counts[first + channel];
          squares += off * (x - mean);
        });
      });
    }
    for (std::size_t c = 0; c < channels; ++c) {
      double const deviation = counts[c] > 0 ? std::sqrt(scales_[c].deviation / counts[c]) : 0;
      scales_[c].deviation = deviation > 0 ? deviation : 1;
    }
  }
  /// Restores the means and deviations that `to_text` wrote, for the same members in the same order.
  /// @throws DataError if the text is not of as many channels
  explicit StandardScaler(std::string_view text, Members Sample::*... members) : members_(members...) {
    detail::read_scales(text, scales_);
  }

  /// Returns the scaled sample. Members that are not scaled, and absent numbers, are unchanged.
  [[nodiscard]] Sample operator()(Sample sample) const {
    each_member([&](auto member, std::size_t first) {
      detail::each_number(sample.*member, [&](auto& number, std::size_t channel) {
        auto const& [mean, deviation] = scales_[first + channel];
        number =
            static_cast<std::remove_reference_t<decltype(number)>>((static_cast<double>(number) - mean) / deviation);
      });
    });
    return sample;
  }
  /// Returns the extent of a scaled sample, which is the sample's own.
  [[nodiscard]] SampleExtent<Sample> extent(SampleExtent<Sample> lengths) const noexcept { return lengths; }

  /// Returns the mean of a channel of a member, which must be named if the member has several.   @throws ConfigError
  /// for another member, or no such channel
  template <class Member>
  [[nodiscard]] double mean(Member Sample::*member, Index channel = only_channel<Member>()) const {
    return scale_of(member, channel).mean;
  }
  /// Returns the standard deviation of a channel of a member, of the population: the sum of squares divided by the
  /// count.   @throws ConfigError for another member, or no such channel
  template <class Member>
  [[nodiscard]] double deviation(Member Sample::*member, Index channel = only_channel<Member>()) const {
    return scale_of(member, channel).deviation;
  }
  /// Returns a scaled number, such as a prediction, in the member's own unit.
  /// @throws ConfigError for another member, or no such channel
  template <class Member>
  [[nodiscard]] double unscaled(double number, Member Sample::*member, Index channel = only_channel<Member>()) const {
    auto const scale = scale_of(member, channel);
    return scale.mean + scale.deviation * number;
  }

  /// Returns the means and deviations as text, with all digits, for metadata of a file.
  [[nodiscard]] std::string to_text() const { return detail::text_of(scales_); }

 private:
  static constexpr std::size_t channels = (std::size_t{0} + ... + detail::channels_of<Members>);

  /// Calls f(member, number of its first channel) for each member.
  template <class Function>
  void each_member(Function const& f) const {
    std::size_t first = 0;
    std::apply([&](auto... member) { ((f(member, first), first += detail::channels_of<Members>), ...); }, members_);
  }
  template <class Member>
  [[nodiscard]] detail::ChannelScale scale_of(Member Sample::*wanted, Index channel) const {
    detail::ChannelScale const* found = nullptr;
    if (channel >= 0 && channel < Index{detail::channels_of<Member>})
      each_member([&](auto member, std::size_t first) {
        if constexpr (std::same_as<decltype(member), Member Sample::*>)
          if (member == wanted) found = &scales_[first + static_cast<std::size_t>(channel)];
      });
    if (!found)
      throw ConfigError("StandardScaler: channel " + std::to_string(channel) +
                        " of this member is not scaled; name a member that the constructor got, and a channel of it, "
                        "from 0");
    return *found;
  }

  std::tuple<Members Sample::*...> members_;
  std::array<detail::ChannelScale, channels> scales_{};
};
/// Takes the sample type and its members from the pointers to members.
template <Dataset Source, class Sample, class... Members>
StandardScaler(Source const& training, Members Sample::*... members) -> StandardScaler<Sample, Members...>;
/// Takes the sample type and its members from the pointers to members.
template <class Sample, class... Members>
StandardScaler(std::string_view text, Members Sample::*... members) -> StandardScaler<Sample, Members...>;

}}}  // namespace lockstep::data

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/combine/standard_scaler.ipp>
#endif
