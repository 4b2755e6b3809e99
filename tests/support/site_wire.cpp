#include "tests/support/site_wire.hpp"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>

namespace busbar::test_support {
namespace {

using devices::redfish::http_outcome;
using devices::redfish::transport_error;

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::string content_of(const std::string& path) {
  static std::map<std::string, std::string> read;
  const auto [place, is_new] = read.try_emplace(path);
  if (is_new) {
    std::ifstream file(path, std::ios::binary);
    place->second.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return place->second;
}

sim::http_request to_device(const devices::redfish::http_request& request) {
  sim::http_request out;
  out.method = std::string(devices::redfish::name_of(request.method));
  out.target = request.path;
  out.body = request.body;
  out.peer = "127.0.0.1:40000";
  for (const auto& [name, value] : request.headers) out.headers[lower(name)] = value;
  if (request.parts.empty()) return out;
  const std::string boundary = "busbar-boundary-of-tests";
  out.headers["content-type"] = "multipart/form-data; boundary=" + boundary;
  out.body.clear();
  for (const auto& part : request.parts) {
    out.body += "--" + boundary + "\r\nContent-Disposition: form-data; name=\"" + part.name +
                "\"\r\nContent-Type: " + part.content_type + "\r\n\r\n" +
                (part.file_path.empty() ? part.data : content_of(part.file_path)) + "\r\n";
  }
  out.body += "--" + boundary + "--\r\n";
  return out;
}

std::string host_of(const std::string& address) {
  return address.substr(0, address.find(':'));
}

}  // namespace

// ---- the devices
// ---------------------------------------------------------------------------------------------------------------

std::uint64_t site_wire::request(const std::string& address, sim::http_request what, answer reply) {
  const std::uint64_t id = next_id_++;
  if (sent_) sent_(address, what);
  entry added{id, std::move(what), std::move(reply), {}};
  added.spoilt = mishap_of(address, added.what);
  if (added.spoilt == mishap::answer_lost) added.reply = {};
  lines_[address].queue.push_back(std::move(added));
  serve(address);
  return id;
}

std::optional<site_wire::mishap> site_wire::mishap_of(const std::string& address,
                                                      const sim::http_request& what) {
  if (what.method == "GET" || what.target.find("/Sessions") != std::string::npos) return std::nullopt;
  const auto found = std::find_if(mishaps_.begin(), mishaps_.end(), [&address, &what](const planned& each) {
    return each.address == address && what.target.find(each.part) != std::string::npos;
  });
  if (found == mishaps_.end()) return std::nullopt;
  const mishap result = found->what;
  mishaps_.erase(found);
  return result;
}

void site_wire::serve(const std::string& address) {
  line& at = lines_[address];
  if (at.busy || at.queue.empty()) return;
  at.busy = true;
  // 1 to 8 ms, one in 64 takes 60 ms; the fault slow_bmc multiplies it.
  auto takes = std::chrono::microseconds(choose_(64) == 0 ? 60'000 : 1'000 + choose_(7'000));
  for (const sim::device_identity& each : site_.devices()) {
    if (each.address == address && site_.fault_active(sim::fault_kind::slow_bmc, each.member, now()))
      takes *= 20;
  }
  clock_.after(takes, [this, address] { finish(address); });
}

void site_wire::finish(const std::string& address) {
  line& at = lines_[address];
  if (at.queue.empty()) return;
  entry done = std::move(at.queue.front());
  at.queue.pop_front();
  at.busy = false;
  if (done.spoilt != mishap::request_lost) {
    ++served_;
    sim::http_reply reply;
    reply.status = 204;
    if (dark_.contains(address)) {
      reply.status = 0;
    } else if (done.spoilt != mishap::pretended) {
      reply = site_.handle(address, done.what, now());
    }
    if (told_) told_(address, done.what, reply);
    if (done.reply) done.reply(std::move(reply));
  }
  serve(address);
}

void site_wire::forget(std::uint64_t id) {
  for (auto& [address, at] : lines_) {
    for (entry& each : at.queue) {
      if (each.id == id) each.reply = {};
    }
  }
}

void site_wire::forget_all() {
  mishaps_.clear();
  for (auto& [address, at] : lines_) {
    for (auto each = at.queue.begin(); each != at.queue.end();) {
      each->reply = {};
      const bool begun = at.busy && each == at.queue.begin();
      each = !begun && choose_(2) == 0 ? at.queue.erase(each) : std::next(each);
    }
  }
}

void site_wire::resume() {
  for (auto& [address, at] : lines_) {
    at.busy = false;
    serve(address);
  }
}

std::size_t site_wire::waiting(const std::string& address) const {
  const auto found = lines_.find(address);
  return found == lines_.end() ? 0 : found->second.queue.size();
}

std::string site_wire::certificate_of(const std::string& address) {
  std::string digest(64, 'a');
  std::copy_if(address.begin(), address.end(), digest.begin(), [](char c) { return c != '.'; });
  for (const sim::device_identity& each : site_.devices()) {
    if (each.address == address &&
        site_.fault_active(sim::fault_kind::certificate_changed, each.member, now()))
      digest.back() = 'b';
  }
  return digest;
}

// ---- one daemon's end
// ------------------------------------------------------------------------------------------------------------

void site_transport::send(const std::string& address, devices::redfish::http_request request,
                          devices::redfish::http_callback callback) {
  if (cut_) return;
  const std::string host = host_of(address);
  const std::uint64_t id = next_id_++;
  exchange& opened = open_[id];
  opened.address = host;
  opened.callback = std::move(callback);
  peak_ = std::max(peak_, ++open_at_[host]);
  const std::string certificate = wire_.certificate_of(host);
  const auto self = weak_from_this();
  if (!request.pin.empty() && request.pin != certificate) {
    post([self, id, certificate] {
      http_outcome outcome;
      outcome.error = transport_error::pin_mismatch;
      outcome.reply.certificate_sha256 = certificate;
      if (const auto alive = self.lock()) alive->end(id, std::move(outcome));
    });
    return;
  }
  opened.timer = clock_.after(request.timeout, [self, id] {
    http_outcome outcome;
    outcome.error = transport_error::timeout;
    outcome.detail = "no answer in its time";
    if (const auto alive = self.lock()) alive->end(id, std::move(outcome));
  });
  opened.on_wire = wire_.request(host, to_device(request), [self, id, certificate](sim::http_reply reply) {
    http_outcome outcome;
    if (reply.status == 0) {
      outcome.error = transport_error::unreachable;
      outcome.detail = "connection refused";
    } else {
      outcome.reply.status = reply.status;
      outcome.reply.body = std::move(reply.body);
      outcome.reply.certificate_sha256 = certificate;
      for (auto& [name, value] : reply.headers)
        outcome.reply.headers.emplace_back(lower(name), std::move(value));
    }
    if (const auto alive = self.lock()) alive->end(id, std::move(outcome));
  });
}

void site_transport::end(std::uint64_t id, http_outcome outcome) {
  const auto found = open_.find(id);
  if (found == open_.end() || cut_) return;
  const exchange ended = std::move(found->second);
  open_.erase(found);
  --open_at_[ended.address];
  clock_.cancel(ended.timer);
  wire_.forget(ended.on_wire);
  ended.callback(std::move(outcome));
}

void site_transport::post(std::function<void()> work) {
  if (cut_) return;
  posted_.push_back(std::move(work));
  clock_.after(std::chrono::seconds(0), [self = weak_from_this()] {
    const auto alive = self.lock();
    if (alive == nullptr || alive->cut_ || alive->posted_.empty()) return;
    const std::function<void()> first = std::move(alive->posted_.front());
    alive->posted_.pop_front();
    first();
  });
}

void site_transport::after(std::chrono::milliseconds delay, std::function<void()> work) {
  if (cut_) return;
  clock_.after(delay, [self = weak_from_this(), work = std::move(work)] {
    const auto alive = self.lock();
    if (alive != nullptr && !alive->cut_) work();
  });
}

}  // namespace busbar::test_support
