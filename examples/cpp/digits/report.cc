#include "report.h"

#include <algorithm>

#include "purlin/device.h"
#include "text.h"

namespace digits {
namespace {

double Seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

double Percent(double part, double whole) { return 100 * part / whole; }

std::uint64_t PeakBytes(const purlin::Device& device) {
  std::uint64_t bytes = 0;
  for (const purlin::MemorySpace& space : device.memory_spaces()) bytes += space.Stats().peak_bytes_in_use;
  return bytes;
}

}  // namespace

std::string Report(const purlin::Client& client, const Result& result) {
  const std::vector<purlin::Device> devices = client.devices();
  const double seconds = std::max(Seconds(result.wall), 1e-9);
  std::string text = "Softmax classifier of handwritten digits\n\n";
  text += Format("  platform    %s, %zu device%s\n", std::string(client.platform_name()).c_str(), devices.size(),
                 devices.size() == 1 ? "" : "s");
  text += Format("  runner      %s\n", client.runner().Describe().c_str());
  text += Format("  training    %zu images, %d step%s of %zu, seed %llu\n", result.training_images, result.steps,
                 result.steps == 1 ? "" : "s", result.images_per_step, static_cast<unsigned long long>(result.seed));
  text += Format("  accuracy    %.2f %% (%zu of %zu held-out images)\n",
                 Percent(static_cast<double>(result.correct), static_cast<double>(result.held_out_images)),
                 result.correct, result.held_out_images);
  text += Format("  speed       %.0f steps/s (%.3f s)\n", result.steps / seconds, seconds);
  text += Format("  checksum    %016llx (FNV-1a of the weights)\n\n", static_cast<unsigned long long>(result.checksum));

  text += Format("  %-10s  %11s  %9s  %11s\n", "device", "peak memory", "busy", "utilisation");
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const double busy = Seconds(result.busy[i]);
    text += Format("  %-10s  %7.1f KiB  %6.1f ms  %9.1f %%\n", devices[i].DebugString().c_str(),
                   static_cast<double>(PeakBytes(devices[i])) / 1024, busy * 1000, Percent(busy, seconds));
  }
  return text;
}

}  // namespace digits
