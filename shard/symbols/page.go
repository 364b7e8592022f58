package symbols

import (
	"bytes"
	"sort"

	"github.com/shoalsearch/shoal/shard/file"
	"github.com/shoalsearch/shoal/shard/lz"
)

// pageBytes is the greatest size of a page with its names in full. A page is one unit of postings.
const pageBytes = 4096

// frontPage is the greatest size of a front-coded page. A front-coded name is the number of bytes
// that it shares with the name before, the rest of it, and a newline. Sorted names have long
// prefixes in common, so a front-coded page compresses better.
const frontPage = 2 * pageBytes

// appendFront appends a front-coded name.
func appendFront(dst, before, name []byte) []byte {
	n := 0
	for n < len(before) && n < len(name) && n < 255 && before[n] == name[n] {
		n++
	}
	return append(append(append(dst, byte(n)), name[n:]...), '\n')
}

// decodeFront decodes a front-coded page: it appends the full names, each with a newline, to dst,
// which is empty and has a capacity of pageBytes. It returns false if the page is damaged.
func decodeFront(dst, coded []byte) ([]byte, bool) {
	before := dst // the name before, in dst
	for len(coded) > 0 {
		// The byte with the number of shared bytes may equal a newline, 10.
		shared, end := int(coded[0]), bytes.IndexByte(coded, '\n')
		if shared == '\n' {
			end = bytes.IndexByte(coded[1:], '\n') + 1
		}
		if end < 1 || shared > len(before) || len(dst)+shared+end > pageBytes {
			return nil, false
		}

		from := len(dst)
		dst = append(append(dst, before[:shared]...), coded[1:end+1]...)
		before, coded = dst[from:len(dst)-1], coded[end+1:]
	}
	return dst, true
}

// decodePage decodes page i into buf, or a larger slice if buf has too little room: Huffman codes
// to an lz block, then to a front-coded page, then to full names.
func (y *File) decodePage(i int, buf []byte) ([]byte, error) {
	// Both arrays stay on the stack.
	var frontBuf [frontPage + lz.Slack]byte
	var blockBuf [pageBytes / 2]byte
	coded := frontBuf[:y.pageSize.At(i)]

	block, ok := y.code.pages.decodeCoded(blockBuf[:0], file.Entry(y.pages, y.pageEnd, i))
	if !ok {
		return nil, y.f.Damaged("page %d: codes", i)
	}
	if err := lz.Decode(coded, block, y.dict); err != nil {
		return nil, y.f.Damaged("page %d: %w", i, err)
	}

	if cap(buf) < pageBytes {
		buf = make([]byte, pageBytes)
	}
	page, ok := decodeFront(buf[:0], coded)
	if !ok {
		return nil, y.f.Damaged("page %d: names do not follow each other", i)
	}
	return page, nil
}

// Recent caches what one goroutine decoded last from one file. All chunks of a document need its
// rows and their extents, and the names that a search needs are mostly on few pages. The zero value
// is empty.
type Recent struct {
	// Cache, if not nil, is a cache of decoded pages that several goroutines share.
	Cache PageCache

	y *File // the file of all below

	docPlus1 int // number of the document of rows + 1; 0 if rows is empty
	rows     []Row

	openDocPlus1 int // number of the document of open + 1; 0 if open is empty
	open         []openRow
	nested       []int // buffer for the stack of setOpen

	coded, extents []byte // buffers for the decoded bytes of rows and extents
	pages          [recentPages]recentPage

	namePlus1 int    // number of the name text + 1; 0 if there is none
	name      string // the last decoded name
}

// PageCache caches pages of names, at most 4,096 bytes each, by their file and number.
// It is safe for concurrent use.
type PageCache interface {
	// Page appends a page to dst. It returns false if the page is not in the cache.
	Page(f *file.File, number int, dst []byte) ([]byte, bool)
	// KeepPage stores a copy of a page.
	KeepPage(f *file.File, number int, text []byte)
}

// recentPages is how many pages a Recent has. Page p is in slot p % recentPages.
const recentPages = 16

// recentPage is a decoded page.
type recentPage struct {
	numberPlus1 int // number of the page + 1; 0 if the slot is empty
	text        []byte
}

// switchTo makes y the file of the cache. If that was another file, it empties the cache.
func (h *Recent) switchTo(y *File) {
	if h.y == y {
		return
	}

	h.y, h.docPlus1, h.openDocPlus1, h.namePlus1 = y, 0, 0, 0
	for i := range h.pages {
		h.pages[i].numberPlus1 = 0
	}
}

// The largest buffers that ReuseBuffers reuses.
const (
	maxReusedRows  = 2048
	maxReusedBytes = 64 << 10
)

// ReuseBuffers returns an empty Recent that reuses the buffers of this one, unless they are large.
func (h *Recent) ReuseBuffers() Recent {
	out := Recent{Cache: h.Cache}
	if cap(h.rows) <= maxReusedRows {
		out.rows = h.rows
	}
	if cap(h.open) <= maxReusedRows {
		out.open, out.nested = h.open, h.nested
	}
	if max(cap(h.coded), cap(h.extents)) <= maxReusedBytes {
		out.coded, out.extents = h.coded, h.extents
	}

	for i := range h.pages {
		out.pages[i].text = h.pages[i].text
	}
	return out
}

// readPage returns a page from the shared cache, or decodes it into buf and stores it in the cache.
func (h *Recent) readPage(number int, buf []byte) ([]byte, error) {
	if h.Cache == nil {
		return h.y.decodePage(number, buf)
	}
	if text, ok := h.Cache.Page(h.y.f, number, buf[:0]); ok {
		return text, nil
	}

	text, err := h.y.decodePage(number, buf)
	if err == nil {
		h.Cache.KeepPage(h.y.f, number, text)
	}
	return text, err
}

// decodeName returns the text of a name by its number.
func (y *File) decodeName(n int, recent *Recent) (string, error) {
	// The results of a search often ask for the same name several times in a row.
	if recent.switchTo(y); recent.namePlus1 == n+1 {
		return recent.name, nil
	}

	p := sort.Search(y.pageName.Len(), func(i int) bool { return int(y.pageName.At(i)) > n }) - 1
	if p < 0 {
		return "", y.f.Damaged("name %d", n)
	}

	slot := &recent.pages[p%recentPages]
	if slot.numberPlus1 != p+1 {
		slot.numberPlus1 = 0 // readPage overwrites the text, even if it fails
		text, err := recent.readPage(p, slot.text)
		if err != nil {
			return "", err
		}
		slot.numberPlus1, slot.text = p+1, text
	}

	page := slot.text
	for skip := n - int(y.pageName.At(p)); ; skip-- {
		line, rest, ok := bytes.Cut(page, newline)
		if !ok {
			return "", y.f.Damaged("name %d", n)
		}

		if skip == 0 {
			recent.namePlus1, recent.name = n+1, string(line)
			return recent.name, nil
		}

		page = rest
	}
}
