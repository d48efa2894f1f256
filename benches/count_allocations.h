// Purlin: counts heap allocations of a whole process, C++ and Rust alike.
#ifndef PURLIN_BENCHES_COUNT_ALLOCATIONS_H_
#define PURLIN_BENCHES_COUNT_ALLOCATIONS_H_

#include <cstdint>

/// Starts to count from zero. Without counting, an allocation pays one load and a branch.
void StartCountingAllocations();
/// Stops, and answers how many there were, by all threads.
std::uint64_t StopCountingAllocations();

#endif  // PURLIN_BENCHES_COUNT_ALLOCATIONS_H_
