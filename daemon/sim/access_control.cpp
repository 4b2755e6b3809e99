#include "daemon/sim/access_control.hpp"

#include <array>
#include <cstdio>

namespace busbar::sim {

namespace {

std::string decode_base64(std::string_view text) {
  static constexpr std::string_view alphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  unsigned buffer = 0;
  int bits = 0;
  for (const char letter : text) {
    const std::size_t digit = alphabet.find(letter);
    if (digit == std::string_view::npos) {
      break;
    }
    buffer = (buffer << 6) | static_cast<unsigned>(digit);
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes.push_back(static_cast<char>((buffer >> bits) & 0xFFU));
    }
  }
  return bytes;
}

std::string hex(std::uint64_t number) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(number));
  return text.data();
}

}  // namespace

access_control::access_control(std::uint64_t seed, instant lockout, instant session_timeout)
    : tokens_(seed), lockout_(lockout), session_timeout_(session_timeout) {}

account* access_control::find(std::string_view name) {
  const auto found = accounts_.find(std::string(name));
  return found == accounts_.end() ? nullptr : &found->second;
}

bool access_control::check_password(const std::string& user, const std::string& password, instant now) {
  account* const known = find(user);
  if (known == nullptr || known->locked_until > now) {
    return false;
  }
  if (known->password != password) {
    if (++known->wrong_logins >= lockout_threshold) {
      known->wrong_logins = 0;
      known->locked_until = now + lockout_;
    }
    return false;
  }
  known->wrong_logins = 0;
  return true;
}

access access_control::authenticate(const http_request& request, instant now) {
  expire(now);
  access result;
  if (const auto token = request.headers.find("x-auth-token"); token != request.headers.end()) {
    result.what = access::verdict::refused;
    for (auto& [id, each] : sessions_) {
      const account* const owner = each.token == token->second ? find(each.user) : nullptr;
      if (owner != nullptr) {
        each.last_used = now;
        return {access::verdict::allowed, each.user, owner->role, id, owner->must_change};
      }
    }
    return result;
  }
  const auto header = request.headers.find("authorization");
  if (header == request.headers.end()) {
    return result;
  }
  result.what = access::verdict::refused;
  if (!header->second.starts_with("Basic ")) {
    return result;
  }
  const std::string login = decode_base64(std::string_view(header->second).substr(6));
  const std::size_t colon = login.find(':');
  if (colon == std::string::npos) {
    return result;
  }
  result.user = login.substr(0, colon);
  if (check_password(result.user, login.substr(colon + 1), now)) {
    const account* const known = find(result.user);
    return {access::verdict::allowed, result.user, known->role, "", known->must_change};
  }
  return result;
}

std::optional<std::string> access_control::open_session(const std::string& user, const std::string& peer,
                                                        instant now) {
  expire(now);
  if (sessions_.size() >= most_sessions) {
    return std::nullopt;
  }
  const std::string id = hex(tokens_.next()).substr(0, 9) + std::to_string(++last_session_);
  sessions_[id] = {user, hex(tokens_.next()) + hex(tokens_.next()), now, peer};
  return id;
}

void access_control::expire(instant now) {
  std::erase_if(sessions_,
                [this, now](const auto& each) { return now - each.second.last_used > session_timeout_; });
}

json access_control::save() const {
  json saved = json::object();
  for (const auto& [name, each] : accounts_) {
    saved[name] = {{"password", each.password}, {"role", each.role}, {"must_change", each.must_change}};
  }
  return saved;
}

void access_control::load(const json& saved) {
  accounts_.clear();
  for (const auto& [name, each] : saved.items()) {
    account& loaded = accounts_[name];
    loaded.password = each.at("password");
    loaded.role = each.at("role");
    loaded.must_change = each.at("must_change");
  }
}

bool may_write(std::string_view role) {
  return role == "Administrator" || role == "Operator";
}
bool may_administer(std::string_view role) {
  return role == "Administrator";
}

}  // namespace busbar::sim
