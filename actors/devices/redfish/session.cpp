// The one session of a device: login, login again, counted attempts; and what error bodies say.
#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>

#include "actors/core/errors.hpp"
#include "actors/devices/redfish/decode.hpp"
#include "actors/devices/redfish/device.hpp"

namespace busbar::devices::redfish {

using core::fault;
using core::make_fault;

namespace {

request plain(http_method method, std::string uri, std::string body = {}) {
  request wanted;
  wanted.method = method;
  wanted.uri = std::move(uri);
  wanted.urgency = priority::command;
  wanted.body = std::move(body);
  wanted.with_session = false;
  return wanted;
}

void collect_messages(json_view list, std::vector<extended_message>& into) {
  for (const json_view& item : list.items()) {
    const auto id = item["MessageId"].text();
    if (!id) continue;
    extended_message message;
    message.id = id->substr(id->rfind('.') == std::string::npos ? 0 : id->rfind('.') + 1);
    message.text = item["Message"].text().value_or("");
    for (const json_view& argument : item["MessageArgs"].items()) {
      message.arguments.push_back(argument.canonical().value_or(""));
    }
    into.push_back(std::move(message));
  }
}

}  // namespace

std::vector<extended_message> messages_of(json_view body) {
  std::vector<extended_message> all;
  collect_messages(body["error"]["@Message.ExtendedInfo"], all);
  collect_messages(body["@Message.ExtendedInfo"], all);
  for (const auto& [key, value] : body.entries()) {
    if (key.size() > 22 && key.ends_with("@Message.ExtendedInfo")) collect_messages(value, all);
  }
  return all;
}

bool has_message(const std::string& body, std::string_view id) {
  const auto document = json_document::parse(body);
  if (!document) return false;
  const auto messages = messages_of(document->root());
  return std::any_of(messages.begin(), messages.end(),
                     [id](const extended_message& m) { return m.id == id; });
}

std::string describe_error(const std::string& body) {
  const auto document = json_document::parse(body);
  if (!document) return body.empty() ? "no body" : "a body that is not JSON";
  std::string words;
  for (const extended_message& message : messages_of(document->root())) {
    words += (words.empty() ? "" : "; ") + message.id + (message.text.empty() ? "" : ": " + message.text);
  }
  if (words.empty()) words = document->root()["error"]["message"].text().value_or("no message");
  return words.substr(0, 400);
}

absl::Status fault_of_answer(const device& on, const request& wanted, const response& answer) {
  if (!answer.status.ok()) return answer.status;
  const std::string what = fmt::format("{} {} on {} answered {} ({})", name_of(wanted.method), wanted.uri,
                                       on.address(), answer.http, describe_error(answer.body));
  if (has_message(answer.body, "PasswordChangeRequired")) {
    return make_fault(fault::CREDENTIAL_CHANGE_REQUIRED, what + "; change the account's password first");
  }
  if (answer.http == 401 || answer.http == 403) {
    return make_fault(fault::BMC_FORBIDDEN, what + "; check the account's role");
  }
  if (has_message(answer.body, "SessionLimitExceeded")) {
    return make_fault(fault::SESSION_LIMIT, what + "; delete stale sessions");
  }
  if (answer.http == 503 || answer.http == 504 || answer.http == 429) {
    return make_fault(fault::BMC_SLOW, what + "; the device is busy: try again");
  }
  return make_fault(fault::BMC_BAD_DATA, what);
}

int device::wrong_logins() const {
  int all = 0;
  for (const auto& [user, count] : wrong_logins_) all += count;
  return all;
}

// Devices say it in different words, if they say it at all.
static bool says_locked(const std::string& body) {
  const auto document = json_document::parse(body);
  if (!document) return false;
  const auto messages = messages_of(document->root());
  return std::any_of(messages.begin(), messages.end(), [](const extended_message& m) {
    return lower_case(m.id).find("locked") != std::string::npos ||
           lower_case(m.text).find("locked") != std::string::npos;
  });
}

static absl::Status refused_login(const device& on, const std::string& user, const std::string& body) {
  if (says_locked(body)) {
    return make_fault(
        fault::CREDENTIAL_LOCKED_OUT,
        fmt::format("{} has locked the account of user {} ({}); wait for its lock-out window before "
                    "the next login",
                    on.address(), user, describe_error(body)),
        user + " let in", user + " locked by the BMC");
  }
  return make_fault(
      fault::CREDENTIAL_FACTORY_REFUSED,
      fmt::format("{} refused the login of user {} ({}); wrong logins by all users together: {} of {}",
                  on.address(), user, describe_error(body), on.wrong_logins(),
                  on.options().wrong_logins_limit));
}

void device::use_basic(const credentials& reader) {
  const std::string plain = reader.user + ":" + reader.password;
  std::string encoded(4 * ((plain.size() + 2) / 3) + 1, '\0');
  const int length =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(encoded.data()),
                      reinterpret_cast<const unsigned char*>(plain.data()), static_cast<int>(plain.size()));
  encoded.resize(static_cast<std::size_t>(length));
  basic_ = "Basic " + encoded;
  basic_user_ = reader.user;
}

void device::password_changed(const credentials& account) {
  if (account.user == login_.user) login_ = account;
}

// Location may be absolute; the path is what we ask again.
static std::string path_of(std::string location) {
  const auto scheme = location.find("://");
  if (scheme == std::string::npos) return location;
  const auto path = location.find('/', scheme + 3);
  return path == std::string::npos ? "" : location.substr(path);
}

// Where sessions are made: the root names it; no login is needed to read that.
static task<absl::StatusOr<std::string>> sessions_uri(std::shared_ptr<device> self) {
  request read = plain(http_method::get, "/redfish/v1");
  const response root = co_await self->send(read);
  if (!root.good()) co_return fault_of_answer(*self, read, root);
  const auto body = json_document::parse(root.body);
  const auto uri = body ? body->root()["Links"]["Sessions"].link() : std::nullopt;
  if (!uri) {
    co_return make_fault(
        fault::BMC_BAD_DATA,
        fmt::format("the service root of {} names no Links.Sessions; no login is possible", self->address()));
  }
  co_return *uri;
}

task<absl::StatusOr<session_facts>> open_session(std::shared_ptr<device> self, credentials login) {
  if (self->wrong_logins() >= self->options_.wrong_logins_limit) {
    co_return make_fault(
        fault::CREDENTIAL_LOCKED_OUT,
        fmt::format("{}: {} wrong logins so far, by all users; no more are tried, so that the BMC does not "
                    "lock out",
                    self->address_, self->wrong_logins()),
        fmt::format("fewer than {} wrong logins", self->options_.wrong_logins_limit),
        std::to_string(self->wrong_logins()));
  }
  if (!self->session_uri_.empty()) {
    request drop = plain(http_method::del, self->session_uri_);
    drop.with_session = false;
    drop.session_token = self->token_;
    self->session_is_gone();
    const response ignored = co_await self->send(drop);  // gone, refused or deleted: we forget it either way
    (void)ignored;
  }
  const absl::StatusOr<std::string> uri = co_await sessions_uri(self);
  if (!uri.ok()) co_return uri.status();

  std::string body =
      json_object({{"UserName", json_quote(login.user)}, {"Password", json_quote(login.password)}});
  request post = plain(http_method::post, *uri, std::move(body));
  const response answer = co_await self->send(post);
  const bool refused =
      answer.status.ok() && (answer.http == 401 || (answer.http == 400 && !answer.body.empty() &&
                                                    has_message(answer.body, "ResourceAtUriUnauthorized")));
  if (refused) {
    ++self->wrong_logins_[login.user];
    co_return refused_login(*self, login.user, answer.body);
  }
  if (!answer.good()) co_return fault_of_answer(*self, post, answer);
  const auto token = header_of(answer.headers, "x-auth-token");
  if (!token || token->empty()) {
    co_return make_fault(
        fault::BMC_BAD_DATA,
        fmt::format("{} accepted the login of {} and gave no X-Auth-Token", self->address_, login.user));
  }
  self->wrong_logins_.erase(login.user);
  self->token_ = *token;
  self->login_ = login;
  self->account_to_change_.clear();
  session_facts facts;
  const auto document = json_document::parse(answer.body);
  const json_view view = document ? document->root() : json_view();
  facts.uri = header_of(answer.headers, "location").value_or(view.link().value_or(""));
  facts.uri = path_of(std::move(facts.uri));
  for (const extended_message& message : messages_of(view)) {
    if (message.id != "PasswordChangeRequired") continue;
    facts.password_change_required = true;
    if (!message.arguments.empty()) self->account_to_change_ = message.arguments.front();
  }
  self->session_uri_ = facts.uri;
  co_return facts;
}

void device::log_in(credentials login, std::function<void(absl::StatusOr<session_facts>)> reply) {
  const auto self = shared_from_this();
  run([self, login, reply] {
    if (self->closed_) return reply(self->closed_fault());
    if (self->logging_in_) {
      return reply(
          make_fault(fault::SESSION_LIMIT,
                     fmt::format("a login on {} is under way already; ask again after it", self->address_)));
    }
    self->begin_login(login, reply);
  });
}

void device::begin_login(const credentials& login,
                         const std::function<void(absl::StatusOr<session_facts>)>& reply) {
  logging_in_ = true;
  const auto self = shared_from_this();
  start<absl::StatusOr<session_facts>>(open_session(self, login),
                                       [self, reply](const absl::StatusOr<session_facts>& result) {
                                         self->login_ended(result);
                                         reply(result);
                                       });
}

callback_of<absl::StatusOr<session_facts>> device::log_in(credentials login) {
  const auto self = shared_from_this();
  return callback_of<absl::StatusOr<session_facts>>(
      [self, login](std::function<void(absl::StatusOr<session_facts>)> reply) {
        self->log_in(login, std::move(reply));
      });
}

}  // namespace busbar::devices::redfish
