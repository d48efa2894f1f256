// The library by its C++ API, for tests/reference: reads operations from standard input, a line each, and answers in
// the form of the model (tests/reference/src/model). tests/reference/src/rust_subject.rs is the same by the Rust API.
//
//   begin host|sim|cuda SEED          -> ok
//   VERB A B ...                      -> what it answered
//   settle END PATIENCE_MS N, N lines -> the index of the line that is seen, or what is seen instead
//   pair N0 N1, N0 + N1 operations    -> N0 + N1 answers: two threads, side by side
//   quit
//
// Slots are behind locks, so that two threads can use the same tables: a handle is copied under its lock and used under
// none.
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "purlin/purlin.h"
#include "tests/reference/cpp/programs.h"

namespace {

using purlin::Buffer;
using purlin::DType;
using purlin::Event;
using purlin::EventPromise;
using purlin::Shape;
using purlin::Status;

// Sixty-four bytes more than asked for, so that elements may begin at an odd address.
class HostMemory {
 public:
  explicit HostMemory(std::size_t size) : size_(size) {
    address_ = static_cast<std::uint8_t*>(std::aligned_alloc(64, (size + 127) / 64 * 64));
    if (address_ == nullptr) std::abort();
    std::memset(address_, 0xEE, size + 1);
  }
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
  ~HostMemory() { std::free(address_); }
  std::uint8_t* address() const { return address_; }
  std::size_t size() const { return size_; }

 private:
  std::uint8_t* address_;
  std::size_t size_;
};

// What on_done was called with: p not yet, r OK, e an error, t twice.
using OnDoneState = std::shared_ptr<std::atomic<char>>;

struct ShapeOf {
  DType dtype;
  std::size_t width;
  std::vector<std::int64_t> dims;
  std::size_t size() const {
    std::size_t bytes = width;
    for (const std::int64_t dim : dims) bytes *= static_cast<std::size_t>(dim);
    return bytes;
  }
  bool can_turn() const { return dims.size() == 2; }
};

const std::array<ShapeOf, 8>& Shapes() {
  static const std::array<ShapeOf, 8> shapes = {{{DType::kU8, 1, {4}},
                                                 {DType::kU8, 1, {8}},
                                                 {DType::kF32, 4, {2}},
                                                 {DType::kU8, 1, {2, 4}},
                                                 {DType::kS16, 2, {2, 2}},
                                                 {DType::kU8, 1, {0}},
                                                 {DType::kU8, 1, {70000}},
                                                 {DType::kU8, 1, {250, 280}}}};
  return shapes;
}

const ShapeOf& ShapeAt(int arg) { return Shapes()[static_cast<std::size_t>(arg < 12 ? arg % 6 : arg - 6)]; }

Shape ToShape(const ShapeOf& of) { return Shape(of.dtype, of.dims); }

std::optional<purlin::Layout> LayoutOf(const ShapeOf& of, bool turned) {
  if (!turned || !of.can_turn()) return std::nullopt;
  return purlin::Layout({0, 1});
}

std::vector<std::uint8_t> Pattern(int seed, std::size_t size) {
  std::vector<std::uint8_t> bytes(size);
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<std::uint8_t>(static_cast<std::size_t>(seed) * 31 + i * 7 + (i >> 8) * 13);
  }
  return bytes;
}

std::vector<std::uint8_t> Turned(const std::vector<std::uint8_t>& bytes, const ShapeOf& of) {
  std::vector<std::uint8_t> out(bytes.size());
  const auto rows = static_cast<std::size_t>(of.dims[0]), columns = static_cast<std::size_t>(of.dims[1]);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < columns; ++column) {
      std::memcpy(&out[(column * rows + row) * of.width], &bytes[(row * columns + column) * of.width], of.width);
    }
  }
  return out;
}

std::string Hash(const HostMemory& memory) {
  std::uint32_t hash = 0x811C9DC5;
  for (std::size_t i = 0; i < memory.size(); ++i) hash = (hash ^ memory.address()[i]) * 0x01000193;
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "h%08x", hash);
  return text.data();
}

Status ErrorOf(int code, int seed) {
  constexpr std::array<purlin::StatusCode, 3> kCodes = {purlin::StatusCode::kCancelled, purlin::StatusCode::kNotFound,
                                                        purlin::StatusCode::kInternal};
  return Status(kCodes[static_cast<std::size_t>(code)], "user error #" + std::to_string(seed) + "#");
}

// `code:what`; `r` for OK.
std::string Text(const Status& status) {
  if (status.ok()) return "r";
  const std::string_view message = status.message();
  const std::string code = std::to_string(status.raw_code()) + ":";
  const std::size_t first = message.find('#');
  if (first != std::string_view::npos) {
    const std::size_t second = message.find('#', first + 1);
    if (second != std::string_view::npos) return code + std::string(message.substr(first, second - first + 1));
  }
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 19> kKnown = {{
      {"Buffer has been deleted or donated.", "gone"},
      {"Donation requested for invalid buffer.", "donate-gone"},
      {"Donation requested for buffer with external reference", "external"},
      {"The buffer is being donated", "donating"},
      {"cannot be donated now", "busy"},
      {"into itself", "itself"},
      {"its own memory", "circle"},
      {"shapes and layouts must be equal", "unequal"},
      {"cannot bitcast", "bitcast"},
      {"only arrays of static shape", "no-array"},
      {"may not be written", "readonly"},
      {"was abandoned", "abandoned"},
      {"arguments are given", "count"},
      {"and the program takes", "signature"},
      {"Attempt to donate the same buffer twice", "donated-twice"},
      {"Attempt to use a buffer that was previously donated", "used-and-donated"},
      {"it has that of a donated argument", "given-donated"},
      {"panicked: as a test wants it", "panicked"},
      {"cannot be", "misfit"},
  }};
  for (const auto& [part, what] : kKnown) {
    if (message.find(part) != std::string_view::npos) return code + std::string(what);
  }
  return code + (status.code() == purlin::StatusCode::kOutOfRange ? "range" : std::string(message));
}

std::string State(const Event& event) {
  switch (event.state()) {
    case purlin::EventState::kUnavailable:
      return "p";
    case purlin::EventState::kReady:
      return "r";
    case purlin::EventState::kError:
      break;
  }
  return Text(event.error());
}

std::string Bool(bool value) { return value ? "true" : "false"; }

template <typename T>
class Slot {
 public:
  std::optional<T> Get() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return value_;
  }
  // What was there is destroyed under no lock.
  std::optional<T> Put(std::optional<T> value) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::optional<T> old = std::move(value_);
    value_ = std::move(value);
    return old;
  }
  bool IsFull() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return value_.has_value();
  }
  std::string Empty() { return Put(std::nullopt).has_value() ? "ok" : "none"; }
  template <typename F>
  void See(F&& f) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (value_.has_value()) f(*value_);
  }

 private:
  mutable std::mutex mutex_;
  std::optional<T> value_;
};

struct Given {
  purlin::RawBuffer memory;
  Event free;
};

struct Reading {
  Event copied;
  std::shared_ptr<HostMemory> memory;
};

struct Op {
  std::string verb;
  std::array<int, 6> args{};
};

Op ParseOp(const std::string& line) {
  std::istringstream words(line);
  Op op;
  words >> op.verb;
  for (int& arg : op.args) words >> arg;
  return op;
}

bool MayWait(const std::string& verb) {
  for (const std::string_view may : {"usage", "external", "donate", "donate_after", "bitcast", "copy_to", "copy_into",
                                     "read", "read_raw", "fulfil", "run", "execute"}) {
    if (verb == may) return true;
  }
  return false;
}

class World {
 public:
  explicit World(const std::string& platform) : client_(MakeClient(platform)), has_own_kernels_(platform == "cuda") {
    for (const purlin::Device& device : client_.devices()) {
      for (purlin::MemorySpace& space : device.memory_spaces()) spaces_.push_back(std::move(space));
    }
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World() { Clear(); }

  // True if it is as good as new. Memory that something still uses is leaked rather than taken away.
  bool Clear() {
    EmptySlots();
    bool clean = true;
    for (auto& [event, memory] : in_use_) {
      event.WaitFor(std::chrono::seconds(1)).IgnoreError();
      if (!event.IsReady()) Leak(memory), clean = false;
    }
    in_use_.clear();
    for (auto& slot : reads_) slot.Empty();
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    for (auto& [told, memory] : aliased_) {
      while (told->load() == 'p' && std::chrono::steady_clock::now() < until) std::this_thread::yield();
      if (told->load() == 'p') Leak(memory), clean = false;
    }
    aliased_.clear();
    hosts_.clear();
    return clean && BytesInUse() == 0;
  }

  void EmptySlots() {
    for (auto& slot : programs_) slot.Empty();
    for (auto& slot : buffers_) slot.Empty();
    for (auto& slot : usages_) slot.Empty();
    for (auto& slot : externals_) slot.Empty();
    for (auto& slot : donations_) slot.Empty();
    for (auto& slot : given_) slot.Empty();
    for (auto& slot : channels_) slot.Empty();
    for (auto& slot : promises_) slot.Empty();
  }

  std::string Apply(const Op& op) {
    const auto a = op.args[0], b = op.args[1], c = op.args[2], d = op.args[3];
    if (op.verb == "new_event") {
      promises_[At(a)].Put(std::make_shared<EventPromise>("reference"));
      return "ok";
    }
    if (op.verb == "set_ready" || op.verb == "set_error") {
      const auto promise = promises_[At(a)].Get();
      if (!promise.has_value()) return "none";
      return Bool(op.verb == "set_ready" ? (*promise)->SetReady() : (*promise)->SetError(ErrorOf(b, c)));
    }
    if (op.verb == "drop_promise") return promises_[At(a)].Empty();
    if (op.verb == "from_host") return FromHost(op);
    if (op.verb == "from_raw_after") {
      const ShapeOf& shape = ShapeAt(b);
      auto memory = purlin::RawBuffer::Allocate(spaces_[0], shape.size());
      if (!memory.ok()) return Text(memory.status());
      const Event copied = Fill(*memory, d, EventOf(c));
      return Made(a, Buffer::FromRaw(*memory, ToShape(shape), nullptr, copied));
    }
    if (op.verb == "uninitialized") {
      const auto layout = LayoutOf(ShapeAt(b), c == 1);
      return Made(a, Buffer::CreateUninitialized(ToShape(ShapeAt(b)), spaces_[0], layout ? &*layout : nullptr));
    }
    if (op.verb == "create_error") return Made(a, Buffer::CreateError(ErrorOf(c, d), ToShape(ShapeAt(b)), spaces_[0]));
    if (op.verb == "token") return Made(a, Buffer::CreateToken(spaces_[0], EventOf(b)));
    if (op.verb == "channel") {
      const auto layout = LayoutOf(ShapeAt(c), d == 1);
      auto channel = Buffer::CreateChannel(ToShape(ShapeAt(c)), spaces_[0], layout ? &*layout : nullptr);
      if (!channel.ok()) return Text(channel.status());
      channels_[At(b)].Put(std::move(channel->second));
      buffers_[At(a)].Put(std::move(channel->first));
      return "ok";
    }
    if (op.verb == "fulfil") {
      auto promise = channels_[At(a)].Put(std::nullopt);
      if (!promise.has_value()) return "none";
      const auto source = buffers_[At(b)].Get();
      const Status status = source.has_value() ? promise->Fulfil(*source) : purlin::CancelledError("none");
      if (status.ok()) return "ok";
      channels_[At(a)].Put(std::move(promise));
      return source.has_value() ? Text(status) : "none";
    }
    if (op.verb == "fail") {
      auto promise = channels_[At(a)].Put(std::nullopt);
      if (!promise.has_value()) return "none";
      return Answer(promise->Fail(ErrorOf(b, c)));
    }
    if (op.verb == "drop_channel") return channels_[At(a)].Empty();
    if (op.verb == "release_usage") return usages_[At(a)].Empty();
    if (op.verb == "release_usage_after") {
      auto hold = usages_[At(a)].Put(std::nullopt);
      if (!hold.has_value()) return "none";
      hold->ReleaseAfter(EventOf(b));
      return "ok";
    }
    if (op.verb == "read_hold") {
      auto hold = usages_[At(a)].Put(std::nullopt);
      if (!hold.has_value()) return "none";
      const purlin::RawBuffer raw = hold->memory();
      auto memory = std::make_shared<HostMemory>(raw.on_device_size_bytes());
      const std::array<Event, 1> ready = {hold->ready_event()};
      const Event copied = raw.CopyToHost(memory->address(), 0, memory->size(), ready);
      Keep(copied, memory);
      hold->ReleaseAfter(copied);
      reads_[At(b)].Put(Reading{copied, memory});
      return "ok";
    }
    if (op.verb == "drop_external") return externals_[At(a)].Empty();
    if (op.verb == "confirm") {
      auto donation = donations_[At(a)].Put(std::nullopt);
      if (!donation.has_value()) return "none";
      Event free = donation->free_event();
      auto memory = donation->Confirm();
      if (!memory.ok()) return Text(memory.status());
      given_[At(b)].Put(Given{*std::move(memory), std::move(free)});
      return "ok";
    }
    if (op.verb == "give_back") return donations_[At(a)].Empty();
    if (op.verb == "make_of") return MakeOf(op);
    if (op.verb == "drop_memory") return given_[At(a)].Empty();
    if (op.verb == "drop_buffer") return buffers_[At(a)].Empty();
    if (op.verb == "load") {
      auto loaded = purlin::reference::LoadFamily(c, buffers_[At(b)].Get(), client_.devices()[0], has_own_kernels_);
      if (!loaded.ok()) return Text(loaded.status());
      programs_[At(a)].Put(*std::move(loaded));
      return "ok";
    }
    if (op.verb == "run" || op.verb == "execute") return Run(op);
    if (op.verb == "quiesce") {
      const auto program = programs_[At(a)].Get();
      return program.has_value() ? Quiesce(*program) : "none";
    }
    if (op.verb == "drop_program") return programs_[At(a)].Empty();
    return ApplyToBuffer(op);
  }

  std::string Look() {
    std::string line;
    const auto put = [&line](std::string_view name, std::size_t index, const std::string& text) {
      line += std::string(name) + std::to_string(index) + "=" + text + " ";
    };
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      if (const auto buffer = buffers_[i].Get()) {
        const purlin::HoldCounts counts = buffer->hold_counts();
        put("b", i,
            std::string(buffer->IsDeleted() ? "gone," : "live,") + State(buffer->ready_event()) + "," +
                std::to_string(counts.usage) + "," + std::to_string(counts.external));
      }
    }
    for (std::size_t i = 0; i < promises_.size(); ++i) {
      promises_[i].See([&](const auto& promise) { put("p", i, State(promise->event())); });
    }
    for (std::size_t i = 0; i < usages_.size(); ++i) {
      usages_[i].See([&](const auto& hold) { put("u", i, State(hold.ready_event())); });
    }
    for (std::size_t i = 0; i < externals_.size(); ++i) {
      externals_[i].See([&](const auto& hold) { put("x", i, State(hold.ready_event())); });
    }
    for (std::size_t i = 0; i < donations_.size(); ++i) {
      donations_[i].See(
          [&](const auto& hold) { put("d", i, State(hold.ready_event()) + "," + State(hold.free_event())); });
    }
    for (std::size_t i = 0; i < given_.size(); ++i) {
      given_[i].See([&](const Given& given) { put("m", i, State(given.free)); });
    }
    for (std::size_t i = 0; i < reads_.size(); ++i) {
      reads_[i].See([&](const Reading& reading) {
        const bool is_read = reading.copied.state() == purlin::EventState::kReady;
        put("r", i, is_read ? Hash(*reading.memory) : State(reading.copied));
      });
    }
    for (std::size_t i = 0; i < programs_.size(); ++i) {
      if (const auto program = programs_[i].Get()) put("e", i, std::to_string(program->runs_in_flight()));
    }
    line += "h=";
    for (const OnDoneState& told : hosts_) line += told->load();
    return line + " mem=" + std::to_string(BytesInUse());
  }

  // A wait for a copy lets simulated time pass.
  void Nudge() {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto& [event, memory] : in_use_) {
      if (!event.IsReady()) event.WaitFor(std::chrono::microseconds(100)).IgnoreError();
    }
  }

  bool HoldsSomething(std::size_t thread) const {
    for (std::size_t i = 0; i < 3; ++i) {
      if (usages_[thread * 3 + i].IsFull()) return true;
    }
    return donations_[thread * 2].IsFull() || donations_[thread * 2 + 1].IsFull();
  }

 private:
  static std::size_t At(int slot) { return static_cast<std::size_t>(slot); }

  static purlin::Client MakeClient(const std::string& platform) {
    purlin::ClientOptions options;
    options.device_count = 2;
    options.worker_count = 2;
    options.platform = platform;
    // A machine may have fewer GPUs than the fake driver.
    options.virtual_devices = platform == "cuda" && std::getenv("PURLIN_GPU_DEVICES") != nullptr;
    auto client = purlin::Client::Create(options);
    if (!client.ok()) {
      std::cout << client.status() << std::endl;
      std::abort();
    }
    return *std::move(client);
  }

  static void Leak(std::shared_ptr<HostMemory>& memory) { new std::shared_ptr<HostMemory>(std::move(memory)); }

  static std::string Answer(const Status& status) { return status.ok() ? "ok" : Text(status); }

  std::int64_t BytesInUse() const {
    std::int64_t bytes = 0;
    for (const purlin::MemorySpace& space : spaces_) bytes += static_cast<std::int64_t>(space.Stats().bytes_in_use);
    return bytes;
  }

  Event EventOf(int slot) const {
    const auto promise = promises_[At(slot)].Get();
    return promise.has_value() ? (*promise)->event() : Event();
  }

  std::string Made(int slot, purlin::StatusOr<Buffer> made) {
    if (!made.ok()) return Text(made.status());
    buffers_[At(slot)].Put(*std::move(made));
    return "ok";
  }

  template <typename T, typename F>
  static std::string Hold(Slot<T>& slot, F&& take) {
    slot.Empty();
    purlin::StatusOr<T> held = take();
    if (!held.ok()) return Text(held.status());
    slot.Put(*std::move(held));
    return "ok";
  }

  void Keep(const Event& event, const std::shared_ptr<HostMemory>& memory) {
    const std::lock_guard<std::mutex> lock(mutex_);
    in_use_.emplace_back(event, memory);
  }

  Event Fill(const purlin::RawBuffer& memory, int seed, const Event& after) {
    auto source = std::make_shared<HostMemory>(memory.on_device_size_bytes());
    const std::vector<std::uint8_t> bytes = Pattern(seed, source->size());
    if (!bytes.empty()) std::memcpy(source->address(), bytes.data(), bytes.size());
    const std::array<Event, 1> dependencies = {after};
    Event copied = memory.CopyFromHost(source->address(), 0, source->size(), dependencies);
    Keep(copied, source);
    return copied;
  }

  std::string FromHost(const Op& op) {
    const auto slot = op.args[0], index = op.args[1], mode = op.args[2], seed = op.args[3];
    const ShapeOf& of = ShapeAt(index);
    std::vector<std::uint8_t> elements = Pattern(seed, of.size());
    std::array<std::int64_t, 2> strides{};
    purlin::FromHostOptions options;
    if ((mode & 8) != 0 && of.can_turn()) {
      elements = Turned(elements, of);
      strides = {static_cast<std::int64_t>(of.width), of.dims[0] * static_cast<std::int64_t>(of.width)};
      options.byte_strides = purlin::Span<const std::int64_t>(strides.data(), strides.size());
    }
    auto memory = std::make_shared<HostMemory>(of.size());
    std::uint8_t* const address = memory->address() + ((mode & 16) != 0 ? 1 : 0);
    if (!elements.empty()) std::memcpy(address, elements.data(), elements.size());
    options.semantics = static_cast<purlin::HostBufferSemantics>(mode & 3);
    const auto layout = LayoutOf(of, (mode & 4) != 0);
    if (layout.has_value()) options.device_layout = &*layout;
    const OnDoneState told = std::make_shared<std::atomic<char>>('p');
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      aliased_.emplace_back(told, memory);
      hosts_.push_back(told);
    }
    auto made =
        Buffer::FromHost(address, of.dtype, of.dims, spaces_[At(seed % 3)], options, [told](const Status& status) {
          if (told->exchange(status.ok() ? 'r' : 'e') != 'p') *told = 't';
        });
    if (!made.ok()) return Text(made.status());
    buffers_[At(slot)].Put(std::move(made->buffer));
    return made->aliasing == purlin::Aliasing::kAliased ? "aliased" : "copied";
  }

  std::string MakeOf(const Op& op) {
    const auto from = op.args[0], to = op.args[1], index = op.args[2], seed = op.args[3];
    const auto given = given_[At(from)].Get();
    if (!given.has_value()) return "none";
    const Shape shape = ToShape(ShapeAt(index));
    if (given->memory.on_device_size_bytes() != ShapeAt(index).size()) {
      return Text(Buffer::FromRaw(given->memory, shape, nullptr, given->free).status());
    }
    given_[At(from)].Empty();
    const Event copied = Fill(given->memory, seed, given->free);
    return Made(to, Buffer::FromRaw(given->memory, shape, nullptr, copied));
  }

  // The last argument of `run` and of `execute` chooses the options, see RunOptions of the model.
  std::string Run(const Op& op) {
    const auto program = programs_[At(op.args[0])].Get();
    if (!program.has_value()) return "none";
    const purlin::Program signature = program->executable().program();
    const bool is_run = op.verb == "run";
    std::vector<Buffer> arguments;
    for (std::size_t i = 0; i < (is_run ? 1 : signature.parameters().size()); ++i) {
      auto argument = buffers_[At(op.args[1 + i])].Get();
      if (!argument.has_value()) return "none";
      arguments.push_back(*std::move(argument));
    }
    const std::size_t first_output = is_run ? 2 : 3;
    const int choice = op.args[is_run ? 3 : 5];
    constexpr std::array<std::size_t, 1> kKept = {0};
    // Moved from: new memory.
    std::vector<Buffer> results;
    for (std::size_t i = 0; i < signature.results().size(); ++i) {
      results.push_back(Buffer::CreateToken(spaces_[0], Event()).value());
      static_cast<void>(Buffer(std::move(results.back())));
    }
    if (auto given = buffers_[At(op.args[first_output])].Get()) results[0] = *std::move(given);
    purlin::ExecuteOptions options;
    options.execution_stream_id = choice % 3;
    if (choice / 3 % 2 == 1) options.non_donatable_input_indices = kKept;
    options.caller_waits = choice / 6 % 2 == 1;
    if (choice / 12 == 1) options.results = results;
    auto execution = program->Execute(arguments, options);
    if (!execution.ok()) return Text(execution.status());
    Keep(execution->done, nullptr);
    for (std::size_t i = 0; i < execution->outputs.size(); ++i) {
      buffers_[At(op.args[first_output + i])].Put(std::move(execution->outputs[i]));
    }
    return "ok";
  }

  // The model says that it is over in the end.
  std::string Quiesce(const purlin::LoadedExecutable& program) {
    const Event idle = program.idle_event();
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!idle.IsReady()) {
      if (std::chrono::steady_clock::now() > until) return std::to_string(program.runs_in_flight()) + " do not end";
      Nudge();
      std::this_thread::yield();
    }
    return Answer(program.Quiesce());
  }

  std::string ApplyToBuffer(const Op& op) {
    const auto a = op.args[0], b = op.args[1], c = op.args[2], d = op.args[3];
    const bool second = op.verb == "usage" || op.verb == "try_usage" || op.verb == "external" || op.verb == "donate" ||
                        op.verb == "try_donate";
    const auto found = buffers_[At(second ? b : a)].Get();
    if (!found.has_value()) return "none";
    const Buffer& buffer = *found;
    if (op.verb == "try_usage") return Hold(usages_[At(a)], [&] { return buffer.TryAcquireUsageHold(); });
    if (op.verb == "usage") return Hold(usages_[At(a)], [&] { return buffer.AcquireUsageHold(); });
    if (op.verb == "external") return Hold(externals_[At(a)], [&] { return buffer.AcquireExternalReference(); });
    if (op.verb == "try_donate") return Hold(donations_[At(a)], [&] { return buffer.TryDonate("reference"); });
    if (op.verb == "donate") return Hold(donations_[At(a)], [&] { return buffer.Donate("reference"); });
    if (op.verb == "donate_after") return Made(b, buffer.DonateAfter(EventOf(c)));
    if (op.verb == "bitcast") {
      const auto layout = LayoutOf(ShapeAt(c), d == 1);
      return Made(b, buffer.Bitcast(ToShape(ShapeAt(c)), layout ? &*layout : nullptr));
    }
    if (op.verb == "copy_to") {
      return Made(b, c == 3 ? buffer.CopyToDevice(client_.devices()[1]) : buffer.CopyToMemorySpace(spaces_[At(c)]));
    }
    if (op.verb == "copy_into") {
      const auto destination = buffers_[At(b)].Get();
      return destination.has_value() ? Made(c, buffer.CopyInto(*destination)) : "none";
    }
    if (op.verb == "read" || op.verb == "read_raw") {
      const std::size_t size =
          op.verb == "read" ? buffer.shape().host_size_bytes().value() : static_cast<std::size_t>(d);
      auto memory = std::make_shared<HostMemory>(size);
      const Event copied = op.verb == "read"
                               ? buffer.CopyToHost(memory->address(), size)
                               : buffer.CopyRawToHost(memory->address(), static_cast<std::size_t>(c), size);
      Keep(copied, memory);
      reads_[At(b)].Put(Reading{copied, memory});
      return "ok";
    }
    if (op.verb == "delete") {
      buffer.Delete();
      return "ok";
    }
    if (op.verb == "release") {
      auto released = buffer.Release();
      if (!released.has_value()) return "nothing";
      given_[At(b)].Put(Given{std::move(released->memory), std::move(released->free_event)});
      return "ok";
    }
    if (op.verb == "clone") {
      buffers_[At(b)].Put(buffer);
      return "ok";
    }
    if (op.verb == "is_deleted") return Bool(buffer.IsDeleted());
    if (op.verb == "counts") {
      const purlin::HoldCounts counts = buffer.hold_counts();
      return std::to_string(counts.usage) + "," + std::to_string(counts.external);
    }
    return "no such operation";
  }

  purlin::Client client_;
  const bool has_own_kernels_;
  std::vector<purlin::MemorySpace> spaces_;
  std::array<Slot<Buffer>, 9> buffers_;
  std::array<Slot<std::shared_ptr<EventPromise>>, 6> promises_;
  std::array<Slot<purlin::BufferPromise>, 4> channels_;
  std::array<Slot<purlin::UsageHold>, 6> usages_;
  std::array<Slot<purlin::ExternalReference>, 4> externals_;
  std::array<Slot<purlin::DonationHold>, 4> donations_;
  std::array<Slot<Given>, 4> given_;
  std::array<Slot<Reading>, 6> reads_;
  std::array<Slot<purlin::LoadedExecutable>, 3> programs_;
  std::mutex mutex_;
  std::vector<OnDoneState> hosts_;
  std::vector<std::pair<Event, std::shared_ptr<HostMemory>>> in_use_;
  std::vector<std::pair<OnDoneState, std::shared_ptr<HostMemory>>> aliased_;
};

std::vector<std::string> ReadLines(std::size_t count) {
  std::vector<std::string> lines(count);
  for (std::string& line : lines) std::getline(std::cin, line);
  return lines;
}

std::string Settle(World& world, bool end, long patience_ms, const std::vector<std::string>& wanted) {
  if (end) world.EmptySlots();
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(patience_ms);
  while (true) {
    const std::string seen = world.Look();
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (wanted[i] == seen) return std::to_string(i);
    }
    if (std::chrono::steady_clock::now() > until) return seen;
    world.Nudge();
    std::this_thread::yield();
  }
}

std::vector<std::string> SideBySide(World& world, const std::vector<Op>& ops, std::size_t first) {
  std::vector<std::string> answers(ops.size());
  std::atomic<int> arrived = 0;
  const auto run = [&](std::size_t thread, std::size_t from, std::size_t to) {
    ++arrived;
    while (arrived < 2) std::this_thread::yield();
    for (std::size_t i = from; i < to; ++i) {
      answers[i] = MayWait(ops[i].verb) && world.HoldsSomething(thread) ? "held" : world.Apply(ops[i]);
    }
  };
  std::thread other([&] { run(1, first, ops.size()); });
  run(0, 0, first);
  other.join();
  return answers;
}

}  // namespace

int main() {
  std::ios::sync_with_stdio(false);
  std::unique_ptr<World> world;
  std::string line, platform;
  while (std::getline(std::cin, line) && line != "quit") {
    std::istringstream words(line);
    std::string verb;
    words >> verb;
    if (verb == "begin") {
      std::string wanted, seed;
      words >> wanted >> seed;
      if (world == nullptr || !world->Clear() || platform != wanted || wanted == "sim") {
        world.reset();
        setenv("PURLIN_SIM_SEED", seed.c_str(), 1);
        world = std::make_unique<World>(wanted);
      }
      platform = wanted;
      std::cout << "ok\n";
    } else if (world == nullptr) {
      std::cout << "nothing has begun\n";
    } else if (verb == "settle") {
      int end = 0;
      long patience_ms = 0;
      std::size_t count = 0;
      words >> end >> patience_ms >> count;
      const std::vector<std::string> wanted = ReadLines(count);
      std::cout << Settle(*world, end != 0, patience_ms, wanted) << '\n';
    } else if (verb == "pair") {
      std::size_t first = 0, second = 0;
      words >> first >> second;
      std::vector<Op> ops;
      for (const std::string& op : ReadLines(first + second)) ops.push_back(ParseOp(op));
      for (const std::string& answer : SideBySide(*world, ops, first)) std::cout << answer << '\n';
    } else {
      std::cout << world->Apply(ParseOp(line)) << '\n';
    }
    // The other side writes many lines before it reads.
    if (std::cin.rdbuf()->in_avail() <= 0) std::cout.flush();
  }
  return 0;
}
