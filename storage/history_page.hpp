// One page of the history: the samples of many series over a stretch of equal steps, as bytes. Pure. A page
// is found to be whole by its header; each block has its own check, so that damage costs the block it hit and
// nothing else.
//
//   header | directory: (key, offset) by key | blocks: mask, form, values, check
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace busbar::storage {

constexpr std::size_t most_page_steps = 64;

// Of a series' name. Names are not stored: who asks for one knows it.
std::uint64_t history_key(std::string_view name);

struct page_header {
  std::int64_t start_s = 0;  // wall time of the first step
  std::uint32_t step_s = 1;
  std::uint32_t steps = 0;  // up to the last one that any series has a value in
  std::uint32_t lanes = 1;  // values a step: 1 sample, or 3: least, mean, most
  std::uint32_t series = 0;
  std::uint32_t bytes = 0;  // of directory and blocks
};
constexpr std::size_t page_header_size = 40;
constexpr std::size_t page_entry_size = 12;

std::string encode_header(const page_header& header);
// nullopt: no whole header of a page that could be.
std::optional<page_header> decode_header(std::string_view bytes);

struct page_entry {
  std::uint64_t key = 0;
  std::uint32_t offset = 0;  // of its block, from the end of the directory
};
page_entry decode_entry(std::string_view bytes);

// Values of one series: step after step, `lanes` of them a step; a bit of the mask for each step that has
// some.
struct block_values {
  std::uint64_t mask = 0;
  std::vector<double> values;  // lanes x number of bits
};
std::string encode_block(std::uint64_t key, const block_values& block);
// The number of bytes that a block beginning so has; 0: too short to tell.
std::size_t block_size(std::string_view first_bytes);
constexpr std::size_t block_size_bytes = 2;
// nullopt: damaged, or another series' block.
std::optional<block_values> decode_block(std::string_view bytes, std::uint64_t key, std::uint32_t lanes);

// Blocks added in any order; whole() gives header, directory and blocks.
class page_writer {
 public:
  explicit page_writer(page_header header) : header_(header) {}
  void add(std::uint64_t key, const block_values& block);
  std::string whole();

 private:
  page_header header_;
  std::vector<page_entry> directory_;
  std::string blocks_;
};

}  // namespace busbar::storage
