// Purlin: how files of arrays are read and written (npy.h, safetensors.h).
//
// ```cpp
// purlin::WriteFileOptions options;  // for WriteNpy (npy.h) and WriteSafetensors (safetensors.h)
// options.is_durable = true;
// const purlin::FileAccess access = purlin::FileAccess::kMapped;  // for ReadNpy and SafetensorsFile::Open
// ```
//
// A path is a sequence of bytes, as the system takes it. Links are followed. A path to anything but a regular file (a
// directory, a pipe, a socket, a device) is refused, naming its kind, also if it takes the file's place meanwhile:
// nothing here waits for another program.
//
// Reading: a file is untrusted, so its content is checked before it is used. Its first bytes are checked before its
// header is read, and its header before the rest. Errors name the file, and errors of its content the byte: kDataLoss,
// the content violates the format; kUnimplemented, it does not, but no buffer can hold it. kAborted: the file became
// shorter or longer while it was read. kResourceExhausted: the host has no memory for its bytes; where the system
// promises memory that it does not have (vm.overcommit_memory = 1), or a control group has less, it may end the process
// instead.
//
// Writing: the bytes go to a temporary file in the same folder, `.purlin-` with two numbers, which only its user can
// open, and which is then renamed. So the file appears as a whole, and after a failure the old file is still there; of
// two writers at once the later one wins. Therefore:
// - A user that may not write the file may not replace it, although the folder might allow that. Nor may a user that
//   cannot make files in the folder (kPermissionDenied). A path that ends in the name of a temporary file is
//   kInvalidArgument.
// - A link stays a link; its target is replaced, or made if there is none.
// - The new file has the permissions of the old one (without set-user-ID), and its user, group and POSIX access control
//   list. Where the writer may not give a file away, the file is the writer's; where the group or the list cannot be
//   kept, the group gets no more rights than all users. Other extended attributes and security labels are those of any
//   new file.
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

/// How the bytes of a file are brought into memory.
enum class FileAccess : std::uint8_t {
  /// All bytes are read, and then copied into the memory of buffers. The caller guarantees nothing about other
  /// processes. This is the default everywhere.
  kRead = 0,
  /// The file is mapped, and only bytes that are used are read. Where alignment and order allow, buffers use the
  /// mapping itself, which ends with the last of them. The caller guarantees that until then no process writes or
  /// truncates the file: if its bytes are written, arrays that must not change do change; if it is truncated, or its
  /// disk or server fails, a thread that touches an array gets a SIGBUS, which ends the process. Renaming, removing,
  /// and replacing it by a rename, as writing does here, are fine.
  kMapped = 1,
};

/// How a file is written.
struct WriteFileOptions {
  /// Whether the bytes, and then the name, are on the disk when the call returns (fsync); otherwise the system writes
  /// them later, and a loss of power may leave an empty file. If the folder cannot be opened for that, the call fails
  /// with a message that says that the file is written whole and in its place.
  bool is_durable = false;
};

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_FILE_OPTIONS_H_
