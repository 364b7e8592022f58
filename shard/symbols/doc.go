// Package symbols has the definitions in the documents of a shard: the file format, its writer, and
// its queries.
//
// A search reads a few pages to find names, and then only lists. It reads the content of a document
// only to cut out the lines of a result. The sections of the file (package file) are:
//
//	meta      name of the shard, counts, the kinds
//	parents   the scopes of symbols, sorted, front-coded
//	codes     the Huffman codes of parents, pages, refs, docs and extents
//	pages     the distinct names, sorted without regard to case, in pages of
//	          at most 4 KiB, front-coded, each a block of package lz
//	first     the first name of each page, in full
//	postings  of package trigram; a page is a document of one unit
//	refs      for each page the documents that define each of its names
//	docs      for each document its symbols, by offset
//	extents   for each document the ends of its symbols that span several lines,
//	          see extentWriter
//	unknown   the documents whose symbols are unknown: the gap to the one before, and
//	          how many attempts failed
//
// A worked example. Document 0 has the functions Able at byte 6 and able at 20, document 2 a class
// able and a function apply. The names are Able, able and apply, with the numbers 0 to 2; the kinds
// are class and function. Before Huffman and lz, the page, the references and the rows of document
// 0 are
//
//	page  00 "Able" \n     shares no byte with the name before it
//	      00 "able" \n
//	      01 "pply" \n     shares one byte
//	refs  00               Able: document 0, 0 after the first one of the name before, no more
//	      01 01 01         able: document 0 again, and one byte of gaps: 1 document is between 0 and 2
//	      08               apply: document 2: +2 in zigzag is 4, and the bit for "no more"
//	rows  0d 00 01 00      6 bytes after the start, and the bit for "kind and parent follow"; name 0; kind 1; no parent
//	      1c 02            14 bytes later, kind and parent as before; name +1 in zigzag
//
// Package symbol (without s) runs universal-ctags, which finds the definitions.
package symbols
