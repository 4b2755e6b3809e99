#include "daemon/busbard/wiring_secrets.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "actors/core/errors.hpp"
#include "actors/core/regular_file.hpp"

namespace busbar::daemon {

daemon_secrets::daemon_secrets(std::shared_ptr<storage::vault> vault, std::string site_dir)
    : vault_(std::move(vault)), site_dir_(std::move(site_dir)) {}

absl::StatusOr<std::string> daemon_secrets::get(const std::string& name) const {
  {
    const std::lock_guard lock(mutex_);
    const auto found = fresh_.find(name);
    if (found != fresh_.end()) return std::string(found->second.reveal());
  }
  auto stored = vault_->get(name);
  if (!stored.ok()) return stored.status();
  return std::string(stored->reveal());
}

absl::StatusOr<std::optional<core::sealed_secret>> daemon_secrets::make(const std::string& name) {
  const auto there = vault_->get(name);
  if (there.ok()) return std::nullopt;
  if (!absl::IsNotFound(there.status())) return there.status();  // damaged is not absent: never overwritten
  const std::lock_guard lock(mutex_);
  const auto [place, is_new] = fresh_.try_emplace(name);
  if (is_new) place->second = storage::generate_password();
  auto sealed = vault_->seal(name, place->second.reveal());
  if (!sealed.ok()) return sealed.status();
  return std::optional<core::sealed_secret>(*std::move(sealed));
}

absl::StatusOr<devices::credentials> daemon_secrets::site_login(const journal::FactoryLogin& login) const {
  const std::filesystem::path relative(login.password_file());
  const bool leaves = relative.is_absolute() || relative.lexically_normal().native().starts_with("..");
  if (login.password_file().empty() || leaves) {
    return core::make_fault(
        core::fault::CREDENTIAL_FACTORY_REFUSED,
        fmt::format("password_file '{}' is not a path inside the site folder", login.password_file()));
  }
  auto read =
      core::read_regular_file((std::filesystem::path(site_dir_) / relative).string(), core::small_file_bytes);
  if (!read.ok()) {
    return core::make_fault(
        core::fault::CREDENTIAL_FACTORY_REFUSED,
        fmt::format("password_file {}: {}", login.password_file(), std::string(read.status().message())));
  }
  std::string password = *std::move(read);
  while (!password.empty() && (password.back() == '\n' || password.back() == '\r')) password.pop_back();
  return devices::credentials{login.user(), std::move(password)};
}

}  // namespace busbar::daemon
