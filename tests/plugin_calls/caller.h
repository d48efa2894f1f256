// One thread's calls, and what must come of each.
#ifndef PURLIN_TESTS_PLUGIN_CALLS_CALLER_H_
#define PURLIN_TESTS_PLUGIN_CALLS_CALLER_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api.h"
#include "model.h"
#include "world.h"

inline constexpr std::size_t kMostArrays = 24;
inline constexpr std::size_t kAlignment = 64;

/// Elements where a plugin may use them without a copy.
class HostMemory {
 public:
  explicit HostMemory(const Fate::Values& values)
      : data_(static_cast<float*>(
            std::aligned_alloc(kAlignment, (values.size() * 4 + kAlignment) / kAlignment * kAlignment))) {
    if (!values.empty()) std::memcpy(data_, values.data(), values.size() * 4);
  }
  HostMemory(const HostMemory&) = delete;
  ~HostMemory() {
    if (data_ != nullptr) std::free(data_);
  }
  float* data() const { return data_; }
  float* release() { return std::exchange(data_, nullptr); }

 private:
  float* data_;
};

/// One thread's calls.
class Caller {
 public:
  Caller(World& world, std::uint64_t seed) : world_(world), random_(seed) {}

  void Call() {
    static constexpr void (Caller::* kCalls[])() = {
        &Caller::FromHost,   &Caller::FromHost, &Caller::FromHost,    &Caller::ToHost,    &Caller::ToHost,
        &Caller::RawToHost,  &Caller::Copy,     &Caller::Delete,      &Caller::Destroy,   &Caller::Destroy,
        &Caller::Describe,   &Caller::Describe, &Caller::Reference,   &Caller::Error,     &Caller::Uninitialized,
        &Caller::View,       &Caller::Alias,    &Caller::SettleOne,   &Caller::SettleOne, &Caller::Transfer,
        &Caller::Dependency, &Caller::Ready,    &Caller::Ready,       &Caller::OwnEvent,  &Caller::WrongObject,
        &Caller::Run,        &Caller::Run,      &Caller::FinishReads, &Caller::Bitcast,
    };
    if (arrays_.size() > kMostArrays) return Destroy();
    (this->*kCalls[Below(std::size(kCalls))])();
  }

  /// Settles and ends everything.
  void End() {
    while (!promises_.empty()) SettleOne();
    FinishReads();
    while (!arrays_.empty()) DestroyAt(0);
    for (auto& [event, memory] : lent_) {
      if (!Await(event).ok()) Fail("what was lent is given back with an error");
    }
  }

 private:
  std::size_t Below(std::size_t bound) { return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_); }
  bool OneIn(std::size_t count) { return Below(count) == 0; }

  Dims RandomDims() {
    static const Dims kShapes[] = {{8}, {8}, {8}, {8}, {}, {0}, {2, 3}, {3, 1, 4}, {1000}, {0, 5}, {16, 16}};
    return kShapes[Below(std::size(kShapes))];
  }
  Fate::Values RandomValues(const Dims& dims) {
    Fate::Values values(ElementCount(dims));
    for (float& value : values) value = static_cast<float>(Below(1000));
    return values;
  }
  std::size_t RandomMemory() { return Below(world_.memories.size()); }
  std::size_t DefaultMemory(std::size_t device) { return device * world_.memories.size() / kDevices; }

  /// An array, or null if there is none. The model's, not the plugin's.
  Array* Any() { return arrays_.empty() ? nullptr : &arrays_[Below(arrays_.size())]; }

  void Add(PurlinPjrtBuffer* buffer, Dims dims, std::shared_ptr<Fate> fate, std::size_t memory) {
    if (buffer == nullptr) Fail("an array is null");
    arrays_.emplace_back(buffer, std::move(dims), std::move(fate), memory);
  }

  /// Another array over the memory of `other`.
  void AddSame(PurlinPjrtBuffer* buffer, Array other, std::shared_ptr<Fate> fate) {
    Add(buffer, other.dims, std::move(fate), other.memory);
    arrays_.back().is_uninitialized = other.is_uninitialized;
    arrays_.back().uses = std::move(other.uses);
  }

  // Arrays that begin ------------------------------------------------------------------------------------------------

  void FromHost() {
    Dims dims = RandomDims();
    Fate::Values values = RandomValues(dims);
    auto memory = std::make_unique<HostMemory>(values);
    const std::size_t place = RandomMemory();
    // Elements may lie in any order: here the dimensions are reversed in memory.
    std::vector<std::int64_t> strides(dims.size());
    const bool is_reversed = OneIn(4) && dims.size() > 1;
    if (is_reversed) {
      std::int64_t stride = 4;
      for (std::size_t d = 0; d < dims.size(); ++d) strides[d] = stride, stride *= dims[d];
    }
    PURLIN_MUST(make, ClientBufferFromHostBuffer, client_buffer_from_host_buffer, {
      make.client = world_.client;
      make.data = memory->data();
      make.type = kPurlinPjrtBufferType_F32;
      make.dims = dims.data();
      make.num_dims = dims.size();
      make.byte_strides = is_reversed ? strides.data() : nullptr;
      make.num_byte_strides = is_reversed ? strides.size() : 0;
      make.host_buffer_semantics = static_cast<int>(Below(4));
      make.memory = world_.memories[place];
      if (OneIn(3)) {
        make.memory = nullptr;
        make.device = world_.devices[world_.device_of_memory[place]];
      }
    });
    const std::size_t placed = make.memory != nullptr ? place : DefaultMemory(world_.device_of_memory[place]);
    if (is_reversed) values = Transposed(values, dims);
    Add(make.buffer, std::move(dims), Fate::Ready(std::move(values)), placed);
    if (make.host_buffer_semantics == kPurlinPjrtHostBufferSemantics_kImmutableOnlyDuringCall) {
      if (!IsReady(make.done_with_host_buffer)) Fail("bytes that are read during the call alone are still in use");
      EndEvent(make.done_with_host_buffer);
      std::memset(memory->data(), 0xff, ElementCount(arrays_.back().dims) * 4);
    } else {
      lent_.emplace_back(make.done_with_host_buffer, std::move(memory));
    }
  }

  /// The elements in row-major order of what lies column-major.
  static Fate::Values Transposed(const Fate::Values& values, const Dims& dims) {
    Fate::Values result(values.size());
    std::vector<std::size_t> index(dims.size(), 0);
    for (float& element : result) {
      std::size_t at = 0, stride = 1;
      for (std::size_t d = 0; d < dims.size(); ++d)
        at += index[d] * stride, stride *= static_cast<std::size_t>(dims[d]);
      element = values[at];
      for (std::size_t d = dims.size(); d-- > 0;) {
        if (++index[d] < static_cast<std::size_t>(dims[d])) break;
        index[d] = 0;
      }
    }
    return result;
  }

  void Error() {
    const Dims dims = RandomDims();
    const std::size_t place = RandomMemory();
    const int code = static_cast<int>(Below(17));
    PURLIN_CALL(make, ClientCreateErrorBuffer, client_create_error_buffer, {
      make.client = world_.client;
      make.error_code = code;
      make.error_message = "planned";
      make.error_message_size = 7;
      make.shape_dims = dims.data();
      make.shape_num_dims = dims.size();
      make.shape_element_type = kPurlinPjrtBufferType_F32;
      make.memory = world_.memories[place];
    });
    if (make_outcome.ok() != (code != kPurlinPjrtErrorCode_OK))
      Fail("an array with an error of OK: " + make_outcome.message);
    if (make_outcome.ok()) Add(make.buffer, dims, Fate::Failed(code), place);
  }

  void Uninitialized() {
    const Dims dims = RandomDims();
    const std::size_t place = RandomMemory();
    PURLIN_MUST(make, ClientCreateUninitializedBuffer, client_create_uninitialized_buffer, {
      make.client = world_.client;
      make.shape_dims = dims.data();
      make.shape_num_dims = dims.size();
      make.shape_element_type = kPurlinPjrtBufferType_F32;
      make.memory = world_.memories[place];
    });
    Add(make.buffer, dims, Fate::Ready(Fate::Values(ElementCount(dims))), place);
    arrays_.back().is_uninitialized = true;
  }

  void View() {
    struct Owned {
      HostMemory memory;
      World* world;
    };
    const Dims dims = RandomDims();
    const Fate::Values values = RandomValues(dims);
    auto* owned = new Owned{HostMemory(values), &world_};
    const std::size_t place = RandomMemory();
    world_.views_alive.fetch_add(1);
    PURLIN_MUST(make, ClientCreateViewOfDeviceBuffer, client_create_view_of_device_buffer, {
      make.client = world_.client;
      make.device_buffer_ptr = owned->memory.data();
      make.dims = dims.data();
      make.num_dims = dims.size();
      make.element_type = kPurlinPjrtBufferType_F32;
      make.memory = world_.memories[place];
      make.on_delete_callback_arg = owned;
      make.on_delete_callback = [](void* data, void* arg) {
        auto* given = static_cast<Owned*>(arg);
        if (data != given->memory.data()) Fail("a view ends with another address");
        given->world->views_alive.fetch_sub(1);
        delete given;
      };
    });
    Add(make.buffer, dims, Fate::Ready(values), place);
  }

  // Arrays that come later -------------------------------------------------------------------------------------------

  /// What settles a fate, with an error or without; called once.
  using Promise = std::function<void(bool)>;

  void SettleOne() {
    if (promises_.empty()) return;
    const std::size_t at = Below(promises_.size());
    const Promise promise = std::move(promises_[at]);
    promises_.erase(promises_.begin() + static_cast<std::ptrdiff_t>(at));
    promise(OneIn(4));
  }

  void Alias() {
    const Dims dims = RandomDims();
    const std::size_t place = RandomMemory();
    PURLIN_MUST(make, ClientCreateAliasBuffer, client_create_alias_buffer, {
      make.client = world_.client;
      make.memory = world_.memories[place];
      make.shape_dims = dims.data();
      make.shape_num_dims = dims.size();
      make.shape_element_type = kPurlinPjrtBufferType_F32;
    });
    auto fate = Fate::Pending();
    Add(make.alias_buffer, dims, fate, place);
    const auto settle = [this, fate, dims, place, promise = make.fulfill_alias_buffer_cb](bool fails) {
      SettleAlias(promise, dims, place, *fate, fails);
    };
    promises_.emplace_back(settle);
  }

  void SettleAlias(PurlinPjrtFulfillAliasBufferCallback* promise, const Dims& dims, std::size_t place, Fate& fate,
                   bool fails) {
    if (fails) {
      PURLIN_MUST(fail, ClientFulfillAliasBuffer, client_fulfill_alias_buffer, {
        fail.client = world_.client;
        fail.status_code = kPurlinPjrtErrorCode_DATA_LOSS;
        fail.error_message = "planned";
        fail.error_message_size = 7;
        fail.fulfill_alias_buffer_cb = promise;
      });
      return fate.SetError(kPurlinPjrtErrorCode_DATA_LOSS);
    }
    const Fate::Values values = RandomValues(dims);
    PURLIN_MUST(make, ClientBufferFromHostBuffer, client_buffer_from_host_buffer, {
      make.client = world_.client;
      make.data = values.data();
      make.type = kPurlinPjrtBufferType_F32;
      make.dims = dims.data();
      make.num_dims = dims.size();
      make.memory = world_.memories[place];
    });
    EndEvent(make.done_with_host_buffer);
    PURLIN_MUST(fulfil, ClientFulfillAliasBuffer, client_fulfill_alias_buffer, {
      fulfil.client = world_.client;
      fulfil.buffer = make.buffer;
      fulfil.fulfill_alias_buffer_cb = promise;
    });
    PURLIN_MUST(end, BufferDestroy, buffer_destroy, end.buffer = make.buffer);
    fate.Set(values);
  }

  using Manager = std::shared_ptr<PurlinPjrtAsyncHostToDeviceTransferManager>;

  void Transfer() {
    const Dims shapes[] = {RandomDims(), RandomDims()};
    const std::size_t place = RandomMemory();
    PurlinPjrtShapeSpec specs[2] = {};
    for (int i = 0; i < 2; ++i) {
      specs[i].struct_size = kPurlinPjrtShapeSpecSize;
      specs[i].dims = shapes[i].data();
      specs[i].num_dims = shapes[i].size();
      specs[i].element_type = kPurlinPjrtBufferType_F32;
    }
    PURLIN_MUST(make, ClientCreateBuffersForAsyncHostToDevice, client_create_buffers_for_async_host_to_device, {
      make.client = world_.client;
      make.shape_specs = specs;
      make.num_shape_specs = 2;
      make.memory = world_.memories[place];
    });
    // It ends when both of its arrays are settled.
    const Manager manager(make.transfer_manager, [](PurlinPjrtAsyncHostToDeviceTransferManager* ended) {
      PURLIN_MUST(end, AsyncHostToDeviceTransferManagerDestroy, async_host_to_device_transfer_manager_destroy,
                  end.transfer_manager = ended);
    });
    for (int i = 0; i < 2; ++i) {
      PURLIN_MUST(found, AsyncHostToDeviceTransferManagerRetrieveBuffer,
                  async_host_to_device_transfer_manager_retrieve_buffer, {
                    found.transfer_manager = manager.get();
                    found.buffer_index = i;
                  });
      auto fate = Fate::Pending();
      Add(found.buffer_out, shapes[i], fate, place);
      const auto settle = [this, manager, i, dims = shapes[i], fate](bool fails) {
        SettleTransfer(manager, i, dims, *fate, fails);
      };
      promises_.emplace_back(settle);
    }
  }

  void SettleTransfer(const Manager& manager, int index, const Dims& dims, Fate& fate, bool fails) {
    if (fails) {
      PURLIN_MUST(fail, AsyncHostToDeviceTransferManagerSetBufferError,
                  async_host_to_device_transfer_manager_set_buffer_error, {
                    fail.transfer_manager = manager.get();
                    fail.buffer_index = index;
                    fail.error_code = kPurlinPjrtErrorCode_UNAVAILABLE;
                    fail.error_message = "planned";
                    fail.error_message_size = 7;
                  });
      return fate.SetError(kPurlinPjrtErrorCode_UNAVAILABLE);
    }
    // In two parts, the second one first.
    const Fate::Values values = RandomValues(dims);
    const std::size_t half = values.size() / 2 * 4, all = values.size() * 4;
    auto memory = std::make_unique<HostMemory>(values);
    for (const bool is_last : {false, true}) {
      const std::size_t begin = is_last ? 0 : half, end = is_last ? half : all;
      PURLIN_MUST(part, AsyncHostToDeviceTransferManagerTransferData,
                  async_host_to_device_transfer_manager_transfer_data, {
                    part.transfer_manager = manager.get();
                    part.buffer_index = index;
                    part.data = reinterpret_cast<const char*>(memory->data()) + begin;
                    part.offset = static_cast<std::int64_t>(begin);
                    part.transfer_size = static_cast<std::int64_t>(end - begin);
                    part.is_last_transfer = is_last;
                  });
      lent_.emplace_back(part.done_with_h2d_transfer, nullptr);
    }
    lent_.back().second = std::move(memory);
    fate.Set(values);
  }

  void Dependency() {
    Array* const array = Any();
    if (array == nullptr || array->references > 0) return;
    PURLIN_CALL(donate, BufferDonateWithControlDependency, buffer_donate_with_control_dependency,
                donate.buffer = array->buffer);
    if (donate_outcome.ok() == array->is_deleted) Fail("a donation after an event: " + donate_outcome.message);
    if (array->is_deleted) return;
    const auto after = Fate::Pending();
    const Array given = *array;
    array->is_deleted = true;
    auto fate = Fate::Of({array->fate, after}, {}, [](const std::vector<const Fate::Values*>& of) { return *of[0]; });
    AddSame(donate.out_buffer, given, std::move(fate));
    const auto settle = [after, data = donate.callback_data, done = donate.dependency_ready_callback](bool fails) {
      PurlinPjrtBufferDonateWithControlDependencyCallbackArgs args{};
      args.struct_size = kPurlinPjrtBufferDonateWithControlDependencyCallbackArgsSize;
      args.callback_data = data;
      args.error_code = fails ? kPurlinPjrtErrorCode_ABORTED : kPurlinPjrtErrorCode_OK;
      args.error_message = "planned";
      args.error_message_size = 7;
      done(&args);
      if (fails) return after->SetError(kPurlinPjrtErrorCode_ABORTED);
      after->Set({});
    };
    promises_.emplace_back(settle);
  }

  // What is asked of arrays ------------------------------------------------------------------------------------------

  /// A copy to the host that is under way.
  struct Read {
    PurlinPjrtEvent* event;
    std::unique_ptr<Fate::Values> destination;
    std::size_t first;
    std::shared_ptr<Fate> fate;
    bool is_compared;
  };

  void ToHost() {
    Array* const array = Any();
    if (array == nullptr) return;
    auto destination = std::make_unique<Fate::Values>(ElementCount(array->dims) + 1, -1.0F);
    PURLIN_CALL(copy, BufferToHostBuffer, buffer_to_host_buffer, {
      copy.src = array->buffer;
      copy.dst = destination->data();
      copy.dst_size = ElementCount(array->dims) * 4;
    });
    Began(*array, copy_outcome, copy.event, std::move(destination), 0);
  }

  void RawToHost() {
    Array* const array = Any();
    if (array == nullptr) return;
    const std::size_t count = ElementCount(array->dims);
    const std::size_t first = Below(count + 1), length = Below(count - first + 1);
    auto destination = std::make_unique<Fate::Values>(length + 1, -1.0F);
    PURLIN_CALL(copy, BufferCopyRawToHost, buffer_copy_raw_to_host, {
      copy.buffer = array->buffer;
      copy.dst = destination->data();
      copy.offset = static_cast<std::int64_t>(first * 4);
      copy.transfer_size = static_cast<std::int64_t>(length * 4);
    });
    Began(*array, copy_outcome, copy.event, std::move(destination), first);
  }

  void Began(const Array& array, const Outcome& outcome, PurlinPjrtEvent* event,
             std::unique_ptr<Fate::Values> destination, std::size_t first) {
    if (array.is_deleted) {
      // Refused, at once or by the event.
      if (outcome.ok() && Await(event).ok()) Fail("an array was read that is deleted");
      return;
    }
    if (!outcome.ok()) Fail("an array is not read: " + outcome.message);
    reads_.push_back({event, std::move(destination), first, array.fate, !array.is_uninitialized});
    if (OneIn(2)) FinishReads();
  }

  /// Waits for the copies whose fates are settled, and compares what they brought.
  void FinishReads() {
    for (std::size_t at = reads_.size(); at-- > 0;) {
      Read& read = reads_[at];
      const Fate::State state = read.fate->state();
      if (state == Fate::State::kPending) continue;
      const Outcome outcome = Await(read.event);
      if (state == Fate::State::kFailed) {
        if (!read.fate->FailsWith(outcome.code)) Fail("a copy of an array with an error ends with " + outcome.message);
      } else {
        if (!outcome.ok()) Fail("a copy ends with " + outcome.message);
        const std::size_t count = read.destination->size() - 1;
        for (std::size_t i = 0; i < count && read.is_compared; ++i) {
          if ((*read.destination)[i] != read.fate->values()[read.first + i])
            Fail("element " + std::to_string(i) + " differs");
        }
        if (read.destination->back() != -1.0F) Fail("a copy wrote behind its end");
      }
      reads_.erase(reads_.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }

  void Ready() {
    Array* const array = Any();
    if (array == nullptr) return;
    PURLIN_CALL(found, BufferReadyEvent, buffer_ready_event, found.buffer = array->buffer);
    if (found_outcome.ok() == array->is_deleted) Fail("the ready event of an array: " + found_outcome.message);
    if (array->is_deleted) return;
    switch (array->fate->state()) {
      case Fate::State::kReady:
        if (const Outcome outcome = Await(found.event); !outcome.ok()) Fail("a ready array: " + outcome.message);
        break;
      case Fate::State::kFailed:
        if (!array->fate->FailsWith(Await(found.event).code)) Fail("an array has another error");
        break;
      case Fate::State::kPending: {
        // It is told when it happens, whatever becomes of the event object.
        auto* const told = new std::atomic<int>(2);
        PURLIN_MUST(tell, EventOnReady, event_on_ready, {
          tell.event = found.event;
          tell.user_arg = told;
          tell.callback = [](PurlinPjrtError* error, void* arg) {
            Take(error);
            Drop(static_cast<std::atomic<int>*>(arg));
          };
        });
        Drop(told);
        EndEvent(found.event);
      }
    }
  }
  static void Drop(std::atomic<int>* references) {
    if (references->fetch_sub(1, std::memory_order_acq_rel) == 1) delete references;
  }

  void Describe() {
    Array* const array = Any();
    if (array == nullptr) return;
    PURLIN_MUST(dims, BufferDimensions, buffer_dimensions, dims.buffer = array->buffer);
    if (Dims(dims.dims, dims.dims + dims.num_dims) != array->dims) Fail("an array has other dimensions");
    PURLIN_MUST(type, BufferElementType, buffer_element_type, type.buffer = array->buffer);
    if (type.type != kPurlinPjrtBufferType_F32) Fail("an array has another type");
    PURLIN_MUST(memory, BufferMemory, buffer_memory, memory.buffer = array->buffer);
    if (memory.memory != world_.memories[array->memory]) Fail("an array is in another memory");
    PURLIN_MUST(device, BufferDevice, buffer_device, device.buffer = array->buffer);
    if (device.device != world_.devices[world_.device_of_memory[array->memory]]) Fail("an array is on another device");
    PURLIN_MUST(deleted, BufferIsDeleted, buffer_is_deleted, deleted.buffer = array->buffer);
    if (deleted.is_deleted != array->is_deleted) Fail("an array is deleted, or it is not");
    PURLIN_MUST(layout, BufferGetMemoryLayout, buffer_get_memory_layout, layout.buffer = array->buffer);
    if (layout.layout.value.tiled.minor_to_major_size != array->dims.size()) Fail("a layout has another rank");
  }

  void Reference() {
    Array* const array = Any();
    if (array == nullptr) return;
    if (array->references > 0 && OneIn(2)) {
      PURLIN_MUST(drop, BufferDecreaseExternalReferenceCount, buffer_decrease_external_reference_count,
                  drop.buffer = array->buffer);
      --array->references;
      return;
    }
    const bool is_there = !array->is_deleted && array->fate->state() == Fate::State::kReady && array->has_memory();
    if (!is_there) return;
    PURLIN_MUST(take, BufferIncreaseExternalReferenceCount, buffer_increase_external_reference_count,
                take.buffer = array->buffer);
    ++array->references;
    PURLIN_MUST(wait, BufferReadyEvent, buffer_ready_event, wait.buffer = array->buffer);
    Await(wait.event);
    PURLIN_MUST(found, BufferOpaqueDeviceMemoryDataPointer, buffer_opaque_device_memory_data_pointer,
                found.buffer = array->buffer);
    if (!array->is_uninitialized &&
        std::memcmp(found.device_memory_ptr, array->fate->values().data(), ElementCount(array->dims) * 4) != 0) {
      Fail("the memory of an array has other elements");
    }
  }

  // Arrays of arrays -------------------------------------------------------------------------------------------------

  void Copy() {
    Array* const array = Any();
    if (array == nullptr) return;
    const std::size_t place = RandomMemory();
    PURLIN_CALL(copy, BufferCopyToMemory, buffer_copy_to_memory, {
      copy.buffer = array->buffer;
      copy.dst_memory = world_.memories[place];
    });
    if (copy_outcome.ok() == array->is_deleted) Fail("a copy to a memory: " + copy_outcome.message);
    if (array->is_deleted) return;
    const bool is_uninitialized = array->is_uninitialized;
    Add(copy.dst_buffer, array->dims, array->fate, place);
    arrays_.back().is_uninitialized = is_uninitialized;
  }

  void Bitcast() {
    Array* const array = Any();
    if (array == nullptr || array->references > 0) return;
    const Dims dims = {static_cast<std::int64_t>(ElementCount(array->dims))};
    PURLIN_CALL(cast, BufferBitcast, buffer_bitcast, {
      cast.buffer = array->buffer;
      cast.element_type = kPurlinPjrtBufferType_F32;
      cast.dims = dims.data();
      cast.num_dims = 1;
    });
    if (cast_outcome.ok() == array->is_deleted) Fail("a bitcast: " + cast_outcome.message);
    if (array->is_deleted) return;
    PURLIN_MUST(deleted, BufferIsDeleted, buffer_is_deleted, deleted.buffer = array->buffer);
    array->is_deleted = deleted.is_deleted;
    AddSame(cast.out_buffer, *array, array->fate);
    arrays_.back().dims = dims;
  }

  void Run() {
    if (world_.add == nullptr) return;
    std::vector<std::size_t> suitable;
    for (std::size_t at = 0; at < arrays_.size(); ++at) {
      const Array& array = arrays_[at];
      if (array.dims == Dims{8} && array.memory == DefaultMemory(0) && array.references == 0 && !array.is_uninitialized)
        suitable.push_back(at);
    }
    if (suitable.empty()) return;
    const std::size_t first = suitable[Below(suitable.size())], second = suitable[Below(suitable.size())];
    Array &a = arrays_[first], &b = arrays_[second];
    if (world_.is_checked &&
        (a.fate->state() == Fate::State::kPending || b.fate->state() == Fate::State::kPending || !Unused(a)))
      return;
    const bool keeps = OneIn(3);
    const std::int64_t kept = 0;
    PurlinPjrtExecuteOptions options{};
    options.struct_size = kPurlinPjrtExecuteOptionsSize;
    options.non_donatable_input_indices = &kept;
    options.num_non_donatable_input_indices = keeps ? 1 : 0;
    options.call_location = OneIn(2) ? "calls.cc:1" : nullptr;
    PurlinPjrtBuffer* const arguments[] = {a.buffer, b.buffer};
    PurlinPjrtBuffer* const* const lists[] = {arguments};
    PurlinPjrtBuffer* results[2] = {};
    PurlinPjrtBuffer** const result_lists[] = {results};
    PurlinPjrtEvent* done = nullptr;
    const bool asks = OneIn(2);
    PURLIN_CALL(run, LoadedExecutableExecute, loaded_executable_execute, {
      run.executable = world_.add;
      run.options = &options;
      run.argument_lists = lists;
      run.num_devices = 1;
      run.num_args = 2;
      run.output_lists = result_lists;
      run.device_complete_events = asks ? &done : nullptr;
    });
    if (a.is_deleted || b.is_deleted || (first == second && !keeps)) {
      if (run_outcome.ok()) Fail("a program ran with an argument that is gone, or twice with a donated one");
      const std::string_view at = options.call_location == nullptr ? "'" : "calls.cc:1: '";
      if (run_outcome.message.compare(0, at.size(), at) != 0)
        Fail("an error without its place: " + run_outcome.message);
      return;
    }
    if (!run_outcome.ok()) Fail("a program does not run: " + run_outcome.message);
    a.is_deleted = a.is_deleted || !keeps;
    const auto of = [&](float sign) {
      const auto earlier = keeps ? std::vector<std::shared_ptr<Fate>>() : *a.uses;
      return Fate::Of({a.fate, b.fate}, earlier, [sign](const std::vector<const Fate::Values*>& given) {
        Fate::Values sums(8);
        for (std::size_t i = 0; i < 8; ++i) sums[i] = (*given[1])[i] + sign * (*given[0])[i];
        return sums;
      });
    };
    const auto sum = of(1), difference = of(-1);
    for (Array* const array : {&a, &b}) {
      Unused(*array);
      array->uses->push_back(sum);
    }
    // As a copy of nothing.
    if (asks) reads_.push_back({done, std::make_unique<Fate::Values>(1, -1.0F), 0, sum, false});
    Add(results[0], {8}, sum, DefaultMemory(0));
    Add(results[1], {8}, difference, DefaultMemory(0));
  }

  /// Whether no run reads its memory.
  static bool Unused(const Array& array) {
    auto& uses = *array.uses;
    const auto is_over = [](const std::shared_ptr<Fate>& use) { return use->state() != Fate::State::kPending; };
    uses.erase(std::remove_if(uses.begin(), uses.end(), is_over), uses.end());
    return uses.empty();
  }

  // The end of arrays, and what is refused ---------------------------------------------------------------------------

  void Delete() {
    Array* const array = Any();
    if (array == nullptr) return;
    PURLIN_MUST(remove, BufferDelete, buffer_delete, remove.buffer = array->buffer);
    array->is_deleted = true;
  }

  void Destroy() {
    if (!arrays_.empty()) DestroyAt(Below(arrays_.size()));
  }
  void DestroyAt(std::size_t at) {
    PURLIN_MUST(end, BufferDestroy, buffer_destroy, end.buffer = arrays_[at].buffer);
    arrays_.erase(arrays_.begin() + static_cast<std::ptrdiff_t>(at));
  }

  void OwnEvent() {
    PURLIN_MUST(make, EventCreate, event_create, (void)0);
    if (IsReady(make.event)) Fail("an event is ready that nobody has set");
    PURLIN_CALL(early, EventError, event_error, early.event = make.event);
    if (early_outcome.code != kPurlinPjrtErrorCode_FAILED_PRECONDITION) Fail("a pending event has an outcome");
    const int code = static_cast<int>(Below(17));
    PURLIN_MUST(set, EventSet, event_set, {
      set.event = make.event;
      set.error_code = code;
      set.error_message = "planned";
      set.error_message_size = 7;
    });
    PURLIN_CALL(again, EventSet, event_set, again.event = make.event);
    if (again_outcome.code != kPurlinPjrtErrorCode_FAILED_PRECONDITION) Fail("an event is set twice");
    if (Await(make.event).code != code) Fail("an event ends with another error");
  }

  void WrongObject() {
    PURLIN_CALL(dims, BufferDimensions, buffer_dimensions,
                dims.buffer = reinterpret_cast<PurlinPjrtBuffer*>(world_.client));
    if (dims_outcome.code != kPurlinPjrtErrorCode_INVALID_ARGUMENT) Fail("a client is taken for an array");
    PURLIN_CALL(nothing, BufferDimensions, buffer_dimensions, (void)0);
    if (nothing_outcome.code != kPurlinPjrtErrorCode_INVALID_ARGUMENT) Fail("nothing is taken for an array");
    if (Array* const array = Any()) {
      PURLIN_CALL(wait, EventAwait, event_await, wait.event = reinterpret_cast<PurlinPjrtEvent*>(array->buffer));
      if (wait_outcome.code != kPurlinPjrtErrorCode_INVALID_ARGUMENT) Fail("an array is taken for an event");
    }
  }

  World& world_;
  std::mt19937_64 random_;
  std::vector<Array> arrays_;
  std::vector<Read> reads_;
  std::vector<Promise> promises_;
  std::vector<std::pair<PurlinPjrtEvent*, std::unique_ptr<HostMemory>>> lent_;
};

#endif  // PURLIN_TESTS_PLUGIN_CALLS_CALLER_H_
