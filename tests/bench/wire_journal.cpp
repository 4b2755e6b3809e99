#include <curl/curl.h>

#include <algorithm>
#include <fstream>

#include "tests/bench/interlock_rig.hpp"

namespace busbar::bench {
namespace {

constexpr std::int64_t kept_ns = 60'000 * ms;

std::size_t drop_body(const char*, std::size_t size, std::size_t count, void*) {
  return size * count;
}

}  // namespace

void wire_journal::read_on() {
  std::ifstream file(path_);
  file.seekg(read_to_);
  std::string line;
  while (std::getline(file, line)) {
    if (file.eof()) break;  // not whole yet
    read_to_ = file.tellg();
    const json each = json::parse(line, nullptr, false);
    if (!each.is_object()) continue;
    if (each.contains("event")) {
      wire_row row;
      row.written = each.value("written_ns", std::int64_t{0});
      row.received = row.written;
      row.address = each.value("event", "");
      row.path = each.value("message", "");
      rows_.push_back(std::move(row));
      continue;
    }
    if (each.contains("written_ns")) {
      const auto number = each.value("number", std::uint64_t{0});
      for (auto known = rows_.rbegin(); known != rows_.rend(); ++known) {
        if (known->number != number) continue;
        known->written = each.value("written_ns", std::int64_t{0});
        break;
      }
      continue;
    }
    rows_.push_back({each.value("number", std::uint64_t{0}), each.value("received_ns", std::int64_t{0}), 0,
                     each.value("device", ""), each.value("path", ""), each.value("act", ""),
                     each.value("argument", ""), each.value("address", "")});
  }
  const std::int64_t oldest = now_ns() - kept_ns;
  while (!rows_.empty() && rows_.front().received < oldest) rows_.pop_front();
}

std::vector<wire_row> wire_journal::since(std::int64_t from_ns, const std::string& device_prefix) {
  const std::lock_guard guard(mutex_);
  read_on();
  std::vector<wire_row> found;
  for (const wire_row& each : rows_) {
    const bool wanted = each.number == 0 || each.device.starts_with(device_prefix);
    if (wanted && (each.received >= from_ns || each.written >= from_ns)) found.push_back(each);
  }
  return found;
}

wire_poster::wire_poster(std::string password) : password_(std::move(password)), multi_(curl_multi_init()) {
  curl_multi_setopt(static_cast<CURLM*>(multi_), CURLMOPT_MAXCONNECTS, 64L);
}

wire_poster::~wire_poster() {
  curl_multi_cleanup(static_cast<CURLM*>(multi_));
}

std::size_t wire_poster::post(const std::vector<wire_post>& what) {
  curl_slist* headers = curl_slist_append(nullptr, "Content-Type: application/json");
  std::vector<CURL*> all;
  for (const wire_post& each : what) {
    CURL* easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_URL, ("https://" + each.address + ":8443" + each.path).c_str());
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
    curl_easy_setopt(easy, CURLOPT_USERPWD, ("root:" + password_).c_str());
    curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, each.body.c_str());
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 10'000L);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &drop_body);
    curl_multi_add_handle(static_cast<CURLM*>(multi_), easy);
    all.push_back(easy);
  }
  int running = 1;
  while (running > 0) {
    curl_multi_perform(static_cast<CURLM*>(multi_), &running);
    if (running > 0) curl_multi_poll(static_cast<CURLM*>(multi_), nullptr, 0, 1000, nullptr);
  }
  std::size_t refused = 0;
  for (CURL* easy : all) {
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    refused += status >= 200 && status < 300 ? 0 : 1;
    curl_multi_remove_handle(static_cast<CURLM*>(multi_), easy);
    curl_easy_cleanup(easy);
  }
  curl_slist_free_all(headers);
  return refused;
}

}  // namespace busbar::bench
