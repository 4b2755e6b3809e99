#include "actors/devices/modbus/map_device.hpp"

#include <fmt/format.h>

#include <iterator>
#include <utility>

namespace busbar::devices::modbus {

// Shared by the reads of one poll; all calls come on the loop's thread.
struct map_device::gathering {
  std::size_t open = 0;
  std::size_t answered = 0;
  point_batch batch;
  absl::Status failure;
  batch_callback reply;
};

map_device::map_device(std::shared_ptr<link> wire, register_map map, clock_ns clock)
    : wire_(std::move(wire)), map_(std::move(map)), clock_(std::move(clock)) {}

void map_device::read(poll_class polled, std::chrono::milliseconds deadline, batch_callback reply) {
  const std::vector<request> reads = plan_reads(map_, polled);
  if (reads.empty()) {
    reply(point_batch());
    return;
  }
  auto all = std::make_shared<gathering>();
  all->open = reads.size();
  all->reply = std::move(reply);
  const priority urgency = polled == poll_class::fast ? priority::safety : priority::telemetry;
  for (const request& one : reads) {
    wire_->transact(one, urgency, deadline,
                    [self = shared_from_this(), all, one](absl::StatusOr<std::vector<std::uint16_t>> words) {
                      if (words.ok()) {
                        ++all->answered;
                        point_batch part = decode(self->map_, one, *words, self->clock_());
                        all->batch.bad += part.bad;
                        std::move(part.points.begin(), part.points.end(),
                                  std::back_inserter(all->batch.points));
                      } else {
                        all->failure = words.status();
                      }
                      if (--all->open != 0) return;
                      if (all->answered == 0) {
                        all->reply(all->failure);
                      } else {
                        all->reply(std::move(all->batch));
                      }
                    });
  }
}

void map_device::write(const std::string& point, double value, std::chrono::milliseconds deadline,
                       done reply) {
  auto wanted = encode_write(map_, point, value);
  if (!wanted.ok()) {
    reply(wanted.status());
    return;
  }
  const request written = *wanted;
  wire_->transact(written, priority::command, deadline,
                  [self = shared_from_this(), point, value, written, deadline,
                   reply = std::move(reply)](const absl::StatusOr<std::vector<std::uint16_t>>& answer) {
                    // A refusal is an answer; a lost reply is none, and the register tells.
                    const bool unsure =
                        absl::IsDeadlineExceeded(answer.status()) || absl::IsUnavailable(answer.status());
                    if (!answer.ok() && !unsure) {
                      reply(answer.status());
                      return;
                    }
                    self->read_back(point, value, written, deadline, reply);
                  });
}

void map_device::read_back(const std::string& point, double value, const request& written,
                           std::chrono::milliseconds deadline, const done& reply) {
  request look;
  look.unit = written.unit;
  look.address = written.address;
  look.count = static_cast<std::uint16_t>(written.values.size());
  wire_->transact(
      look, priority::command, deadline,
      [self = shared_from_this(), point, value, look,
       reply](const absl::StatusOr<std::vector<std::uint16_t>>& words) {
        if (!words.ok()) {
          reply(words.status());
          return;
        }
        const point_batch read = decode(self->map_, look, *words, self->clock_());
        for (const named_point& one : read.points) {
          if (one.name != point) continue;
          if (one.reading.value.has_value() &&
              reads_back(*self->map_.find(point), value, *one.reading.value)) {
            reply(absl::OkStatus());
            return;
          }
          reply(absl::AbortedError(fmt::format(
              "{}: {} was set to {} {} and reads {}", self->map_.name, point, value, one.reading.unit,
              one.reading.value.has_value() ? fmt::format("{}", *one.reading.value) : one.reading.raw)));
          return;
        }
        reply(absl::InternalError(
            fmt::format("{}: {} is not among the words read back", self->map_.name, point)));
      });
}

}  // namespace busbar::devices::modbus
