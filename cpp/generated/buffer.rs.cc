#include "purlin/buffer.h"
#include "cpp/generated/device.rs.h"
#include "cpp/generated/raw_buffer.rs.h"
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <stdexcept>
#include <type_traits>
#if __cplusplus >= 202002L
#include <ranges>
#endif

#ifdef __GNUC__
#pragma GCC diagnostic ignored "-Wmissing-declarations"
#ifdef __clang__
#pragma clang diagnostic ignored "-Wdollar-in-identifier-extension"
#endif // __clang__
#endif // __GNUC__

namespace rust {
inline namespace cxxbridge1 {
// #include "rust/cxx.h"

#ifndef CXXBRIDGE1_PANIC
#define CXXBRIDGE1_PANIC
template <typename Exception>
void panic [[noreturn]] (const char *msg);
#endif // CXXBRIDGE1_PANIC

namespace {
template <typename T>
class impl;
} // namespace

template <typename T>
::std::size_t size_of();
template <typename T>
::std::size_t align_of();

#ifndef CXXBRIDGE1_RUST_SLICE
#define CXXBRIDGE1_RUST_SLICE
namespace detail {
template <bool>
struct copy_assignable_if {};

template <>
struct copy_assignable_if<false> {
  copy_assignable_if() noexcept = default;
  copy_assignable_if(const copy_assignable_if &) noexcept = default;
  copy_assignable_if &operator=(const copy_assignable_if &) & noexcept = delete;
  copy_assignable_if &operator=(copy_assignable_if &&) & noexcept = default;
};
} // namespace detail

template <typename T>
class Slice final
    : private detail::copy_assignable_if<std::is_const<T>::value> {
public:
  using value_type = T;

  Slice() noexcept;
  Slice(T *, std::size_t count) noexcept;

  template <typename C>
  explicit Slice(C &c) : Slice(c.data(), c.size()) {}

  Slice &operator=(const Slice<T> &) & noexcept = default;
  Slice &operator=(Slice<T> &&) & noexcept = default;

  T *data() const noexcept;
  std::size_t size() const noexcept;
  std::size_t length() const noexcept;
  bool empty() const noexcept;

  T &operator[](std::size_t n) const noexcept;
  T &at(std::size_t n) const;
  T &front() const noexcept;
  T &back() const noexcept;

  Slice(const Slice<T> &) noexcept = default;
  ~Slice() noexcept = default;

  class iterator;
  iterator begin() const noexcept;
  iterator end() const noexcept;

  void swap(Slice &) noexcept;

private:
  class uninit;
  Slice(uninit) noexcept;
  friend impl<Slice>;
  friend void sliceInit(void *, const void *, std::size_t) noexcept;
  friend void *slicePtr(const void *) noexcept;
  friend std::size_t sliceLen(const void *) noexcept;

  std::array<std::uintptr_t, 2> repr;
};

#ifdef __cpp_deduction_guides
template <typename C>
explicit Slice(C &c)
    -> Slice<std::remove_reference_t<decltype(*std::declval<C>().data())>>;
#endif // __cpp_deduction_guides

template <typename T>
class Slice<T>::iterator final {
public:
#if __cplusplus >= 202002L
  using iterator_category = std::contiguous_iterator_tag;
#else
  using iterator_category = std::random_access_iterator_tag;
#endif
  using value_type = T;
  using difference_type = std::ptrdiff_t;
  using pointer = typename std::add_pointer<T>::type;
  using reference = typename std::add_lvalue_reference<T>::type;

  reference operator*() const noexcept;
  pointer operator->() const noexcept;
  reference operator[](difference_type) const noexcept;

  iterator &operator++() noexcept;
  iterator operator++(int) noexcept;
  iterator &operator--() noexcept;
  iterator operator--(int) noexcept;

  iterator &operator+=(difference_type) noexcept;
  iterator &operator-=(difference_type) noexcept;
  iterator operator+(difference_type) const noexcept;
  friend inline iterator operator+(difference_type lhs, iterator rhs) noexcept {
    return rhs + lhs;
  }
  iterator operator-(difference_type) const noexcept;
  difference_type operator-(const iterator &) const noexcept;

  bool operator==(const iterator &) const noexcept;
  bool operator!=(const iterator &) const noexcept;
  bool operator<(const iterator &) const noexcept;
  bool operator<=(const iterator &) const noexcept;
  bool operator>(const iterator &) const noexcept;
  bool operator>=(const iterator &) const noexcept;

private:
  friend class Slice;
  void *pos;
  std::size_t stride;
};

template <typename T>
Slice<T>::Slice() noexcept {
  sliceInit(this, reinterpret_cast<void *>(align_of<T>()), 0);
}

template <typename T>
Slice<T>::Slice(T *s, std::size_t count) noexcept {
  assert(s != nullptr || count == 0);
  sliceInit(this,
            s == nullptr && count == 0
                ? reinterpret_cast<void *>(align_of<T>())
                : const_cast<typename std::remove_const<T>::type *>(s),
            count);
}

template <typename T>
T *Slice<T>::data() const noexcept {
  return reinterpret_cast<T *>(slicePtr(this));
}

template <typename T>
std::size_t Slice<T>::size() const noexcept {
  return sliceLen(this);
}

template <typename T>
std::size_t Slice<T>::length() const noexcept {
  return this->size();
}

template <typename T>
bool Slice<T>::empty() const noexcept {
  return this->size() == 0;
}

template <typename T>
T &Slice<T>::operator[](std::size_t n) const noexcept {
  assert(n < this->size());
  auto ptr = static_cast<char *>(slicePtr(this)) + size_of<T>() * n;
  return *reinterpret_cast<T *>(ptr);
}

template <typename T>
T &Slice<T>::at(std::size_t n) const {
  if (n >= this->size()) {
    panic<std::out_of_range>("rust::Slice index out of range");
  }
  return (*this)[n];
}

template <typename T>
T &Slice<T>::front() const noexcept {
  assert(!this->empty());
  return (*this)[0];
}

template <typename T>
T &Slice<T>::back() const noexcept {
  assert(!this->empty());
  return (*this)[this->size() - 1];
}

template <typename T>
typename Slice<T>::iterator::reference
Slice<T>::iterator::operator*() const noexcept {
  return *static_cast<T *>(this->pos);
}

template <typename T>
typename Slice<T>::iterator::pointer
Slice<T>::iterator::operator->() const noexcept {
  return static_cast<T *>(this->pos);
}

template <typename T>
typename Slice<T>::iterator::reference Slice<T>::iterator::operator[](
    typename Slice<T>::iterator::difference_type n) const noexcept {
  auto ptr = static_cast<char *>(this->pos) + this->stride * n;
  return *reinterpret_cast<T *>(ptr);
}

template <typename T>
typename Slice<T>::iterator &Slice<T>::iterator::operator++() noexcept {
  this->pos = static_cast<char *>(this->pos) + this->stride;
  return *this;
}

template <typename T>
typename Slice<T>::iterator Slice<T>::iterator::operator++(int) noexcept {
  auto ret = iterator(*this);
  this->pos = static_cast<char *>(this->pos) + this->stride;
  return ret;
}

template <typename T>
typename Slice<T>::iterator &Slice<T>::iterator::operator--() noexcept {
  this->pos = static_cast<char *>(this->pos) - this->stride;
  return *this;
}

template <typename T>
typename Slice<T>::iterator Slice<T>::iterator::operator--(int) noexcept {
  auto ret = iterator(*this);
  this->pos = static_cast<char *>(this->pos) - this->stride;
  return ret;
}

template <typename T>
typename Slice<T>::iterator &Slice<T>::iterator::operator+=(
    typename Slice<T>::iterator::difference_type n) noexcept {
  this->pos = static_cast<char *>(this->pos) + this->stride * n;
  return *this;
}

template <typename T>
typename Slice<T>::iterator &Slice<T>::iterator::operator-=(
    typename Slice<T>::iterator::difference_type n) noexcept {
  this->pos = static_cast<char *>(this->pos) - this->stride * n;
  return *this;
}

template <typename T>
typename Slice<T>::iterator Slice<T>::iterator::operator+(
    typename Slice<T>::iterator::difference_type n) const noexcept {
  auto ret = iterator(*this);
  ret.pos = static_cast<char *>(this->pos) + this->stride * n;
  return ret;
}

template <typename T>
typename Slice<T>::iterator Slice<T>::iterator::operator-(
    typename Slice<T>::iterator::difference_type n) const noexcept {
  auto ret = iterator(*this);
  ret.pos = static_cast<char *>(this->pos) - this->stride * n;
  return ret;
}

template <typename T>
typename Slice<T>::iterator::difference_type
Slice<T>::iterator::operator-(const iterator &other) const noexcept {
  auto diff = std::distance(static_cast<char *>(other.pos),
                            static_cast<char *>(this->pos));
  return diff / static_cast<typename Slice<T>::iterator::difference_type>(
                    this->stride);
}

template <typename T>
bool Slice<T>::iterator::operator==(const iterator &other) const noexcept {
  return this->pos == other.pos;
}

template <typename T>
bool Slice<T>::iterator::operator!=(const iterator &other) const noexcept {
  return this->pos != other.pos;
}

template <typename T>
bool Slice<T>::iterator::operator<(const iterator &other) const noexcept {
  return this->pos < other.pos;
}

template <typename T>
bool Slice<T>::iterator::operator<=(const iterator &other) const noexcept {
  return this->pos <= other.pos;
}

template <typename T>
bool Slice<T>::iterator::operator>(const iterator &other) const noexcept {
  return this->pos > other.pos;
}

template <typename T>
bool Slice<T>::iterator::operator>=(const iterator &other) const noexcept {
  return this->pos >= other.pos;
}

template <typename T>
typename Slice<T>::iterator Slice<T>::begin() const noexcept {
  iterator it;
  it.pos = slicePtr(this);
  it.stride = size_of<T>();
  return it;
}

template <typename T>
typename Slice<T>::iterator Slice<T>::end() const noexcept {
  iterator it = this->begin();
  it.pos = static_cast<char *>(it.pos) + it.stride * this->size();
  return it;
}

template <typename T>
void Slice<T>::swap(Slice &rhs) noexcept {
  std::swap(*this, rhs);
}
#endif // CXXBRIDGE1_RUST_SLICE

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

template <typename T>
class Slice<T>::uninit {};
template <typename T>
inline Slice<T>::Slice(uninit) noexcept {}

namespace repr {
using Fat = ::std::array<::std::uintptr_t, 2>;
} // namespace repr

namespace {
template <typename T>
class impl<Slice<T>> final {
public:
  static Slice<T> slice(repr::Fat repr) noexcept {
    Slice<T> slice = typename Slice<T>::uninit{};
    slice.repr = repr;
    return slice;
  }
};
} // namespace
} // namespace cxxbridge1
} // namespace rust

namespace purlin {
  inline namespace v0 {
    namespace internal {
      struct BufferRep;
    }
  }
}

namespace purlin {
inline namespace v0 {
namespace internal {
#ifndef CXXBRIDGE1_STRUCT_purlin$v0$internal$BufferRep
#define CXXBRIDGE1_STRUCT_purlin$v0$internal$BufferRep
struct BufferRep final : public ::rust::Opaque {
  ~BufferRep() = delete;

private:
  friend ::rust::layout;
  struct layout {
    static ::std::size_t size() noexcept;
    static ::std::size_t align() noexcept;
  };
};
#endif // CXXBRIDGE1_STRUCT_purlin$v0$internal$BufferRep

extern "C" {
::std::size_t purlin$v0$internal$cxxbridge1$205$BufferRep$operator$sizeof() noexcept;
::std::size_t purlin$v0$internal$cxxbridge1$205$BufferRep$operator$alignof() noexcept;
} // extern "C"
} // namespace internal
} // namespace v0

namespace ffi {
extern "C" {
void purlin$ffi$cxxbridge1$205$buffer_retain(::purlin::v0::internal::BufferRep const *buffer) noexcept;

void purlin$ffi$cxxbridge1$205$buffer_release(::purlin::v0::internal::BufferRep const *buffer) noexcept;

::std::uint8_t purlin$ffi$cxxbridge1$205$buffer_dtype(::purlin::v0::internal::BufferRep const &buffer) noexcept;

::rust::repr::Fat purlin$ffi$cxxbridge1$205$buffer_dims(::purlin::v0::internal::BufferRep const &buffer) noexcept;

::std::size_t purlin$ffi$cxxbridge1$205$buffer_size_bytes(::purlin::v0::internal::BufferRep const &buffer) noexcept;

::purlin::v0::internal::MemorySpaceRep const *purlin$ffi$cxxbridge1$205$buffer_memory_space(::purlin::v0::internal::BufferRep const &buffer) noexcept;

::purlin::v0::internal::DeviceRep const *purlin$ffi$cxxbridge1$205$buffer_device(::purlin::v0::internal::BufferRep const &buffer) noexcept;

::purlin::v0::internal::EventHeader *purlin$ffi$cxxbridge1$205$buffer_ready_event(::purlin::v0::internal::BufferRep const &buffer) noexcept;

::purlin::v0::internal::EventHeader *purlin$ffi$cxxbridge1$205$buffer_copy_to_host(::purlin::v0::internal::BufferRep const &buffer, ::std::uint8_t *destination, ::std::size_t size_bytes) noexcept;

::purlin::v0::internal::EventHeader *purlin$ffi$cxxbridge1$205$buffer_copy_raw_to_host(::purlin::v0::internal::BufferRep const &buffer, ::std::uint8_t *destination, ::std::size_t offset_bytes, ::std::size_t size_bytes) noexcept;

::purlin::v0::internal::RawBufferRep const *purlin$ffi$cxxbridge1$205$buffer_raw_alias(::purlin::v0::internal::BufferRep const &buffer, ::purlin::v0::internal::StatusRep const *&error) noexcept;

bool purlin$ffi$cxxbridge1$205$buffer_is_deleted(::purlin::v0::internal::BufferRep const &buffer) noexcept;
} // extern "C"
} // namespace ffi

inline namespace v0 {
namespace internal {
::std::size_t BufferRep::layout::size() noexcept {
  return purlin$v0$internal$cxxbridge1$205$BufferRep$operator$sizeof();
}

::std::size_t BufferRep::layout::align() noexcept {
  return purlin$v0$internal$cxxbridge1$205$BufferRep$operator$alignof();
}
} // namespace internal
} // namespace v0

namespace ffi {
void buffer_retain(::purlin::v0::internal::BufferRep const *buffer) noexcept {
  purlin$ffi$cxxbridge1$205$buffer_retain(buffer);
}

void buffer_release(::purlin::v0::internal::BufferRep const *buffer) noexcept {
  purlin$ffi$cxxbridge1$205$buffer_release(buffer);
}

::std::uint8_t buffer_dtype(::purlin::v0::internal::BufferRep const &buffer) noexcept {
  return purlin$ffi$cxxbridge1$205$buffer_dtype(buffer);
}

// Lives as long as the buffer.
::rust::Slice<::std::int64_t const> buffer_dims(::purlin::v0::internal::BufferRep const &buffer) noexcept {
  return ::rust::impl<::rust::Slice<::std::int64_t const>>::slice(purlin$ffi$cxxbridge1$205$buffer_dims(buffer));
}

::std::size_t buffer_size_bytes(::purlin::v0::internal::BufferRep const &buffer) noexcept {
  return purlin$ffi$cxxbridge1$205$buffer_size_bytes(buffer);
}

::purlin::v0::internal::MemorySpaceRep const *buffer_memory_space(::purlin::v0::internal::BufferRep const &buffer) noexcept {
  return purlin$ffi$cxxbridge1$205$buffer_memory_space(buffer);
}

::purlin::v0::internal::DeviceRep const *buffer_device(::purlin::v0::internal::BufferRep const &buffer) noexcept {
  return purlin$ffi$cxxbridge1$205$buffer_device(buffer);
}

::purlin::v0::internal::EventHeader *buffer_ready_event(::purlin::v0::internal::BufferRep const &buffer) noexcept {
  return purlin$ffi$cxxbridge1$205$buffer_ready_event(buffer);
}

::purlin::v0::internal::EventHeader *buffer_copy_to_host(::purlin::v0::internal::BufferRep const &buffer, ::std::uint8_t *destination, ::std::size_t size_bytes) noexcept {
  return purlin$ffi$cxxbridge1$205$buffer_copy_to_host(buffer, destination, size_bytes);
}

::purlin::v0::internal::EventHeader *buffer_copy_raw_to_host(::purlin::v0::internal::BufferRep const &buffer, ::std::uint8_t *destination, ::std::size_t offset_bytes, ::std::size_t size_bytes) noexcept {
  return purlin$ffi$cxxbridge1$205$buffer_copy_raw_to_host(buffer, destination, offset_bytes, size_bytes);
}

// The bytes, or null and an error.
::purlin::v0::internal::RawBufferRep const *buffer_raw_alias(::purlin::v0::internal::BufferRep const &buffer, ::purlin::v0::internal::StatusRep const *&error) noexcept {
  return purlin$ffi$cxxbridge1$205$buffer_raw_alias(buffer, error);
}

bool buffer_is_deleted(::purlin::v0::internal::BufferRep const &buffer) noexcept {
  return purlin$ffi$cxxbridge1$205$buffer_is_deleted(buffer);
}
} // namespace ffi
} // namespace purlin
