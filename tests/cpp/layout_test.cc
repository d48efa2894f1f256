// The memory that both languages touch, as C++ sees it, against what Rust says of it.
#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <sstream>
#include <string>

#include "purlin/internal/abi.h"

namespace purlin::internal {
namespace {

std::map<std::string, std::size_t> ThisSide() {
  return {
      {"EventHeader.size", sizeof(EventHeader)},
      {"EventHeader.align", alignof(EventHeader)},
      {"EventHeader.word", offsetof(EventHeader, word)},
      {"EventHeader.refs", offsetof(EventHeader, refs)},
      {"EventHeader.flags", offsetof(EventHeader, flags)},
      {"EventHeader.payload_offset", offsetof(EventHeader, payload_offset)},
      {"EventHeader.vtable", offsetof(EventHeader, vtable)},
      {"EventHeader.error", offsetof(EventHeader, error)},
      {"EventVTable.size", sizeof(EventVTable)},
      {"EventVTable.abi_size", offsetof(EventVTable, abi_size)},
      {"EventVTable.free", offsetof(EventVTable, free)},
      {"EventVTable.payload_type", offsetof(EventVTable, payload_type)},
      {"EventCell.size", sizeof(EventCell)},
      {"EventCell.label", offsetof(EventCell, label)},
      {"EventCell.file", offsetof(EventCell, file)},
      {"EventCell.line", offsetof(EventCell, line)},
      {"EventCell.born_ms", offsetof(EventCell, born_ms)},
      {"EventCell.context", offsetof(EventCell, context)},
      {"ThreadState.size", sizeof(ThreadState)},
      {"ThreadState.depth", offsetof(ThreadState, depth)},
      {"ThreadState.deferred", offsetof(ThreadState, deferred)},
      {"ThreadState.context", offsetof(ThreadState, context)},
      {"ThreadState.now_ms", offsetof(ThreadState, now_ms)},
      {"ThreadState.lists", offsetof(ThreadState, lists)},
      {"ThreadState.running", offsetof(ThreadState, running)},
      {"FreeList.size", sizeof(FreeList)},
      {"FreeList.head", offsetof(FreeList, head)},
      {"FreeList.count", offsetof(FreeList, count)},
      {"FreeList.limit", offsetof(FreeList, limit)},
      {"kLinkOffset", kLinkOffset},
      {"Waiter.size", sizeof(Waiter)},
      {"Waiter.next", offsetof(Waiter, next)},
      {"Waiter.invoke", offsetof(Waiter, invoke)},
      {"TaskNode.size", sizeof(TaskNode)},
      {"TaskNode.align", alignof(TaskNode)},
      {"TaskNode.next", offsetof(TaskNode, next)},
      {"TaskNode.invoke", offsetof(TaskNode, invoke)},
      {"TaskNode.label", offsetof(TaskNode, label)},
      {"TaskNode.storage", offsetof(TaskNode, storage)},
  };
}

std::map<std::string, std::size_t> RustSide() {
  std::map<std::string, std::size_t> layout;
  std::istringstream lines(RustAbiLayout());
  for (std::string line; std::getline(lines, line);) {
    const std::size_t equals = line.find('=');
    layout[line.substr(0, equals)] = std::stoul(line.substr(equals + 1));
  }
  return layout;
}

TEST(LayoutTest, BothSidesAgree) {
  std::printf("%s", RustAbiLayout().c_str());
  EXPECT_EQ(RustSide(), ThisSide());
}

TEST(LayoutTest, LinesAreNameEqualsNumber) {
  std::istringstream lines(RustAbiLayout());
  for (std::string line; std::getline(lines, line);) {
    EXPECT_NE(line.find('='), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace purlin::internal
