// Loses 7 bytes.
int main() {
  char* volatile lost = new char[7];
  lost = nullptr;
  static_cast<void>(lost);
}
