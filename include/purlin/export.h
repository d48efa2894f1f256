// Purlin: symbol visibility.
//
// ```cpp
// class PURLIN_API Tracer {};  // exported by the shared library
// ```
#ifndef PURLIN_EXPORT_H_
#define PURLIN_EXPORT_H_

/// Marks what the shared library exports. Everything else is compiled with hidden visibility.
#define PURLIN_API __attribute__((visibility("default")))

#endif  // PURLIN_EXPORT_H_
