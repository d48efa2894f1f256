// Purlin: how files of arrays are read and written (npy.h, safetensors.h).
//
// A path is a sequence of bytes, as the system takes it. Links are followed. What is no regular file (a directory, a
// pipe, a device) is refused. A file is written under a temporary name in the same directory and then renamed: it is
// there when all of it is, and what was there before stays if that fails.
//
// A file is a stranger's: nothing in it is believed before it is checked. Errors name the file, and those of its
// content the byte: kDataLoss, it is not what the format says; kUnimplemented, it is, but no buffer can hold it.
#ifndef PURLIN_FILE_OPTIONS_H_
#define PURLIN_FILE_OPTIONS_H_

#include <cstdint>

#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

/// How the bytes of a file come into memory.
enum class FileAccess : std::uint8_t {
  /// They are read, all of them, and then copied to where buffers have their memory. Nobody has to promise anything.
  kRead = 0,
  /// They stay in the file, which is mapped: what is not used is not read. Where alignment and order allow, buffers use
  /// the mapping itself, which ends with the last of them. Until then nobody may write or truncate the file: bytes of
  /// arrays would change, or the process get a SIGBUS. Renaming, removing, and replacing it by a rename are fine.
  kMapped = 1,
};

/// How a file is written.
struct WriteFileOptions {
  /// Whether the bytes, and then the name, are on the disk when the call returns (fsync); otherwise the system writes
  /// them when it likes, and a loss of power may leave an empty file.
  bool is_durable = false;
};

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_FILE_OPTIONS_H_
