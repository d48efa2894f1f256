#pragma once
#include "purlin/raw_buffer.h"
#include "cpp/generated/device.rs.h"
#include <cstddef>
#include <cstdint>
#include <type_traits>

#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wdollar-in-identifier-extension"
#endif // __clang__

namespace rust {
inline namespace cxxbridge1 {
// #include "rust/cxx.h"

#ifndef CXXBRIDGE1_RUST_OPAQUE
#define CXXBRIDGE1_RUST_OPAQUE
class Opaque {
public:
  Opaque() = delete;
  Opaque(const Opaque &) = delete;
  ~Opaque() = delete;
};
#endif // CXXBRIDGE1_RUST_OPAQUE

#ifndef CXXBRIDGE1_IS_COMPLETE
#define CXXBRIDGE1_IS_COMPLETE
namespace detail {
namespace {
template <typename T, typename = std::size_t>
struct is_complete : std::false_type {};
template <typename T>
struct is_complete<T, decltype(sizeof(T))> : std::true_type {};
} // namespace
} // namespace detail
#endif // CXXBRIDGE1_IS_COMPLETE

#ifndef CXXBRIDGE1_LAYOUT
#define CXXBRIDGE1_LAYOUT
class layout {
  template <typename T>
  friend std::size_t size_of();
  template <typename T>
  friend std::size_t align_of();
  template <typename T>
  static typename std::enable_if<std::is_base_of<Opaque, T>::value,
                                 std::size_t>::type
  do_size_of() {
    return T::layout::size();
  }
  template <typename T>
  static typename std::enable_if<!std::is_base_of<Opaque, T>::value,
                                 std::size_t>::type
  do_size_of() {
    return sizeof(T);
  }
  template <typename T>
  static
      typename std::enable_if<detail::is_complete<T>::value, std::size_t>::type
      size_of() {
    return do_size_of<T>();
  }
  template <typename T>
  static typename std::enable_if<std::is_base_of<Opaque, T>::value,
                                 std::size_t>::type
  do_align_of() {
    return T::layout::align();
  }
  template <typename T>
  static typename std::enable_if<!std::is_base_of<Opaque, T>::value,
                                 std::size_t>::type
  do_align_of() {
    return alignof(T);
  }
  template <typename T>
  static
      typename std::enable_if<detail::is_complete<T>::value, std::size_t>::type
      align_of() {
    return do_align_of<T>();
  }
};

template <typename T>
std::size_t size_of() {
  return layout::size_of<T>();
}

template <typename T>
std::size_t align_of() {
  return layout::align_of<T>();
}
#endif // CXXBRIDGE1_LAYOUT
} // namespace cxxbridge1
} // namespace rust

namespace purlin {
  inline namespace v0 {
    namespace internal {
      using EventHeader = ::purlin::v0::internal::EventHeader;
      struct RawBufferRep;
    }
  }
}

namespace purlin {
inline namespace v0 {
namespace internal {
#ifndef CXXBRIDGE1_STRUCT_purlin$v0$internal$RawBufferRep
#define CXXBRIDGE1_STRUCT_purlin$v0$internal$RawBufferRep
struct RawBufferRep final : public ::rust::Opaque {
  ~RawBufferRep() = delete;

private:
  friend ::rust::layout;
  struct layout {
    static ::std::size_t size() noexcept;
    static ::std::size_t align() noexcept;
  };
};
#endif // CXXBRIDGE1_STRUCT_purlin$v0$internal$RawBufferRep
} // namespace internal
} // namespace v0

namespace ffi {
void raw_buffer_retain(::purlin::v0::internal::RawBufferRep const *buffer) noexcept;

void raw_buffer_release(::purlin::v0::internal::RawBufferRep const *buffer) noexcept;

::std::size_t raw_buffer_size_bytes(::purlin::v0::internal::RawBufferRep const &buffer) noexcept;

::purlin::v0::internal::MemorySpaceRep const *raw_buffer_memory_space(::purlin::v0::internal::RawBufferRep const &buffer) noexcept;

::purlin::v0::internal::EventHeader *raw_buffer_allocation_event(::purlin::v0::internal::RawBufferRep const &buffer) noexcept;

bool raw_buffer_is_mutable(::purlin::v0::internal::RawBufferRep const &buffer) noexcept;

// Null where the host cannot reach the memory, and while it is not there.
::std::uint8_t *raw_buffer_host_pointer(::purlin::v0::internal::RawBufferRep const &buffer) noexcept;

// The address, or an error.
::std::size_t raw_buffer_device_pointer(::purlin::v0::internal::RawBufferRep const &buffer, ::purlin::v0::internal::StatusRep const *&error) noexcept;

// A part of the memory, or null and an error.
::purlin::v0::internal::RawBufferRep const *raw_buffer_slice(::purlin::v0::internal::RawBufferRep const &buffer, ::std::size_t offset_bytes, ::std::size_t size_bytes, ::purlin::v0::internal::StatusRep const *&error) noexcept;

::purlin::v0::internal::EventHeader *raw_buffer_copy_from_host(::purlin::v0::internal::RawBufferRep const &buffer, ::std::uint8_t const *source, ::std::size_t offset_bytes, ::std::size_t size_bytes, ::purlin::v0::internal::EventHeader *const *dependencies, ::std::size_t count) noexcept;

::purlin::v0::internal::EventHeader *raw_buffer_copy_to_host(::purlin::v0::internal::RawBufferRep const &buffer, ::std::uint8_t *destination, ::std::size_t offset_bytes, ::std::size_t size_bytes, ::purlin::v0::internal::EventHeader *const *dependencies, ::std::size_t count) noexcept;

::purlin::v0::internal::EventHeader *raw_buffer_copy_to(::purlin::v0::internal::RawBufferRep const &buffer, ::purlin::v0::internal::RawBufferRep const &destination, ::purlin::v0::internal::EventHeader *const *dependencies, ::std::size_t count) noexcept;

::purlin::v0::internal::EventHeader *raw_buffer_copy_range_to(::purlin::v0::internal::RawBufferRep const &buffer, ::std::size_t offset_bytes, ::purlin::v0::internal::RawBufferRep const &destination, ::std::size_t destination_offset_bytes, ::std::size_t size_bytes, ::purlin::v0::internal::EventHeader *const *dependencies, ::std::size_t count) noexcept;

void raw_buffer_retain_until(::purlin::v0::internal::RawBufferRep const &buffer, ::purlin::v0::internal::EventHeader *event) noexcept;
} // namespace ffi
} // namespace purlin

#ifdef __clang__
#pragma clang diagnostic pop
#endif // __clang__
