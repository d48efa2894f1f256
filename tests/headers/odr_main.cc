// Links odr_a.cc and odr_b.cc, which include all headers with different compiler flags, and runs both.
#include <cstdio>

namespace odr {
int CountFromA();
int CountFromB();
}  // namespace odr

int main() {
  const int a = odr::CountFromA();
  const int b = odr::CountFromB();
  if (a != 1 || b != 1) {
    std::fprintf(stderr, "waiters ran %d and %d times, not once each\n", a, b);
    return 1;
  }
  return 0;
}
