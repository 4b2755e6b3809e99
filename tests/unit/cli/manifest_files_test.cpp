// Files that a person gives by accident: each is refused by name, and nothing hangs or is sent.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "daemon/cli/manifest_files.hpp"
#include "tests/unit/cli/fake_daemon.hpp"

namespace busbar::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::fake_daemon;
using ::testing::HasSubstr;
using testing::outcome;
using testing::site;

struct accident {
  std::string name;  // of the file
  std::string told;
  std::function<void(const fs::path&)> make;
};

void write(const fs::path& path, std::string_view content) {
  std::ofstream(path, std::ios::binary) << content;
}

const std::vector<accident>& accidents() {
  static const std::vector<accident> all{
      {"pipe.yaml", "no regular file", [](const fs::path& path) { ASSERT_EQ(mkfifo(path.c_str(), 0600), 0); }},
      {"loop.yaml", "symbolic links", [](const fs::path& path) { fs::create_symlink(path, path); }},
      {"dangling.yaml", "No such file", [](const fs::path& path) { fs::create_symlink("/nowhere/x", path); }},
      {"device.yaml", "no regular file", [](const fs::path& path) { fs::create_symlink("/dev/zero", path); }},
      {"huge.yaml", "larger than 16 MiB",
       [](const fs::path& path) {
         write(path, "");
         fs::resize_file(path, std::uintmax_t{64} << 30U);
       }},
      {"binary.yaml", "not UTF-8 text: byte 5 of 8", [](const fs::path& path) { write(path, "name\xff\xfe\x01\x02"); }},
      {"nul.yaml", "not UTF-8 text: byte 2 of 3", [](const fs::path& path) { write(path, std::string_view("a\0b", 3)); }},
      {"overlong.yaml", "not UTF-8 text: byte 1", [](const fs::path& path) { write(path, "\xc0\xaf"); }},
      {"surrogate.yaml", "not UTF-8 text: byte 1", [](const fs::path& path) { write(path, "\xed\xa0\x80"); }},
      {"cut.yaml", "not UTF-8 text: byte 2", [](const fs::path& path) { write(path, "a\xe2\x82"); }},
      {"na\xffme.yaml", "na\\xffme.yaml: its name is not UTF-8", [](const fs::path& path) { write(path, "a: b\n"); }},
  };
  return all;
}

struct manifest_files : ::testing::Test {
  site here;
  fake_daemon r01{here.folder(), "r01"};
  fs::path folder = here.folder() / "site";
  manifest_files() { fs::create_directories(folder); }

  void expect_refused(const std::string& what, const accident& one) {
    for (const char* verb : {"apply", "diff"}) {
      const outcome refused = here.busbar({"manifest", verb, what});
      EXPECT_EQ(refused.code, exit_code::usage) << one.name;
      EXPECT_EQ(refused.out, "");
      EXPECT_THAT(refused.err, HasSubstr(one.told)) << one.name;
      const bool shown_as_it_is = one.name.find('\xff') == std::string::npos;
      EXPECT_THAT(refused.err, HasSubstr(shown_as_it_is ? one.name : one.told)) << one.name;
      EXPECT_THAT(r01.files, ::testing::IsEmpty());
    }
  }
};

TEST_F(manifest_files, that_are_none_are_refused_by_name) {
  for (const accident& one : accidents()) {
    const fs::path path = folder / one.name;
    one.make(path);
    expect_refused(path.string(), one);
    expect_refused(folder.string(), one);  // alone in a folder
    write(folder / "a.yaml", "a: b\n");
    expect_refused(folder.string(), one);  // and beside a good one
    fs::remove(path);
    fs::remove(folder / "a.yaml");
  }
}

TEST_F(manifest_files, are_all_named_at_once) {
  write(folder / "a.yaml", "a\xff");
  write(folder / "b.yaml", "b\xff");
  EXPECT_THAT(here.busbar({"manifest", "apply", folder.string(), "/nowhere/c.yaml"}).err,
              AllOf(HasSubstr("a.yaml"), HasSubstr("b.yaml"), HasSubstr("/nowhere/c.yaml")));
}

TEST_F(manifest_files, have_a_limit_together) {
  const std::string half(manifest_bytes / 2, '#');
  write(folder / "a.yaml", half);
  write(folder / "b.yaml", half);
  const outcome over = here.busbar({"manifest", "apply", folder.string()});
  EXPECT_EQ(over.code, exit_code::usage);
  EXPECT_THAT(over.err, AllOf(HasSubstr("b.yaml"), HasSubstr("16 MiB")));
}

TEST_F(manifest_files, of_a_linked_or_looping_folder_are_not_guessed_at) {
  write(folder / "a.yaml", "a: b\n");
  fs::create_symlink(folder, folder / "again");
  const outcome loop = here.busbar({"manifest", "apply", folder.string()});
  EXPECT_EQ(loop.code, exit_code::usage);
  EXPECT_THAT(loop.err, AllOf(HasSubstr("again"), HasSubstr("link to a folder")));
}

TEST_F(manifest_files, with_any_text_and_by_a_link_are_read) {
  write(folder / "real.yaml", "name: \xc3\xa9\xe2\x82\xac\xf0\x9f\x94\x8c\n");
  fs::create_symlink("real.yaml", folder / "link.yml");
  fs::create_directories(folder / ".git");
  write(folder / ".git" / "x.yaml", "\xff");
  std::vector<std::string> errors;
  EXPECT_THAT(read_manifest_files({folder.string()}, errors), ::testing::SizeIs(2));
  EXPECT_THAT(errors, ::testing::IsEmpty());
}

}  // namespace
}  // namespace busbar::cli
