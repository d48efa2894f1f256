#include "evaluation.h"

#include <cstdint>
#include <utility>

#include "purlin/buffer.h"
#include "purlin/device.h"
#include "purlin/dtype.h"
#include "purlin/event.h"
#include "purlin/executor.h"
#include "purlin/status.h"

namespace digits {

purlin::StatusOr<std::size_t> CountCorrect(const purlin::Client& client, const purlin::RawBuffer& weights,
                                           const std::vector<Example>& examples) {
  const std::size_t count = examples.size();
  std::vector<float> pixels;  // [count, kPixels]
  pixels.reserve(count * kPixels);
  for (const Example& example : examples) pixels.insert(pixels.end(), example.pixels, example.pixels + kPixels);

  // Where functions of the host reach it on every platform.
  const purlin::StatusOr<purlin::MemorySpace> pinned = client.devices()[0].memory_space("pinned_host");
  if (!pinned.ok()) return pinned.status();
  const purlin::MemorySpace& memory = *pinned;
  const purlin::StatusOr<purlin::Buffer> images =
      purlin::Buffer::FromHost(pixels.data(), pixels.size() * sizeof(float), purlin::kDTypeOf<float>,
                               {static_cast<std::int64_t>(count), static_cast<std::int64_t>(kPixels)}, memory,
                               purlin::HostBufferSemantics::kImmutableUntilTransferCompletes);
  if (!images.ok()) return images.status();
  // From here on no path returns before the images have been transferred: `pixels` must stay.
  const purlin::Event uploaded = images->ready_event();

  std::vector<std::int32_t> predictions(count);
  const std::size_t size_bytes = count * sizeof(std::int32_t);
  const purlin::StatusOr<purlin::RawBuffer> input = images->RawAlias();
  const purlin::StatusOr<purlin::RawBuffer> model = purlin::RawBuffer::Allocate(memory, kWeightBytes);
  const purlin::StatusOr<purlin::RawBuffer> output = purlin::RawBuffer::Allocate(memory, size_bytes);
  purlin::Status status;
  for (const auto* buffer : {&input, &model, &output}) status.Update(buffer->status());

  if (status.ok()) {
    purlin::EventPromise promise("predicted");
    purlin::Event predicted = promise.event();
    auto predict = [from = *input, model = *model, to = *output, count,
                    promise = std::move(promise)](const purlin::Status& copied) mutable {
      const auto* image = static_cast<const float*>(from.host_pointer());
      auto* classes = static_cast<std::int32_t*>(to.host_pointer());
      for (std::size_t i = 0; copied.ok() && i < count; ++i, image += kPixels) {
        classes[i] = Predict(static_cast<const float*>(model.host_pointer()), image);
      }
      promise.Set(copied);
    };
    status = client.runner().ScheduleWhenReady({uploaded, weights.CopyTo(*model)}, std::move(predict), "predict");
    if (!status.ok()) predicted = purlin::Event::Error(status);
    status = output->CopyToHost(predictions.data(), 0, size_bytes, {predicted}).Wait();
  }
  status.Update(uploaded.Wait());
  if (!status.ok()) return status;

  std::size_t correct = 0;
  for (std::size_t i = 0; i < count; ++i) correct += predictions[i] == examples[i].label ? 1U : 0U;
  return correct;
}

}  // namespace digits
