// The vault and the site's password files behind one door.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "actors/node/secret_source.hpp"
#include "storage/vault.hpp"

namespace busbar::daemon {

class daemon_secrets final : public node::secret_source {
 public:
  daemon_secrets(std::shared_ptr<storage::vault> vault, std::string site_dir);

  absl::StatusOr<std::string> get(const std::string& name) const override;
  absl::StatusOr<std::optional<core::sealed_secret>> make(const std::string& name) override;
  absl::StatusOr<devices::credentials> site_login(const journal::FactoryLogin& login) const override;

 private:
  const std::shared_ptr<storage::vault> vault_;
  const std::string site_dir_;
  mutable std::mutex mutex_;
  // Made, sealed, and on their way into the journal: kept until the daemon ends, so that a repeated make
  // gives the same.
  std::map<std::string, storage::secret> fresh_;
};

}  // namespace busbar::daemon
