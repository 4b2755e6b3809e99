// The documented example is read as a daemon reads it, and the document's tables are those of the reader: neither can rot.
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <regex>
#include <set>

#include "actors/manifest/field_rules.hpp"
#include "actors/manifest/spec_reader.hpp"
#include "actors/manifest/values.hpp"
#include "actors/node/node_table.hpp"
#include "busbar/journal/spec.pb.h"
#include "daemon/cli/manifest_files.hpp"

namespace busbar::cli {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using keys = std::map<std::string, bool>;  // key to required

// Message to its keys, as the document has them.
std::map<std::string, keys> documented() {
  std::map<std::string, keys> found;
  std::ifstream in(BUSBAR_SOURCE "/deploy/docs/manifest.md");
  const std::regex heading("## ([A-Za-z]+)");
  const std::regex row(R"(\| `([a-z0-9_]+)` \| (yes|no) \|.*)");
  std::string message;
  std::smatch parts;
  for (std::string line; std::getline(in, line);) {
    if (std::regex_match(line, parts, heading)) message = parts[1];
    if (std::regex_match(line, parts, row)) found[message][parts[1]] = parts[2] == "yes";
  }
  return found;
}

// The keys that the reader takes, from the descriptors and the reader's own rules.
void collect(const Descriptor& type, std::map<std::string, keys>& found) {
  const std::string& message = type.name();
  if (found.contains(message)) return;
  keys& own = found[message];
  for (const manifest::field_rule& rule : manifest::rules_of(message)) own[std::string(rule.key)] = rule.required;
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (!manifest::is_reached_by_spread_key(message, field.name())) own.try_emplace(field.name(), false);
    const FieldDescriptor* value = field.is_map() ? field.message_type()->map_value() : &field;
    if (value->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE || value->message_type()->file() != type.file()) continue;
    const Descriptor& inner = *value->message_type();
    const FieldDescriptor* through = manifest::transparent_field(inner);
    if (through == nullptr) {
      collect(inner, found);
    } else if (!through->is_map()) {
      collect(*through->message_type(), found);
    }
  }
}

std::vector<manifest::source_file> example_files() {
  std::vector<std::string> errors;
  std::vector<manifest::source_file> files;
  for (const v1::ManifestFile& file : read_manifest_files({BUSBAR_SOURCE "/deploy/config/site"}, errors))
    files.push_back({file.path(), file.content()});
  EXPECT_TRUE(errors.empty());
  return files;
}

TEST(site_example, is_read_without_an_error) {
  const manifest::read_result read = manifest::read_spec(example_files());
  for (const manifest::spec_error& error : read.errors) ADD_FAILURE() << manifest::to_text(error);
  ASSERT_EQ(read.racks.size(), 1U);
  ASSERT_EQ(read.plants.size(), 1U);
  EXPECT_EQ(read.racks[0].suites_size(), 2);
}

TEST(site_documentation, has_every_key_and_says_which_are_required) {
  std::map<std::string, keys> known;
  for (const Descriptor* type : {journal::Manifest::descriptor(), journal::Sku::descriptor(),
                                 journal::Baseline::descriptor(), journal::Suite::descriptor(), journal::PlantSpec::descriptor()}) {
    collect(*type, known);
  }
  // What the table of rules cannot say: PartSpec.pcie spreads over two fields.
  known["PartSpec"].try_emplace("pcie", false);
  EXPECT_EQ(known["PlantSpec"].erase("digest"), 1U);  // made by the reader; as a key it is refused
  std::map<std::string, keys> told = documented();
  EXPECT_EQ(told.erase("Deadlines"), 1U);  // names, not keys of a message
  for (const auto& [message, own] : known) {
    ASSERT_TRUE(told.contains(message)) << message;
    EXPECT_EQ(told.at(message), own) << message;
  }
  EXPECT_EQ(told.size(), known.size());
}

TEST(site_documentation, has_every_deadline_and_says_which_are_required) {
  // Of a baseline without any, the reader names all that it needs; a name that it does not know is an error too.
  std::vector<manifest::source_file> files = example_files();
  for (manifest::source_file& file : files) {
    if (file.path != "baseline.yaml") continue;
    const std::size_t begin = file.content.find("deadlines:\n");
    const std::size_t end = file.content.find("staging:");
    ASSERT_TRUE(begin < end && end != std::string::npos);
    file.content.replace(begin, end - begin, "deadlines: {host_on: 1m}\n");
  }
  std::set<std::string> needed;
  for (const manifest::spec_error& error : manifest::read_spec(files).errors) {
    ASSERT_TRUE(error.key_path.starts_with("deadlines.")) << manifest::to_text(error);
    needed.insert(error.key_path.substr(10));
  }
  const keys told = documented().at("Deadlines");
  EXPECT_EQ(told.size(), 22U);
  for (const auto& [name, required] : told) {
    EXPECT_EQ(needed.contains(name), required) << name;
    EXPECT_FALSE(manifest::check_deadline_name(name)) << name;
  }
  for (const std::string& name : needed) EXPECT_TRUE(told.contains(name)) << name;
  for (const auto kind : {journal::COMPUTE_TRAY, journal::SWITCH_TRAY, journal::POWER_SHELF,
                          journal::RACK_CONTROLLER}) {
    for (const node::arrow& arrow : node::arrows_of(kind)) EXPECT_TRUE(told.contains(std::string(arrow.deadline_key)));
  }
}

}  // namespace
}  // namespace busbar::cli
