// One half of a program with two abseils: compiled once against each, as NAME, and linked together.
#include <string>

#include "purlin/adapters/absl.h"

// There and back through this abseil; and what abseil says of it between.
purlin::Status NAME(const purlin::Status& status, std::string* said) {
  const absl::Status theirs = purlin::adapters::ToAbsl(status);
  *said = theirs.ToString();
  const purlin::StatusOr<int> ours = purlin::adapters::FromAbsl(absl::StatusOr<int>(theirs));
  return ours.status();
}
