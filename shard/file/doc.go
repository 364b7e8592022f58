// Package file defines the form of all index files: sections of bytes, then a table with the place
// of each section and the checksums of all pages.
//
//	head       16 bytes   "SHOALIDX", version and kind of the file
//	sections              each begins at a multiple of eight bytes
//	table                 count of sections, count of pages,
//	                      of each section its id, offset and length,
//	                      of each page its CRC-32C
//	tail       32 bytes   offset, length and CRC-32C of the table, four zeros, "SHOALEND"
//
// All numbers are little-endian. A page is 64 KiB of the bytes before the table, including the
// head. The last page is shorter.
//
// A worked example: a side file of kind 2 and version 2 with the sections 1, "abc", and 2, "hello":
//
//	  0  53 48 4f 41 4c 49 44 58  "SHOALIDX"
//	  8  02 00 00 00              version 2
//	 12  02 00 00 00              kind 2
//	 16  61 62 63 00 00 00 00 00  section 1, padded to a multiple of eight
//	 24  68 65 6c 6c 6f           section 2
//	 29  02 00 00 00              the table: two sections
//	 33  01 00 00 00              one page
//	 37  01 .. 10 .. 03 ..        section 1 at 16, 3 bytes; three numbers of eight bytes
//	 61  02 .. 18 .. 05 ..        section 2 at 24, 5 bytes
//	 85  xx xx xx xx              checksum of the bytes 0 to 28
//	 89  1d ..                    the tail: the table is at 29,
//	 97  3c ..                    has 60 bytes
//	105  xx xx xx xx              and this checksum
//	109  00 00 00 00
//	113  53 48 4f 41 4c 45 4e 44  "SHOALEND"
//
// A file is written once, from front to back, and named by the SHA-256 of its bytes. It never
// changes. Open maps it and checks its table. The bytes of a page are checked on first use. So
// opening is cheap, and no byte is used unchecked. Other packages define the content of sections.
package file
