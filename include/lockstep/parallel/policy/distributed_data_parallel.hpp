// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/comm/communicator.hpp>
#include <lockstep/comm/engine/self_communicator.hpp>
#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/timeline.hpp>
#include <lockstep/kernel/embedding/touched_rows.hpp>
#include <lockstep/parallel/agreement.hpp>
#include <lockstep/parallel/buffer_policy.hpp>
#include <lockstep/parallel/check/check_replicas.hpp>
#include <lockstep/parallel/detail/byte_collectives.hpp>
#include <lockstep/parallel/detail/gradient_wire.hpp>
#include <lockstep/parallel/detail/replica_groups.hpp>
#include <lockstep/parallel/detail/space_of.hpp>
#include <lockstep/parallel/distributed_options.hpp>
#include <lockstep/parallel/gradients/collective_cost.hpp>
#include <lockstep/parallel/gradients/gradient_buckets.hpp>
#include <lockstep/parallel/gradients/row_exchange.hpp>
#include <lockstep/parallel/policy.hpp>
#include <lockstep/parallel/policy/detail/common_agreement.hpp>
#include <lockstep/parallel/policy/detail/device_reduction.hpp>
#include <lockstep/parallel/policy/detail/host_staged_reduction.hpp>
#include <lockstep/parallel/policy/detail/optimizer_shards.hpp>
#include <lockstep/parallel/policy/detail/table_rows.hpp>
#include <lockstep/parallel/replica/optimizer_state.hpp>
#include <lockstep/parallel/replica/replica.hpp>
#include <lockstep/parallel/session_base.hpp>
#include <lockstep/parallel/wire_format.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel {
namespace detail {

/// Replaces a first member of DistributedDataParallel that is no communicator, so that its message is the only error.
struct NoCommunicator : comm::SelfCommunicator {
  NoCommunicator() = default;
  template <class Argument>
  requires(!std::is_base_of_v<NoCommunicator, Argument>) NoCommunicator(Argument const&) {}
  [[nodiscard]] NoCommunicator split(int, int) const { return {}; }
};
template <class Candidate>
using CommunicatorOrNone = std::conditional_t<comm::Communicator<Candidate>, Candidate, NoCommunicator>;

}  // namespace detail

/// Trains with one device per rank. Every rank computes its own batch. Buckets of gradients are summed over ranks while
/// backward still runs, and every rank makes the same update. The policy owns the communicator.
/// @collective the Session constructor, micro_step with `last`, update, all_reduce and synchronize_buffers, on all
/// ranks in equal order
/// @determinism bitwise, and in float32 equal to DataParallel with the same number of devices
template <class Communicator>
struct DistributedDataParallel {
  static_assert(comm::Communicator<Communicator> && !std::is_same_v<Communicator, detail::NoCommunicator>,
                "Lockstep: DistributedDataParallel needs a communicator as its first member, DistributedDataParallel{"
                "comm::connect(world)}, in the function that launch::run calls; see docs/reference/parallel.md");
  Communicator communicator;     ///< owned; connects the ranks
  std::size_t bucket_bytes = 0;  ///< bucket size; 0 measures the best. The first takes a quarter, to start early
  int threads = 0;               ///< threads of this rank; 0 shares the cores with the other ranks of this host
  BufferPolicy buffers = BufferPolicy::first;  ///< values of buffers in evaluations
  /// Shards the optimizer state: each of n ranks keeps the moments of an equal part of the parameters and updates only
  /// these. The updated parameters are then all-gathered. Optimizer memory shrinks to 1 / n per rank, with
  /// bit-identical results. Over NCCL, more than two ranks may add gradients in another order than without it.
  bool shard_optimizer = false;
  /// Element type in which gradients are sent. Losses, values and buffers are sent unchanged. A single rank rounds,
  /// too.
  WireFormat gradient_wire = WireFormat::float32;

  [[nodiscard]] int shards() const noexcept { return 1; }                         ///< a rank has one device
  [[nodiscard]] int first_shard() const noexcept { return communicator.rank(); }  ///< that of this rank's device
  [[nodiscard]] int all_shards() const noexcept { return communicator.size(); }   ///< one per rank
  /// `threads`, or a share of the host's cores
  [[nodiscard]] int threads_each() const { return threads_per_rank(threads, communicator.size()); }
  [[nodiscard]] Place place(int) const { return {.threads = threads_each()}; }  ///< this rank's CPU threads
  [[nodiscard]] static constexpr char const* name() noexcept { return "ddp"; }  ///< as --parallel and run.json have it
  /// the communicator's name, as in run.json
  [[nodiscard]] char const* engine() const noexcept { return communicator.name(); }

  /// Session of this rank: replica, optimizer state and gradient buckets. Each step is a collective operation of all
  /// ranks.
  template <class Model, class Optimizer, class Space = HostSpace>
  class Session : public SessionBase<Session<Model, Optimizer, Space>, Replica<Model, Space>, Optimizer> {
    using Base = SessionBase<Session, Replica<Model, Space>, Optimizer>;
    /// Gradients are summed in place, unless a device's replica uses a communicator of the host: then copies are
    /// summed.
    static constexpr bool in_place = std::is_same_v<typename detail::SpaceOf<Communicator>::type, Space>;
    static constexpr bool on_device = in_place && !Space::host_accessible, copies = !in_place;
    using Wire = std::conditional_t<in_place, detail::GradientWire<Space>, detail::InPlace>;
    static_assert(in_place || !Space::host_accessible,
                  "Lockstep: this communicator sums on GPUs: put parallel::OnCuda around the policy");

   public:
    using DeviceReplica = Replica<Model, Space>;                          ///< type of this rank's replica
    using Shards = detail::OptimizerShards<Communicator, DeviceReplica>;  ///< parts of the optimizer state by rank
    using Exchange = typename Shards::Exchange;                           ///< all-gather of updated parameters
    /// Replaces TableRows if rows need no staging.
    struct Nothing {};
    /// Touched rows of tables on a device.
    using TableRows =
        std::conditional_t<copies, detail::HostStagedRows<Space>,
                           std::conditional_t<Space::host_accessible, Nothing, detail::DeviceRows<Space>>>;
    static constexpr bool spans_ranks = true;  ///< settings are compared between ranks

    /// Creates the replica with rank 0's values. `policy` is a DistributedDataParallel, or a policy derived from it.
    /// @shape values [layout.size()], the whole arena; may be empty on other ranks than 0
    /// @throws CollectiveMismatch if a rank has other parameters, activations, buckets, backend, build or instructions,
    /// with the rank and both values; ConfigError for a wire format that does not fit, or for shard_optimizer with an
    /// optimizer that needs whole parameters
    template <class Policy>
    [[gnu::cold]] Session(Policy& policy, Model const& model, nn::ParameterLayout const& layout,
                          std::span<float const> values)
        : communicator_(agreed(policy, layout)),
          layout_(layout),
          buffer_policy_(policy.buffers),
          summed_(communicator_.allocate(static_cast<std::size_t>(layout.size()) * sizeof(float))),
          summed_in_(reinterpret_cast<float*>(summed_.data()), static_cast<std::size_t>(layout.size())),
          replica_(model, layout, policy.place(0), own_gradients(), own_values(policy.shard_optimizer)),
          wire_(wire(policy.gradient_wire)),
          sizes_(sizes(policy.bucket_bytes)),
          bucket_(static_cast<Index>(sizes_.bucket_bytes / size_of(wire_.type()))),
          shard_ranks_(policy.shard_optimizer ? communicator_.size() : 1),
          exchange_(exchange()),
          table_rows_(table_rows()),
          shards_(communicator_, replica_, exchange_, tables(), shard_ranks_, bucket_),
          state_(layout, shards_.parts()),
          buckets_(wire_, shard_ranks_ > 1 ? layout.size() : layout.learned_size(), bucket_, tables(),
                   communicator_.rank(), shard_ranks_, Shards::block(layout.size())),
          rows_(replica_.touched(), communicator_.size()),
          group_(detail::RankTransport(communicator_), replica_.device()) {
      replica_.set_group(group_);
      if constexpr (on_device) {
        if (communicator_.gpu() != replica_.device().gpu())
          throw ConfigError("DistributedDataParallel: the communicator is on GPU " +
                            std::to_string(communicator_.gpu()) + ", and OnCuda puts the replica on GPU " +
                            std::to_string(replica_.device().gpu()) + "; give both the same GPU, or give OnCuda none");
        queued_.emplace(communicator_, replica_, buckets_, table_rows_, wire_);
        if (!values.empty()) replica_.set_values(values);
        detail::broadcast_bytes(communicator_, replica_.value_data(),
                                static_cast<std::size_t>(layout.size()) * sizeof(float));
      } else {
        if constexpr (copies) queued_.emplace(communicator_, replica_, buckets_, table_rows_, exchange_);
        std::vector<float> start(values.begin(), values.end());
        start.resize(static_cast<std::size_t>(layout.size()));
        detail::broadcast_bytes(communicator_, start.data(), start.size() * sizeof(float));
        replica_.set_values(start);
      }
    }

    /// Aborts sums that are incomplete after an exception, since freeing their memory would wait for them.
    ~Session() override {
      if constexpr (on_device) communicator_.abandon();
    }

    /// Runs forward and backward of one batch per shard. With step.last, buckets are sent while backward runs.
    /// @collective with step.last
    template <class Batch>
    void micro_step(std::span<Batch const> batches, MicroStep const& step) {
      buckets_.piggybacked_scalars()[2] = step.stop ? 1 : 0;
      if constexpr (on_device)
        if (step.last) return queued_->run(batches[0], step);
      if (!copies && step.last) buckets_.begin_step();
      group_.begin_pass();
      if constexpr (copies)
        if (step.last) return queued_->run(batches, step);
      if (!step.last || !Space::host_accessible) return static_cast<void>(replica_.run_shards(batches, step));
      replica_.run_shards(batches, step, {[](void* self) { static_cast<Session*>(self)->loss_ready(); }, this},
                          {[](void* self, Index offset, Index count) {
                             auto& session = *static_cast<Session*>(self);
                             if (session.group_.has_exchanged()) return;  // else the order differs if ranks skip layers
                             session.buckets_.ready(session.communicator_, offset, count, session.wire_);
                           },
                           this});
    }

    /// Waits for the sums and updates the parameters.
    /// @returns the step's loss over all ranks   @collective
    nn::Loss<HostSpace> update(Optimizer const& optimizer, UpdateSettings const& settings) {
      nn::Loss<HostSpace> loss;
      if constexpr (on_device) loss = sum_on_device();
      if constexpr (copies) loss = sum_copies();
      if constexpr (in_place && !on_device) loss = sum_over_host();
      auto& device = replica_.device();
      auto const reduced = device.now();
      bool const sharded = step(optimizer, loss, settings);
      device.add_phase(&PhaseSeconds::optimizer, reduced, device.now());
      if (sharded) all_gather_parameters();
      if (timeline_) write_buckets();
      return loss;
    }

    [[nodiscard]] bool stop_requested() noexcept override { return buckets_.piggybacked_scalars()[2] > 0; }
    /// Also records the waits for sums and the times of each bucket in `waits`.
    void trace(std::span<Timeline* const> devices, Timeline* waits) override {
      Base::trace(devices, waits);
      timeline_ = waits;
    }

    /// Calls f(shard, replica) for each shard of this rank.
    template <class Function>
    void for_each_shard(Function&& f) {
      replica_.for_shards(0, f);
    }
    void all_reduce(std::span<double> numbers) override {
      comm::CollectiveOperation operation{
          ElementType::float64, numbers.data(), static_cast<Index>(numbers.size()), comm::Reduction::sum, {}};
      communicator_.start(operation);
      communicator_.finish();
    }

    void broadcast(std::string& text, int root) override {
      auto size = communicator_.rank() == root ? static_cast<double>(text.size()) : 0;
      all_reduce(std::span(&size, 1));
      if (constexpr double most = 1e12; !(size >= 0 && size <= most))
        throw CommunicationError("the ranks have announced a text of " + std::to_string(size) + " bytes");
      text.resize(static_cast<std::size_t>(size));
      detail::broadcast_bytes(communicator_, text.data(), text.size(), root);
    }

    void check_agreement(Agreement const& agreement) override { agreement.check(communicator_); }

    /// Compares the bits of all ranks' parameters and optimizer moments. Does not compare sharded moments.
    /// @collective   @throws CollectiveMismatch as parallel::check_replicas
    void check_replicas(Index step) override {
      ReplicaArenas arenas{replica_.values().data()};
      for (std::size_t i = 0; i < Optimizer::states && !shards_.is_sharded(); ++i) arenas.push_back(moment(i).data());
      parallel::check_replicas(communicator_, layout_, arenas, step);
    }

    /// Makes the buffers of all ranks equal, according to the policy.   @collective
    [[gnu::cold]] void synchronize_buffers() override {
      auto values = replica_.buffers();
      if (values.empty() || buffer_policy_ == BufferPolicy::own) return;
      if (buffer_policy_ == BufferPolicy::mean) values = replica_.mean_buffers();
      comm::CollectiveOperation operation{
          ElementType::float32, values.data(), std::ssize(values), comm::Reduction::average, {}};
      if (buffer_policy_ == BufferPolicy::first) operation.collective = comm::Collective::broadcast;
      communicator_.start(operation);
      communicator_.finish();
      replica_.set_buffers(values);
    }

    [[nodiscard]] bool shards_moments() const noexcept override { return shards_.is_sharded(); }
    [[nodiscard]] std::span<float const> moment(std::size_t i) override {
      if (!shards_.is_sharded()) return Base::moment(i);
      if constexpr (copies) {
        state_.write_parts(i, replica_.device(), summed_in_.data());
        shards_.gather_on_host();
        return {summed_in_.data(), summed_in_.size()};
      } else {
        auto* const whole = replica_.gradient_data();  // unused between steps
        state_.copy_parts(i, replica_.stream(), whole);
        shards_.gather(whole);
        if constexpr (Space::host_accessible) {
          return {whole, summed_in_.size()};
        } else {
          moment_.resize(summed_in_.size());
          replica_.device().read(whole, moment_);
          return moment_;
        }
      }
    }
    /// Resumes all ranks from rank 0's state, and copies it to `state` on all ranks.   @collective
    [[gnu::cold]] void restore(SessionState& state) override {
      detail::broadcast_bytes(communicator_, state.numbers().data(), state.numbers().size_bytes());
      detail::broadcast_bytes(communicator_, state.text.data(), state.text.size());
      replica_.set_values(state.values());
      replica_.set_buffers(state.buffers());
      state_.set_moments(state, replica_.device());
    }
    /// Returns the phases. Communication inside backward counts as communication.
    [[nodiscard]] PhaseSeconds take_phases() override {
      auto phases = replica_.device().take_phases();
      auto const inside = buckets_.take_seconds_in_backward();
      phases.communication += inside + std::exchange(waited_seconds_, 0.0);
      phases.backward -= inside;
      return phases;
    }
    [[nodiscard, gnu::cold]] DeviceFacts device_facts() override {
      auto facts = Base::device_facts();
      if constexpr (requires { Communicator::version(); })
        facts.libraries.emplace_back(communicator_.name(), detail::version_text(Communicator::version()));
      return facts;
    }
    [[nodiscard, gnu::cold]] SessionReport report() override {
      std::vector<double> peak(static_cast<std::size_t>(communicator_.size()), 0.0);
      peak[static_cast<std::size_t>(communicator_.rank())] =
          static_cast<double>(replica_.bytes() + state_.bytes() + sent_bytes());
      all_reduce(peak);
      auto used = replica_.used();
      all_reduce(used);
      SessionReport report{{}, {}, replica_.unused(used)};
      add_times(report.buckets);
      for (auto bytes : peak) report.peak_bytes_per_device.push_back(static_cast<std::size_t>(bytes));
      return report;
    }

   private:
    friend Base;

    [[nodiscard]] PassKind pass_kind(MicroStep const& step) {
      if constexpr (!Space::host_accessible)
        if (step.last && replica_.shards() == 1) return queued_->pass_kind(step);
      return Base::pass_kind(step);
    }
    [[nodiscard]] DeviceReplica& first() noexcept { return replica_; }
    [[nodiscard]] DeviceReplica const& first() const noexcept { return replica_; }
    [[nodiscard]] memory::Block own_gradients() noexcept {
      if constexpr (in_place) {
        return std::move(summed_);
      } else {
        return {};
      }
    }
    /// @throws ConfigError for a format that this session cannot use
    Wire wire(WireFormat format) {
      bool const rounds = format != WireFormat::float32;
      if constexpr (!in_place) {
        if (rounds)
          throw ConfigError(std::string("DistributedDataParallel: gradient_wire ") + parallel::name(format) +
                            " with OnCuda over a host engine, which copies gradients from the GPU and sums them in "
                            "float32; leave it out, or use comm::NcclCommunicator");
        return {summed_in_.data()};
      } else {
        if (format == WireFormat::float16 && !DeviceReplica::scales_loss)
          throw ConfigError(
              "DistributedDataParallel: gradient_wire fp16 with activations that are not fp16: without a loss scale "
              "gradients leave float16's range; use bf16, or nn::InFloat16 (--precision fp16)");
        auto const type = element_type(format);
        return {type, summed_in_.data(),
                rounds ? communicator_.allocate(summed_in_.size() * size_of(type)) : memory::Block(),
                replica_.stream()};
      }
    }
    /// Returns the bytes of gradients that are sent from memory of their own.
    [[nodiscard]] std::size_t sent_bytes() const noexcept {
      if constexpr (on_device)
        return wire_.bytes() + table_rows_.bytes();
      else
        return wire_.bytes();
    }
    /// Returns memory for the values: from the communicator if other ranks read them.
    [[nodiscard]] memory::Block own_values(bool shared) {
      if (copies || !shared || communicator_.size() == 1) return {};
      return communicator_.allocate(summed_in_.size_bytes());
    }
    [[nodiscard]] TableRows table_rows() {
      if constexpr (copies)
        return TableRows(layout_, communicator_.size(), bucket_);
      else if constexpr (on_device)  // a reduce-scatter of a whole table sends no more than a sum of half its rows
        return TableRows(communicator_, layout_, wire_, replica_.gradient_data(), replica_.stream(),
                         shard_ranks_ > 1 ? layout_.size() + 1 : std::max(TableRows::min_size, sizes_.min_table));
      else
        return {};
    }
    /// Returns the tables that are summed by rows, in the arena's order.
    [[nodiscard]] std::span<kernel::TouchedRows const> tables() const noexcept {
      if constexpr (Space::host_accessible)
        return replica_.touched();
      else
        return table_rows_.tables();
    }
    [[nodiscard]] auto exchange() {
      if constexpr (copies)
        return Exchange(summed_in_);
      else
        return Exchange();
    }
    /// @returns whether each rank has updated only its part of the values
    bool step(Optimizer const& optimizer, nn::Loss<HostSpace> const& loss, UpdateSettings const& settings) {
      if (!shards_.is_sharded()) return state_.update(optimizer, replica_, summed_loss(loss), settings), false;
      typename Shards::Norm norm{};
      if (state_.measures(optimizer, replica_, settings)) norm = shards_.norm();
      return state_.update(optimizer, replica_, summed_loss(loss), settings, norm);
    }
    void all_gather_parameters() {
      auto const begin = Clock::seconds();
      shards_.gather(replica_.value_data());
      waited_since(begin);
    }
    [[nodiscard]] nn::Loss<Space> summed_loss(nn::Loss<HostSpace> const& loss) {
      if constexpr (Space::host_accessible) {
        return loss;
      } else {
        auto const& device = replica_.device();
        return on_device ? device.summed() : device.write_sum(loss);
      }
    }
    nn::Loss<HostSpace> sum_over_host() {
      replica_.stream().synchronize();
      auto const begin = Clock::seconds();
      replica_.zero_unused();
      buckets_.finish(communicator_, wire_);
      rows_.sum(communicator_, replica_.gradient_data(), wire_);
      waited_since(begin);
      return {buckets_.piggybacked_scalars()[0], buckets_.piggybacked_scalars()[1]};
    }
    nn::Loss<HostSpace> sum_copies() {
      waited_since(queued_->finish());
      return {buckets_.piggybacked_scalars()[0], buckets_.piggybacked_scalars()[1]};
    }
    void waited_since(double begin) {
      auto const end = Clock::seconds();
      waited_seconds_ += end - begin;
      if (timeline_) timeline_->add({.name = name_of(&PhaseSeconds::communication), .begin = begin, .end = end});
    }
    void add_times(std::vector<BucketTimes>& times) const {
      buckets_.add_times(times);
      if constexpr (Space::host_accessible)
        rows_.add_times(times);
      else
        table_rows_.add_times(times);
    }
    void write_buckets() {
      times_.clear();
      add_times(times_);
      for (std::size_t i = 0; i < times_.size(); ++i) {
        auto const& bucket = times_[i];
        if (bucket.start == 0) continue;  // no other rank
        Span span{.name = "sum", .begin = bucket.start, .end = bucket.end, .kind = Span::Kind::bucket};
        span.number = static_cast<Index>(i);
        span.amount = static_cast<Index>(bucket.bytes);
        timeline_->add(span);
        span.name = "bucket";
        span.begin = bucket.ready;
        timeline_->add(span);
      }
    }

    nn::Loss<HostSpace> sum_on_device() {
      queued_->start_remaining();
      auto const begin = Clock::seconds();
      queued_->finish();
      waited_since(begin);
      return replica_.device().read(replica_.device().summed());
    }

    /// Bytes of a bucket, and least elements of a table that is summed by rows over a communicator for device memory.
    struct Sizes {
      std::size_t bucket_bytes;
      Index min_table;
    };
    /// Returns `asked` and the sizes that do not depend on the communicator, or sizes by rank 0's measurement of it.
    /// Small models have one bucket, and sum tables whole.
    Sizes sizes(std::size_t asked) {
      constexpr auto least = CollectiveCost::min_bucket_bytes;
      auto const each = size_of(wire_.type()), all = summed_in_.size() * each;
      if (asked > 0) return {asked, 0};
      if (communicator_.size() == 1 || all <= least) return {4 * least, layout_.size() + 1};
      auto const cost = CollectiveCost::measure(communicator_, summed_in_, wire_.type());
      auto const min_table = std::min(cost.min_table_bytes() / each, summed_in_.size() + 1);
      Sizes chosen{cost.bucket_bytes(all), static_cast<Index>(min_table)};
      detail::broadcast_bytes(communicator_, &chosen, sizeof chosen);
      return chosen;
    }
    void loss_ready() {
      auto const loss = replica_.read_loss();
      buckets_.piggybacked_scalars()[0] = loss.sum;
      buckets_.piggybacked_scalars()[1] = loss.weight;
    }

    /// Returns the communicator after a check that all ranks use it in the same way.
    template <class Policy>
    static Communicator& agreed(Policy& policy, nn::ParameterLayout const& layout) {
      if constexpr (optim::steps_whole_parameters<Optimizer>())
        expect<ConfigError>(!policy.shard_optimizer || policy.communicator.size() == 1, [] {
          return "DistributedDataParallel: shard_optimizer divides parameters between ranks, and the optimizer " +
                 optim::name_of<Optimizer>() + " needs whole ones; leave it out, or use another optimizer";
        });
      auto agreement = detail::common_agreement<Model>(layout, Space::name, policy.bucket_bytes);
      agreement.add("policy of buffers", static_cast<Index>(policy.buffers));
      agreement.add("shards of a micro-step", Index{policy.all_shards()});
      agreement.add(describe_distributed(policy));
      if constexpr (!Space::host_accessible) {
        auto const place = policy.place(0);
        agreement.add("matrix products of floats", parallel::name(place.matmul_precision));
        agreement.add("attention kernels", parallel::name(place.attention));
      }
      agreement.check(policy.communicator);
      return policy.communicator;
    }

    Communicator& communicator_;
    nn::ParameterLayout const& layout_;
    BufferPolicy buffer_policy_;
    memory::Block summed_;  // the communicator's memory, unless the replica owns it
    std::span<float> summed_in_;
    DeviceReplica replica_;
    Wire wire_;
    Sizes sizes_;
    Index bucket_;     // elements
    int shard_ranks_;  // number of ranks that share the optimizer state
    Exchange exchange_;
    TableRows table_rows_;
    Shards shards_;
    OptimizerState<Optimizer, Space> state_;
    GradientBuckets buckets_;
    RowExchange rows_;
    detail::ReplicaGroup<detail::RankTransport<Communicator>, detail::Device<Space>, in_place> group_;
    using OnDevice = std::conditional_t<copies, std::optional<detail::HostStagedReduction<Communicator, DeviceReplica>>,
                                        std::optional<detail::DeviceReduction<Communicator, DeviceReplica>>>;
    std::conditional_t<Space::host_accessible, Nothing, OnDevice> queued_;
    std::vector<float> moment_;  // a whole one, from a device
    double waited_seconds_ = 0;
    Timeline* timeline_ = nullptr;
    std::vector<BucketTimes> times_;
  };
};
/// Takes the type of the communicator from the first argument.
template <class Candidate, class... Option>
DistributedDataParallel(Candidate, Option...) -> DistributedDataParallel<detail::CommunicatorOrNone<Candidate>>;
/// Arguments without a communicator, which DistributedDataParallel rejects.
DistributedDataParallel()->DistributedDataParallel<detail::NoCommunicator>;  // selects the static_assert above

}}}  // namespace lockstep::parallel
