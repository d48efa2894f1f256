// Purlin: how files of arrays are read and written (npy.h, safetensors.h).
//
// ```cpp
// purlin::WriteFileOptions options;  // for WriteNpy (npy.h) and WriteSafetensors (safetensors.h)
// options.is_durable = true;
// const purlin::FileAccess access = purlin::FileAccess::kMapped;  // for ReadNpy and SafetensorsFile::Open
// ```
//
// A path is a sequence of bytes, as the system takes it. Links are followed. What is no regular file (a directory, a
// pipe, a socket, a device) is refused, by name of its kind, also if it takes the file's place meanwhile: nothing here
// waits for another program.
//
// Reading: a file is a stranger's, so nothing in it is believed before it is checked. Its first bytes are looked at
// before its header is read, and its header before the rest. Errors name the file, and those of its content the byte:
// kDataLoss, it is not what the format says; kUnimplemented, it is, but no buffer can hold it. kAborted: the file
// became shorter or longer while it was read. kResourceExhausted: the host has no memory for its bytes; where the
// system promises memory that it does not have (vm.overcommit_memory = 1), or a control group has less, it may end the
// process instead.
//
// Writing: the bytes go to a temporary file in the same folder, `.purlin-` with two numbers, which only its user can
// open, and which is then renamed. So the file is there when all of it is, and what was there before stays if that
// fails; of two writers at once the later one wins. Therefore:
// - A user that may not write the file may not replace it, although the folder might allow that, nor may a user that
//   cannot make files in the folder (kPermissionDenied). A path that ends in the name of a temporary file is
//   kInvalidArgument.
// - A link stays a link; what it leads to is replaced, or made if nothing is there.
// - The new file has the permissions of the old one (without set-user-ID), and its user, group and POSIX access control
//   list. Where the writer may not give a file away, the file is the writer's; where the group or the list cannot be
//   kept, the group may do no more than everybody. Other extended attributes and security labels are those of any new
//   file.
// - Other hard links to the old file, and processes that have it open or mapped, keep the old content.
// - A file that cannot be renamed over, such as one that is mounted by itself into a container, is not written
//   (kFailedPrecondition).
// - A temporary file whose writer was killed is removed by the next writer in its folder (if that has more than a
//   thousand files, by one of the next), except where the file system has no locks (flock).
// - Writing more than RLIMIT_FSIZE allows raises SIGXFSZ, which ends a process that does not ignore it.
//
// When memory is so short that small allocations fail, the process ends: SECURITY.md, "When memory is short".
#ifndef PURLIN_FILE_OPTIONS_H_
#define PURLIN_FILE_OPTIONS_H_

#include <cstdint>

#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

/// How the bytes of a file come into memory.
enum class FileAccess : std::uint8_t {
  /// They are read, all of them, and then copied to where buffers have their memory. No process promises anything.
  /// This is the default everywhere.
  kRead = 0,
  /// They stay in the file, which is mapped: what is not used is not read. Where alignment and order allow, buffers use
  /// the mapping itself, which ends with the last of them. The caller promises that until then nobody writes or
  /// truncates the file, in this process or another one: if its bytes are written, arrays change that are said not to;
  /// if it is truncated, or its disk or server fails, a thread that touches an array gets a SIGBUS, which ends the
  /// process.
  /// Renaming, removing, and replacing it by a rename, as writing does here, are fine.
  kMapped = 1,
};

/// How a file is written.
struct WriteFileOptions {
  /// Whether the bytes, and then the name, are on the disk when the call returns (fsync); otherwise the system writes
  /// them when it likes, and a loss of power may leave an empty file. Where the folder cannot be opened for that, the
  /// call fails with a message that says that the file is written whole and in its place.
  bool is_durable = false;
};

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_FILE_OPTIONS_H_
