// Bytes into raw buffers and out of them, for the tests of whatever has raw buffers.
#ifndef PURLIN_TESTS_CPP_RAW_BYTES_H_
#define PURLIN_TESTS_CPP_RAW_BYTES_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "purlin/device.h"
#include "purlin/raw_buffer.h"

namespace purlin {

using Bytes = std::vector<std::uint8_t>;

inline RawBuffer FilledIn(const MemorySpace& space, const Bytes& bytes) {
  RawBuffer memory = RawBuffer::Allocate(space, bytes.size()).value();
  const Status status = memory.CopyFromHost(bytes.data(), 0, bytes.size()).Wait();
  EXPECT_TRUE(status.ok()) << status;
  return memory;
}

inline Bytes BytesIn(const RawBuffer& memory) {
  Bytes bytes(memory.on_device_size_bytes());
  const Status status = memory.CopyToHost(bytes.data(), 0, bytes.size()).Wait();
  EXPECT_TRUE(status.ok()) << status;
  return bytes;
}

}  // namespace purlin

#endif  // PURLIN_TESTS_CPP_RAW_BYTES_H_
