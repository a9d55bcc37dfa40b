// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/source/tar_dataset.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../temporary_folder.hpp"

using namespace lockstep;
using namespace lockstep_test;

namespace {

std::string octal(std::size_t value, std::size_t digits) {
  std::string out(digits, '0');
  for (; value > 0; value >>= 3) out[--digits] = static_cast<char>('0' + (value & 7));
  return out;
}
/// Writes the checksum of the header at the beginning of a text.
void sign(std::string& text) {
  text.replace(148, 8, 8, ' ');
  std::size_t sum = 0;
  for (char c : text.substr(0, 512)) sum += static_cast<unsigned char>(c);
  text.replace(148, 8, octal(sum, 6) + '\0' + ' ');
}
std::string member(std::string const& name, std::string const& data, char type = '0', std::string size = "") {
  std::string header(512, '\0');
  header.replace(0, name.size(), name);
  header.replace(124, 12, size.empty() ? octal(data.size(), 11) + '\0' : size);
  header[156] = type;
  header.replace(257, 8,
                 std::string("ustar\0"
                             "00",
                             8));
  sign(header);
  return header + data + std::string((512 - data.size() % 512) % 512, '\0');
}
std::string const end(1024, '\0');
std::string text(std::vector<std::uint8_t> const& bytes) { return {bytes.begin(), bytes.end()}; }

struct Archive : TemporaryFolder {
  data::TarDataset open(std::string const& bytes, data::TarIndex index = data::TarIndex::memory) const {
    write_file(*this / "a.tar", bytes);
    return data::TarDataset(*this / "a.tar", index);
  }
};
std::string samples() {
  return member("train/", "", '5') + member("train/0001.jpg", "image") + member("train/0001.cls", "7") +
         member("train/0002.seg.png", std::string(700, 'x')) + member("train/0002.cls", "") +
         member("train/.hidden", "no") + member("readme", "text") + end;
}

}  // namespace

TEST_CASE("files with one key form a sample, wherever they are; no file may appear twice") {
  Archive const archive;
  auto const tar = archive.open(samples());
  REQUIRE(tar.size() == 3);
  CHECK(tar.get(0).key == "train/0001");
  CHECK(text(tar.get(0).at("jpg")) == "image");
  CHECK(text(tar.get(0).at("cls")) == "7");
  CHECK(tar.get(1).at("seg.png").size() == 700);
  CHECK(tar.get(1).at("cls").empty());
  CHECK(tar.get(2).key == "readme");
  auto const separated_members = archive.open(member("1.a", "x") + member("2.a", "y") + member("1.b", "z") + end);
  CHECK(separated_members.size() == 2);
  CHECK(text(separated_members.get(0).at("b")) == "z");
  CHECK_THROWS_WITH_AS(archive.open(member("1.a", "x") + member("1.a", "y") + end),
                       doctest::Contains("holds \"1.a\" twice"), DataError);
  CHECK(tar.name(1) == "train/0002 in " + archive / "a.tar");
  CHECK_THROWS_WITH_AS(static_cast<void>(tar.get(0).at("png")),
                       "the sample \"train/0001\" has no member .png; it has jpg, cls", DataError);
}

TEST_CASE("long names and sizes in GNU and pax formats") {
  Archive const archive;
  auto const long_name = std::string(150, 'd') + "/key.bin";
  auto const base_256 = std::string("\x80\0\0\0\0\0\0\0\0\0\0\x03", 12);
  auto const pax = [](std::string const& key, std::string const& value) {
    auto const body = key + "=" + value + "\n";
    auto length = body.size() + 3;
    if (std::to_string(length).size() == 3) ++length;
    return std::to_string(length) + " " + body;
  };
  auto const tar =
      archive.open(member("././@LongLink", long_name + '\0', 'L') + member("short", "abc", '0', base_256) +
                   member("pax", pax("path", "p/" + long_name) + pax("size", "5") + pax("mtime", "1.5"), 'x') +
                   member("short", "12345", '0', std::string(11, '0') + '\0') + member("z.bin", "z") + end);
  REQUIRE(tar.size() == 3);
  CHECK(tar.get(0).key + ".bin" == long_name);
  CHECK(text(tar.get(0).at("bin")) == "abc");
  CHECK(tar.get(1).key + ".bin" == "p/" + long_name);
  CHECK(text(tar.get(1).at("bin")) == "12345");
  CHECK(text(tar.get(2).at("bin")) == "z");
}

TEST_CASE("the index is built once, saved next to the archive, and rebuilt for another archive") {
  Archive const archive;
  CHECK(archive.open(samples(), data::TarIndex::keep).size() == 3);
  auto const index = read_file(archive / "a.tar.index");
  CHECK(index.find("train/0002.seg.png\n") != std::string::npos);
  CHECK(archive.entries() == 2);
  auto renamed = index;
  renamed.replace(renamed.find("0002.cls"), 8, "0003.cls");
  write_file(archive / "a.tar.index", renamed);
  CHECK(data::TarDataset(archive / "a.tar").size() == 4);  // so it was read from the index
  CHECK(archive.open(member("other.txt", "new") + end, data::TarIndex::keep).size() == 1);
  CHECK(read_file(archive / "a.tar.index").find("other.txt") != std::string::npos);
  for (auto const* damaged : {"", "lockstep tar index 2", "x\nend\n"}) {
    write_file(archive / "a.tar.index", damaged);
    CHECK(data::TarDataset(archive / "a.tar").size() == 1);
  }
  auto const good = read_file(archive / "a.tar.index");
  auto const head = good.substr(0, good.find('\n') + 1);
  for (auto const* lines : {"x 3 a\nend\n", "512\nend\n", "512 3 a\n\nend\n", "512 99999999 a\nend\n", "512:3 a\nend\n",
                            "512 3:a\nend\n"}) {
    write_file(archive / "a.tar.index", head + lines);
    CHECK_THROWS_AS(data::TarDataset(archive / "a.tar"), DataError);
  }
}

TEST_CASE("the index of a rewritten archive is rebuilt, even if its length and both ends are unchanged") {
  Archive const archive;
  auto const middle = [](std::string const& name) {
    return member("a.txt", std::string(8192, 'a')) + member(name, "b") + member("z.txt", std::string(8192, 'z')) + end;
  };
  CHECK(archive.open(middle("b.txt"), data::TarIndex::keep).get(1).key == "b");
  CHECK(archive.entries() == 2);
  auto const path = std::filesystem::path(archive / "a.tar");
  auto const before = std::filesystem::last_write_time(path);
  write_file(path, middle("c.txt"));
  std::filesystem::last_write_time(path, before + std::chrono::milliseconds(1));
  CHECK(data::TarDataset(archive / "a.tar").get(1).key == "c");
}

TEST_CASE("the index of an archive whose bytes were changed is rebuilt, even if its length and time are unchanged") {
  Archive const archive;
  auto const content = [](std::string const& name) {
    return member("a.txt", std::string(100'000, 'a')) + member(name, "b") + member("z.txt", std::string(100'000, 'z')) +
           end;
  };
  CHECK(archive.open(content("b.txt"), data::TarIndex::keep).get(1).key == "b");
  auto const path = std::filesystem::path(archive / "a.tar");
  auto const before = std::filesystem::last_write_time(path);
  write_file(path, content("c.txt"));
  std::filesystem::last_write_time(path, before);
  CHECK(data::TarDataset(archive / "a.tar").get(1).key == "c");
}

TEST_CASE("an index of another user is not believed, and is replaced by an own one") {
  if (::geteuid() != 0) return;  // only root can give a file away
  Archive const archive;
  CHECK(archive.open(samples(), data::TarIndex::keep).size() == 3);
  auto const path = archive / "a.tar.index", index = read_file(path);
  auto forged = index;
  forged.replace(forged.find("0002.cls"), 8, "0003.cls");
  write_file(path, forged);
  REQUIRE(::chown(path.c_str(), 12345, 12345) == 0);
  CHECK(data::TarDataset(archive / "a.tar").size() == 3);
  CHECK(read_file(path) == index);
}

TEST_CASE("a pipe or a folder in place of the index is left alone, and nothing waits") {
  Archive const archive;
  REQUIRE(::mkfifo((archive / "a.tar.index").c_str(), 0600) == 0);
  CHECK(archive.open(samples(), data::TarIndex::keep).size() == 3);
  CHECK(std::filesystem::is_fifo(archive / "a.tar.index"));
  std::filesystem::remove(archive / "a.tar.index");
  std::filesystem::create_directory(archive / "a.tar.index");
  CHECK(data::TarDataset(archive / "a.tar").size() == 3);
}

TEST_CASE("a long name or a pax header of more than a mebibyte is refused") {
  Archive const archive;
  std::string const name(1'100'000, 'n');
  for (char const type : {'L', 'K', 'x'})
    CHECK_THROWS_WITH_AS(archive.open(member("long", name, type) + member("a", "1") + end),
                         doctest::Contains("claims a name or a pax header of 1100000 bytes at byte 0"), DataError);
}

TEST_CASE("a truncated index is rebuilt, and names with line breaks are not saved in an index") {
  Archive const archive;
  CHECK(archive.open(samples(), data::TarIndex::keep).size() == 3);
  auto const index = read_file(archive / "a.tar.index");
  for (auto const kept : {index.size() - 4, index.size() - 5, index.find("0002.cls")}) {
    write_file(archive / "a.tar.index", index.substr(0, kept));
    CHECK(data::TarDataset(archive / "a.tar").size() == 3);
    CHECK(read_file(archive / "a.tar.index") == index);
  }
  Archive const other;
  auto const broken = member("p", "14 path=a\nb.c\n", 'x') + member("short", "1") + end;
  for (int time = 0; time < 2; ++time) {
    CHECK(other.open(broken, data::TarIndex::keep).get(0).key == "a\nb");
    CHECK(other.entries() == 1);
  }
}

TEST_CASE("a file that is no index of this library is not replaced by one") {
  Archive const archive;
  write_file(archive / "a.tar.index", "notes of the user\n");
  CHECK(archive.open(samples(), data::TarIndex::keep).size() == 3);
  CHECK(read_file(archive / "a.tar.index") == "notes of the user\n");
}

TEST_CASE("headers of other programs are read") {
  Archive const archive;
  auto prefixed = member("key.txt", "abc");
  prefixed.replace(345, 3, "dir");
  auto gnu = prefixed;
  sign(prefixed);
  CHECK(archive.open(prefixed + end).get(0).key == "dir/key");
  gnu.replace(257, 8, std::string("ustar  \0", 8));  // GNU has times in the place of ustar's prefix
  sign(gnu);
  CHECK(archive.open(gnu + end).get(0).key == "key");
  CHECK(archive.open(member("old.txt", "x", '\0') + end).get(0).key == "old");
  CHECK(text(archive.open(member("a.b", "abc", '0', "         3 " + std::string(1, '\0')) + end).get(0).at("b")) ==
        "abc");
}

TEST_CASE("unsupported and invalid header fields are refused with the reason") {
  Archive const archive;
  auto const refuses = [&](std::string const& content, char const* why) {
    CHECK_THROWS_WITH_AS(archive.open(content), doctest::Contains(why), DataError);
  };
  auto const file = member("a", "a");
  refuses(file, "has no end of the archive after byte 1024");
  refuses(member("a", "a", '0', octal(9999, 11) + '\0') + end, "the member at byte 0 needs 9999 bytes");
  refuses(member("a", std::string(9, 'a'), '0', std::string("00000000009\0", 12)) + end, "a number at byte 0");
  refuses(member("a", "abc", '0', std::string("\x80\x01\0\0\0\0\0\0\0\0\0\x03", 12)) + end, "a size at byte 0");
  for (auto const* record : {"99 path=x\n", "0 path=x\n", "1 path=x\n", "2 path=x\n", "6 abc\n", "x path=y\n",
                             "33 size=999999999999999999999999\n", "11 size=3x\n"})
    refuses(member("p", record, 'x') + file + end, "a pax header at byte 0 is damaged");
}

TEST_CASE("sparse files in GNU and pax formats are refused") {
  Archive const archive;
  CHECK_THROWS_WITH_AS(archive.open(member("a", "x") + member("b", "x", 'S') + end),
                       doctest::Contains("a sparse file at byte 1024, which cannot be read"), DataError);
  CHECK_THROWS_WITH_AS(
      archive.open(member("p", "22 GNU.sparse.major=1\n", 'x') + member("GNUSparseFile.0/b", "0\n") + end),
      doctest::Contains("a sparse file at byte 0"), DataError);
}

TEST_CASE("damaged and truncated archives are refused, also if they are truncated while they are read") {
  Archive const archive;
  auto const whole = member("a.txt", std::string(600, 'a')) + member("b.txt", "b") + end;
  for (std::size_t length = 0; length < whole.size() - end.size() + 512; length += 8)
    CHECK_THROWS_AS(archive.open(whole.substr(0, length)), DataError);
  for (std::size_t at = 0; at < 512; at += 3) {
    auto damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] + 1);
    if (at < 148 || at > 155) CHECK_THROWS_AS(archive.open(damaged), DataError);
  }
  CHECK_THROWS_WITH_AS(archive.open(std::string(2000, 'x')), doctest::Contains("decompress it first"), DataError);
  CHECK_THROWS_WITH_AS(archive.open(member(".hidden", "x") + end), doctest::Contains("holds no file"), DataError);
  CHECK_THROWS_AS(archive.open(member("p", "99 path=x\n", 'x') + whole), DataError);
  CHECK_THROWS_AS(archive.open(member("p", "9 size=x\n", 'x') + whole), DataError);
  CHECK_THROWS_AS(archive.open(member("a", "a", '0', std::string(12, '\xff'))), DataError);
  auto const tar = archive.open(whole);
  std::filesystem::resize_file(archive / "a.tar", 700);
  CHECK_THROWS_WITH_AS(static_cast<void>(tar.get(0)), doctest::Contains("ends at byte 700"), DataError);
}

TEST_CASE("concatenated archives are read as one, with and without padding between them") {
  Archive const archive;
  auto const first = member("1.txt", "one") + member("2.txt", "two"), second = member("3.txt", "three");
  for (std::size_t const zeros : {512U, 1024U, 10240U, 512U * 300U}) {
    auto const tar = archive.open(first + std::string(zeros, '\0') + second + end);
    REQUIRE(tar.size() == 3);
    CHECK(text(tar.get(2).at("txt")) == "three");
  }
  CHECK_THROWS_WITH_AS(archive.open(first + end + std::string(512, 'x')), doctest::Contains("at byte 3072 is damaged"),
                       DataError);
  CHECK_THROWS_WITH_AS(archive.open(first + end + "x"), doctest::Contains("needs 512 bytes from byte 3072"), DataError);
}

TEST_CASE("an archive without files has no samples, so that it can be one of many shards") {
  Archive const archive;
  for (int time = 0; time < 2; ++time) {
    CHECK(archive.open(end, data::TarIndex::keep).size() == 0);
    CHECK(archive.open(member("train/", "", '5') + end).size() == 0);
  }
  CHECK_THROWS_AS(archive.open(""), DataError);
}

TEST_CASE("WebDataset's metadata and hidden files are skipped and counted") {
  Archive const archive;
  auto const tar = archive.open(member("__meta__", "{}") + member("__shard__/a.json", "{}") + member("1.txt", "one") +
                                member("__main__.py", "x") + member("a/__meta__", "y") + member(".hidden", "z") + end);
  REQUIRE(tar.size() == 3);
  CHECK(tar.get(0).key == "1");
  CHECK(tar.get(1).key == "__main__");
  CHECK(tar.get(2).key == "a/__meta__");
  CHECK(tar.skipped() == 3);
}

TEST_CASE("a symbolic link has the bytes of its target file, which must precede it") {
  Archive const archive;
  auto const link = [](std::string const& name, std::string const& target) {
    auto header = member(name, "", '2');
    header.replace(157, target.size(), target);
    sign(header);
    return header;
  };
  auto const tar =
      archive.open(member("a/1.jpg", "image") + link("b/2.jpg", "../a/1.jpg") + link("a/3.jpg", "1.jpg") + end);
  REQUIRE(tar.size() == 3);
  CHECK(text(tar.get(1).at("jpg")) == "image");
  CHECK(text(tar.get(2).at("jpg")) == "image");
  // `tar -C folder -cf a.tar .` writes each path with "./".
  auto const whole_folder =
      archive.open(member("./a/1.jpg", "image") + link("./a/2.jpg", "1.jpg") + link("./b/3.jpg", "../a/2.jpg") + end);
  REQUIRE(whole_folder.size() == 3);
  CHECK(text(whole_folder.get(1).at("jpg")) == "image");
  CHECK(text(whole_folder.get(2).at("jpg")) == "image");
  CHECK_THROWS_WITH_AS(archive.open(link("1.jpg", "/data/1.jpg") + end),
                       doctest::Contains("holds \"1.jpg\" as a symbolic link to \"/data/1.jpg\", which does not come "
                                         "before it; write the archive with --dereference"),
                       DataError);
}

TEST_CASE("a folder with a size has no bytes, as POSIX says") {
  Archive const archive;
  auto const tar = archive.open(member("a/", "", '5', octal(4096, 11) + '\0') + member("a/1.jpg", "image") + end);
  REQUIRE(tar.size() == 1);
  CHECK(text(tar.get(0).at("jpg")) == "image");
}

TEST_CASE("a hard link has the bytes of its target member") {
  Archive const archive;
  auto const link = [](std::string const& name, std::string const& target) {
    auto header = member(name, "", '1');
    header.replace(157, target.size(), target);
    sign(header);
    return header;
  };
  auto const far = std::string(150, 'd') + "/1.jpg";
  auto const tar = archive.open(member("1.jpg", "image") + member("1.cls", "7") + link("2.jpg", "1.jpg") +
                                member("2.cls", "8") + member("././@LongLink", far + '\0', 'L') + member("x", "far") +
                                member("././@LongLink", far + '\0', 'K') + link("3.jpg", "x") + end);
  REQUIRE(tar.size() == 4);
  CHECK(text(tar.get(1).at("jpg")) == "image");
  CHECK(text(tar.get(1).at("cls")) == "8");
  CHECK(text(tar.get(3).at("jpg")) == "far");
  CHECK_THROWS_WITH_AS(archive.open(link("1.jpg", "0.jpg") + end),
                       doctest::Contains("holds \"1.jpg\" as a hard link to \"0.jpg\", which does not come before it"),
                       DataError);
  auto const later = archive.open(member("1.a", "first") + link("2.a", "1.a") + member("3.a", "then") +
                                  link("4.a", "3.a") + link("5.a", "2.a") + end);
  REQUIRE(later.size() == 5);
  CHECK(text(later.get(3).at("a")) == "then");
  CHECK(text(later.get(4).at("a")) == "first");
}

TEST_CASE("among many members and hard links each is found, and a duplicate too") {
  Archive const archive;
  auto const name = [](int i) { return "frame." + std::to_string(i) + ".png"; };
  std::string bytes;
  for (int i = 0; i < 20000; ++i) bytes += member(name(i), "");
  auto header = member("", "", '1');
  for (int i = 0; i < 20000; ++i) {
    auto const to = name(i);
    header.replace(157, to.size() + 1, to + '\0');
    auto const from = "other." + std::to_string(i);
    header.replace(0, from.size() + 1, from + '\0');
    sign(header);
    bytes += header;
  }
  auto const tar = archive.open(bytes + end);
  REQUIRE(tar.size() == 2);
  CHECK(tar.get(0).members.size() == 20000);
  CHECK(tar.get(1).members.back().extension == "19999");
  CHECK_THROWS_WITH_AS(archive.open(bytes + member(name(7), "") + end),
                       doctest::Contains("holds \"frame.7.png\" twice"), DataError);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
TEST_CASE("the former name of a member is an alias") { CHECK(std::is_same_v<data::TarPart, data::TarMember>); }
#pragma GCC diagnostic pop
