// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "accesses.hpp"
#include "arithmetic.hpp"
#include "counts.hpp"

namespace ptx {

struct Extent {
  std::uint32_t x = 1, y = 1, z = 1;
};

/// State that the threads of a block share.
struct Block {
  Function const* kernel = nullptr;
  Extent blocks, threads, at;
  std::uint32_t launch = 0, number = 0;  // number of the block, from 0
  std::vector<std::byte> parameters;
  std::size_t dynamic_shared_bytes = 0;
  std::vector<Module const*> modules;
  /// By address divided by four: words of shared memory that an asynchronous copy may write at any time.
  std::unordered_map<std::uint64_t, Instruction const*> in_flight;
  Region shared{SharedArena::instance().memory, SharedArena::most};

  [[nodiscard]] std::string place(std::uint32_t file, std::uint32_t line) const {
    auto const& files = kernel->module->files;
    auto name = file > 0 && file < files.size() ? files[file] : std::string("line ");
    if (auto const slash = name.rfind('/'); slash != name.npos) name = name.substr(slash + 1) + ":";
    return name + std::to_string(line);
  }
  [[nodiscard]] std::string place(Instruction const& of) const { return place(of.file, of.line); }
  void find(std::string const& what) const { Findings::instance().add(kernel->name + ": " + what); }
};

class Thread {
 public:
  enum class State : std::uint8_t { ready, at_barrier, at_warp, done };

  [[nodiscard]] State state() const noexcept { return state_; }
  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }
  [[nodiscard]] Instruction const& instruction() const {
    auto const& frame = frames_.back();
    return frame.function->code[frame.next];
  }

  void start(Block& block, std::uint32_t number) {
    block_ = &block;
    number_ = number;
    block_meetings_ = warp_meetings_ = 0;
    steps_ = 0;
    times_.clear();
    copies_.clear();
    groups_ = 0;
    frames_.clear();
    enter(*block.kernel, stack_.get());
    auto* formal = frames_.back().formals;
    for (auto const& parameter : block.kernel->parameters) *formal++ = block.parameters.data() + parameter.at;
    state_ = State::ready;
  }
  /// Resumes after a barrier.
  void go_on(bool with_block, bool with_warp) {
    block_meetings_ += with_block;
    warp_meetings_ += with_warp;
    ++frames_.back().next;
    state_ = State::ready;
  }

  [[nodiscard]] std::uint64_t value(Operand const& operand) const {
    auto const& frame = frames_.back();
    switch (operand.kind) {
      case Operand::Kind::reg:
        return frame.registers[operand.index] + operand.value;
      case Operand::Kind::value:
        return operand.value;
      case Operand::Kind::local:
        return reinterpret_cast<std::uint64_t>(frame.locals) + operand.value;
      case Operand::Kind::formal:
        return reinterpret_cast<std::uint64_t>(frame.formals[operand.index]) + operand.value;
      case Operand::Kind::special:
        return special(static_cast<Special>(operand.index));
      case Operand::Kind::none:
        break;
    }
    return 0;
  }
  void set(Operand const& operand, std::uint64_t value) {
    if (operand.kind == Operand::Kind::reg) frames_.back().registers[operand.index] = value;
  }

  /// The address of a matrix's row, 16 bytes of shared memory, for the warp to read or write.
  std::uint64_t matrix_row(Instruction const& how, bool writes) {
    auto const at = value(how.from_operands[0]);
    check_aligned(how, at, 16);
    check_shared(how, at, 16);
    count(how, at, 16, writes);
    return at;
  }
  /// A part of a row that this lane reads or writes, with another lane's address.
  std::uint64_t read_part(Instruction const& how, std::uint64_t at, std::size_t bytes) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, touch(how, at, bytes, false), bytes);
    return bits;
  }
  void write_part(Instruction const& how, std::uint64_t at, std::size_t bytes, std::uint64_t bits) {
    std::memcpy(touch(how, at, bytes, true), &bits, bytes);
  }

  /// Runs until it must wait or returns.
  void run() {
    for (;;) {
      auto& frame = frames_.back();
      auto const& how = frame.function->code[frame.next];
      if (++steps_ > max_steps) fail_at(how, "the thread does not end");
      if (how.guard >= 0 && ((frame.registers[how.guard] & 1) != 0) == how.guard_not) {
        ++frame.next;
        continue;
      }
      auto const from = [&](int i) { return value(how.from_operands[i]); };
      switch (how.op) {
        case Op::bra:
          frame.next = static_cast<std::size_t>(how.target);
          continue;
        case Op::call:
          call(how);
          continue;
        case Op::ret:
          if (frames_.size() > 1) {
            frames_.pop_back();
            continue;
          }
          [[fallthrough]];
        case Op::exit:
          state_ = State::done;
          return;
        case Op::trap:
          fail_at(how, "it traps: nvcc found undefined behaviour here");
        case Op::bar:
        case Op::bar_red:
          state_ = State::at_barrier;
          return;
        case Op::bar_warp:
        case Op::ldmatrix:
        case Op::mma:
        case Op::movmatrix:
        case Op::redux:
        case Op::shfl:
        case Op::stmatrix:
        case Op::vote:
          state_ = State::at_warp;
          return;
        case Op::membar:
        case Op::nanosleep:
          break;
        case Op::ld:
          load(how);
          break;
        case Op::st:
          store(how);
          break;
        case Op::atom:
          atom(how);
          break;
        case Op::cp_async:
          copy(how);
          break;
        case Op::cp_async_commit:
          ++groups_;
          break;
        case Op::cp_async_wait:
          complete(from(0));
          break;
        case Op::cp_async_wait_all:
          ++groups_;
          complete(0);
          break;
        case Op::mov:
          move(how);
          break;
        case Op::cvta:
          set(how.to[0], from(0));
          break;
        case Op::cvt:
          set(how.to[0], convert(how, from(0), from(1)));
          break;
        case Op::lop3:
          set(how.to[0], by_table(from(0), from(1), from(2), from(3)));
          break;
        case Op::setp: {
          auto const a = flushed(how, from(0)), b = flushed(how, from(1));
          set(how.to[0], with_type(how.type, [&](auto kind) {
                return compare(how.mode, as<decltype(kind)>(a), as<decltype(kind)>(b));
              }));
          break;
        }
        case Op::selp:
          set(how.to[0], (from(2) & 1) != 0 ? from(0) : from(1));
          break;
        case Op::bfi:
          set(how.to[0], insert(static_cast<unsigned>(size_of(how.type) * 8), from(0), from(1), from(2), from(3)));
          break;
        default:
          set(how.to[0], compute(how, from(0), from(1), from(2), carry_));
      }
      ++frame.next;
    }
  }

 private:
  static constexpr std::size_t stack_bytes = std::size_t{256} << 10;
  static constexpr std::uint64_t max_steps = std::uint64_t{1} << 32;

  struct Frame {
    Function const* function;
    std::size_t next;  // instruction
    std::uint64_t* registers;
    std::byte** formals;
    std::byte *locals, *end;
  };

  void enter(Function const& function, std::byte* at) {
    if (!function.has_body) fail(block_->kernel->name + " calls " + function.name + ", which has no body");
    auto const formals = function.results.size() + function.parameters.size();
    Frame frame{&function, 0, reinterpret_cast<std::uint64_t*>(at), nullptr, nullptr, nullptr};
    frame.formals = reinterpret_cast<std::byte**>(at + function.registers * 8);
    frame.locals = at + (function.registers + formals + 1) / 2 * 16;
    frame.end = frame.locals + function.local_bytes;
    if (frame.end > stack_.get() + stack_bytes) fail(block_->kernel->name + ": a thread's stack is full");
    std::memset(at, 0xa5, static_cast<std::size_t>(frame.end - at));
    frames_.push_back(frame);
  }
  void call(Instruction const& how) {
    auto const& caller = frames_.back();
    auto const& called = caller.function->calls[static_cast<std::size_t>(how.call)];
    if (called.callee == "__assertfail") fail_at(how, "an assertion fails");
    if (!called.function) fail_at(how, called.callee + " is called, which is not known");
    std::vector<std::byte*> formals;
    for (auto const* const list : {&called.results, &called.arguments})
      for (auto const& operand : *list) formals.push_back(reinterpret_cast<std::byte*>(value(operand)));
    auto* const end = caller.end;
    ++frames_.back().next;
    enter(*called.function, end);
    std::copy(formals.begin(), formals.end(), frames_.back().formals);
  }

  void move(Instruction const& how) {
    if (how.width == 1) return set(how.to[0], value(how.from_operands[0]));
    auto const bits = size_of(how.type) * 8 / how.width;
    auto const mask = ~std::uint64_t{0} >> (64 - bits);
    if (how.takes_apart) {
      auto const whole = value(how.from_operands[0]);
      for (unsigned i = 0; i < how.width; ++i) set(how.to[i], whole >> (i * bits) & mask);
    } else {
      std::uint64_t whole = 0;
      for (unsigned i = 0; i < how.width; ++i) whole |= (value(how.from_operands[i]) & mask) << (i * bits);
      set(how.to[0], whole);
    }
  }

  // -------------------------------------------------------------------------------------------------------- memory

  /// Extends to the width of a register, with the sign.
  static std::uint64_t read(std::byte const* from, Type type) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, from, size_of(type));
    if (is_real(type)) return bits;
    return with_integer(type, [&](auto kind) -> std::uint64_t {
      using T = decltype(kind);
      if constexpr (std::is_signed_v<T>)
        return static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<T>(bits)));
      else
        return bits;
    });
  }
  void load(Instruction const& how) {
    auto const bytes = size_of(how.type);
    auto const at = value(how.from_operands[0]);
    bool const names_parameter = how.space == Space::param && how.from_operands[0].kind != Operand::Kind::reg;
    auto const* const memory = names_parameter ? reinterpret_cast<std::byte const*>(at)
                                               : access(how, at, bytes * how.width, false, how.strong);
    for (std::size_t i = 0; i < how.width; ++i) set(how.to[i], read(memory + i * bytes, how.type));
  }
  void store(Instruction const& how) {
    auto const bytes = size_of(how.type);
    auto const at = value(how.from_operands[0]);
    auto* const memory = how.space == Space::param ? reinterpret_cast<std::byte*>(at)
                                                   : access(how, at, bytes * how.width, true, how.strong);
    for (std::size_t i = 0; i < how.width; ++i) {
      auto const bits = value(how.from_operands[i + 1]);
      std::memcpy(memory + i * bytes, &bits, bytes);
    }
  }
  void atom(Instruction const& how) {
    auto const bytes = size_of(how.type);
    auto* const memory = access(how, value(how.from_operands[0]), bytes, true, true);
    auto const before = read(memory, how.type);
    auto const after = exchanged(how, before, value(how.from_operands[1]), value(how.from_operands[2]));
    std::memcpy(memory, &after, bytes);
    set(how.to[0], before);
  }

  /// Returns the memory of an allowed access.
  std::byte* access(Instruction const& how, std::uint64_t at, std::size_t bytes, bool writes, bool strong) {
    check_aligned(how, at, bytes);
    if (within(at, bytes, stack_.get(), stack_bytes) ||
        (!writes && within(at, bytes, block_->parameters.data(), block_->parameters.size())))
      return reinterpret_cast<std::byte*>(at);
    count(how, at, bytes, writes);
    return touch(how, at, bytes, writes, strong);
  }
  static bool within(std::uint64_t at, std::size_t bytes, std::byte const* begin, std::size_t size) noexcept {
    auto const* const memory = reinterpret_cast<std::byte const*>(at);
    return memory >= begin && memory + bytes <= begin + size;
  }
  static bool is_shared(std::uint64_t at, std::size_t bytes) noexcept {
    auto const& arena = SharedArena::instance();
    return within(at, bytes, arena.memory, arena.most);
  }
  void check_aligned(Instruction const& how, std::uint64_t at, std::size_t bytes) const {
    if (at % bytes != 0) fail_at(how, "an address of " + std::to_string(bytes) + " bytes is not aligned");
  }
  /// Checks that all bytes belong to one variable.
  void check_shared(Instruction const& how, std::uint64_t at, std::size_t bytes) const {
    if (!is_shared(at, bytes)) fail_at(how, "an address of shared memory was expected");
    auto const offset = at - reinterpret_cast<std::uint64_t>(SharedArena::instance().memory);
    auto const& shared = block_->kernel->shared;
    if (std::none_of(shared.begin(), shared.end(), [&](SharedVariable const& each) {
          return offset >= each.at &&
                 offset + bytes <= each.at + (each.dynamic ? block_->dynamic_shared_bytes : each.bytes);
        }))
      fail_at(how, "a shared variable has an end before");
  }
  void count(Instruction const& how, std::uint64_t at, std::size_t bytes, bool writes) {
    if (auto& counts = Counts::instance(); counts.wanted())
      counts.note(number_, how, times_[&how]++, at, bytes, writes, is_shared(at, bytes));
  }
  [[nodiscard]] Accessor accessor(Instruction const& how, bool strong = false) const noexcept {
    return {block_->launch, block_->number + 1, number_, block_meetings_, warp_meetings_, {how.line, how.file, strong}};
  }
  std::byte* touch(Instruction const& how, std::uint64_t at, std::size_t bytes, bool writes, bool strong = false) {
    auto* const memory = reinterpret_cast<std::byte*>(at);
    auto const by = accessor(how, strong);
    auto const race = [&](Accessor const& earlier, bool wrote) {
      block_->find(std::string("a thread ") + (writes ? "writes" : "reads") + " at " + block_->place(how) +
                   " what another one " + (wrote ? "writes" : "reads") + " at " +
                   block_->place(earlier.at.file, earlier.at.line) +
                   (earlier.block == by.block ? ", and nothing says who comes first" : " in another block"));
    };
    if (is_shared(at, bytes)) {
      check_shared(how, at, bytes);
      if (auto const* const copy = in_flight(at, bytes)) {
        block_->find(std::string("shared memory is ") + (writes ? "written" : "read") + " at " + block_->place(how) +
                     " before the asynchronous copy to it at " + block_->place(*copy) + " is waited for");
        return memory;
      }
      if (!writes && bytes > 1 && !block_->shared.was_written(at, by))
        block_->find("shared memory is read at " + block_->place(how) + " before it is written");
      block_->shared.note(at, bytes, writes, by, true, race);
      return memory;
    }
    if (auto* const region = Regions::instance().find(at, bytes)) {
      region->note(at, bytes, writes, by, false, race);
      return memory;
    }
    for (auto const* const module : block_->modules)
      for (auto const& global : module->globals)
        if (within(at, bytes, global.begin, global.bytes)) return memory;
    fail_at(how,
            "there is no device memory where " + std::to_string(bytes) + " bytes are " + (writes ? "written" : "read"));
  }

  // ---------------------------------------------------------------------------------------------- asynchronous copies

  /// Returns the pending copy to any of these bytes, or null.
  [[nodiscard]] Instruction const* in_flight(std::uint64_t at, std::size_t bytes) const {
    if (block_->in_flight.empty()) return nullptr;
    for (auto word = at / 4; word <= (at + bytes - 1) / 4; ++word)
      if (auto const found = block_->in_flight.find(word); found != block_->in_flight.end()) return found->second;
    return nullptr;
  }
  /// Reads at once, and writes at the wait. Hardware may write at any time in between, so no thread may access the
  /// bytes meanwhile.
  void copy(Instruction const& how) {
    std::size_t const bytes = how.width, read = value(how.from_operands[2]) & 0xffffffffu;
    auto const to = value(how.from_operands[0]), from = value(how.from_operands[1]);
    if (read > bytes) fail_at(how, "an asynchronous copy reads more bytes than it writes");
    check_aligned(how, to, bytes);
    check_aligned(how, from, bytes);
    check_shared(how, to, bytes);
    Copy copy{to, {}, bytes, groups_, &how};
    auto const time = times_[&how];
    if (read > 0) {
      if (is_shared(from, read)) fail_at(how, "an asynchronous copy reads global memory, and not shared memory");
      count(how, from, bytes, false);
      std::memcpy(copy.values, touch(how, from, read, false), read);
    }
    times_[&how] = time;  // the same access of the warp
    count(how, to, bytes, true);
    touch(how, to, bytes, true);
    times_[&how] = time + 1;
    for (auto word = to / 4; word < (to + bytes) / 4; ++word) block_->in_flight.insert_or_assign(word, &how);
    copies_.push_back(copy);
  }
  /// All copies, except copies of the last `pending` groups and uncommitted ones.
  void complete(std::uint64_t pending) {
    auto const remains = [=, this](Copy const& copy) { return copy.group + pending >= groups_; };
    for (auto const& copy : copies_) {
      if (remains(copy)) continue;
      for (auto word = copy.to / 4; word < (copy.to + copy.bytes) / 4; ++word) block_->in_flight.erase(word);
      std::memcpy(reinterpret_cast<std::byte*>(copy.to), copy.values, copy.bytes);
      block_->shared.note(copy.to, copy.bytes, true, accessor(*copy.how), true, [](Accessor const&, bool) {});
    }
    std::erase_if(copies_, [&](Copy const& copy) { return !remains(copy); });
  }

  [[noreturn]] void fail_at(Instruction const& how, std::string const& why) const {
    fail(block_->kernel->name + ", " + block_->place(how) + ", block " + std::to_string(block_->number) + ", thread " +
         std::to_string(number_) + ": " + why);
  }

  [[nodiscard]] std::uint64_t special(Special which) const {
    auto const lane = number_ % 32;
    auto const& size = block_->threads;
    switch (which) {
      case Special::tid_x:
        return number_ % size.x;
      case Special::tid_y:
        return number_ / size.x % size.y;
      case Special::tid_z:
        return number_ / size.x / size.y;
      case Special::ntid_x:
        return size.x;
      case Special::ntid_y:
        return size.y;
      case Special::ntid_z:
        return size.z;
      case Special::ctaid_x:
        return block_->at.x;
      case Special::ctaid_y:
        return block_->at.y;
      case Special::ctaid_z:
        return block_->at.z;
      case Special::nctaid_x:
        return block_->blocks.x;
      case Special::nctaid_y:
        return block_->blocks.y;
      case Special::nctaid_z:
        return block_->blocks.z;
      case Special::laneid:
        return lane;
      case Special::warpid:
        return number_ / 32;
      case Special::lanemask_eq:
        return 1u << lane;
      case Special::lanemask_lt:
        return (1u << lane) - 1;
      case Special::lanemask_le:
        return (2u << lane) - 1;
      case Special::lanemask_gt:
        return ~((2u << lane) - 1);
      case Special::lanemask_ge:
        return ~((1u << lane) - 1);
    }
    return 0;
  }

  Block* block_ = nullptr;
  std::unique_ptr<std::byte[]> stack_{new std::byte[stack_bytes]};
  std::vector<Frame> frames_;
  State state_ = State::done;
  bool carry_ = false;
  std::uint32_t number_ = 0, block_meetings_ = 0, warp_meetings_ = 0;
  std::uint64_t steps_ = 0;
  struct Copy {
    std::uint64_t to;
    std::byte values[16];
    std::size_t bytes;
    std::uint64_t group;
    Instruction const* how;
  };
  std::vector<Copy> copies_;                           // in flight
  std::uint64_t groups_ = 0;                           // committed groups of copies
  std::map<Instruction const*, std::uint32_t> times_;  // executions of accesses, if these are counted
};

}  // namespace ptx
