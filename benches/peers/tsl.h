// The halves of libpeer_tsl.so.
#ifndef PURLIN_BENCHES_PEERS_TSL_H_
#define PURLIN_BENCHES_PEERS_TSL_H_

#include <vector>

#include "op.h"

std::vector<Op> TslEventOps();
std::vector<Op> TslPoolOps();

#endif  // PURLIN_BENCHES_PEERS_TSL_H_
