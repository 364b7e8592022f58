package symbols

import (
	"bytes"
	"sort"

	"github.com/shoalsearch/shoal/shard/file"
	"github.com/shoalsearch/shoal/shard/lz"
)

// pageBytes is the greatest size of a page of names in full: one unit of postings.
const pageBytes = 4096

// frontPage is the greatest size of a front-coded page, in which each name is the number of
// bytes that it shares with the one before, the rest of it, and a newline. Sorted names
// have much in common, and the compression of a page sees only what they have not.
const frontPage = 2 * pageBytes

// appendFront appends a front-coded name.
func appendFront(dst, before, name []byte) []byte {
	n := 0
	for n < len(before) && n < len(name) && n < 255 && before[n] == name[n] {
		n++
	}
	return append(append(append(dst, byte(n)), name[n:]...), '\n')
}

// unfront writes the names of a page in full, each with a newline, to dst, which has room
// for pageBytes bytes.
func unfront(dst, coded []byte) ([]byte, bool) {
	before := dst // the name before, in dst
	for len(coded) > 0 {
		// The count of shared bytes may itself be that of a newline, 10.
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

// page decodes a page of names into buf.
func (y *File) page(i int, buf []byte) ([]byte, error) {
	var front [frontPage + lz.Slack]byte // both stay on the stack
	var room [pageBytes / 2]byte
	coded := front[:y.pageSize.At(i)]

	block, ok := y.code.pages.decodeCoded(room[:0], file.Entry(y.pages, y.pageEnd, i))
	if !ok {
		return nil, y.f.Damaged("page %d: codes", i)
	}
	if err := lz.Decode(coded, block, y.dict); err != nil {
		return nil, y.f.Damaged("page %d: %w", i, err)
	}

	if cap(buf) < pageBytes {
		buf = make([]byte, pageBytes)
	}
	page, ok := unfront(buf[:0], coded)
	if !ok {
		return nil, y.f.Damaged("page %d: names do not follow each other", i)
	}
	return page, nil
}

// Recent has what a goroutine decoded last. All chunks of a document need its rows and their ends,
// and names that are needed together are on few pages. The zero value is empty.
type Recent struct {
	// Cache keeps pages of names for whoever asks for them next; nil for none.
	Cache PageCache

	y *File

	doc  int // document of rows, and one; 0 for none
	rows []Row

	openDoc int // document of open, and one; 0 for none
	open    []openRow
	nested  []int // for building open

	coded, extents []byte // of which rows and open were made
	pages          [recentPages]recentPage

	named int    // number of text, and one; 0 for none
	text  string // the name that was asked for last
}

// PageCache keeps pages of names, at most 4,096 bytes each, by their file and number.
// It is safe for concurrent use.
type PageCache interface {
	// Page appends a page to dst, if it is there.
	Page(f *file.File, number int, dst []byte) ([]byte, bool)
	// KeepPage keeps a copy of a page.
	KeepPage(f *file.File, number int, text []byte)
}

// recentPages is how many pages of names are kept: the page p at p % recentPages.
const recentPages = 16

// recentPage is a page in full. Its number and one, 0 for none, tells which.
type recentPage struct {
	number int
	text   []byte
}

// of forgets the data of another file.
func (h *Recent) of(y *File) {
	if h.y == y {
		return
	}

	h.y, h.doc, h.openDoc, h.named = y, 0, 0, 0
	for i := range h.pages {
		h.pages[i].number = 0
	}
}

// The largest buffers that are kept for the next search.
const (
	keepRows  = 2048
	keepBytes = 64 << 10
)

// Room returns an empty Recent with the buffers of this one.
func (h *Recent) Room() Recent {
	out := Recent{Cache: h.Cache}
	if cap(h.rows) <= keepRows {
		out.rows = h.rows
	}
	if cap(h.open) <= keepRows {
		out.open, out.nested = h.open, h.nested
	}
	if max(cap(h.coded), cap(h.extents)) <= keepBytes {
		out.coded, out.extents = h.coded, h.extents
	}

	for i := range h.pages {
		out.pages[i].text = h.pages[i].text
	}
	return out
}

// load gets a page out of the cache, or decodes it.
func (h *Recent) load(number int, buf []byte) ([]byte, error) {
	if h.Cache == nil {
		return h.y.page(number, buf)
	}
	if text, ok := h.Cache.Page(h.y.f, number, buf[:0]); ok {
		return text, nil
	}

	text, err := h.y.page(number, buf)
	if err == nil {
		h.Cache.KeepPage(h.y.f, number, text)
	}
	return text, err
}

// name returns the text of a name by its number.
func (y *File) name(n int, recent *Recent) (string, error) {
	// Adjacent lines are mostly in the same definition.
	if recent.of(y); recent.named == n+1 {
		return recent.text, nil
	}

	p := sort.Search(y.pageName.Len(), func(i int) bool { return int(y.pageName.At(i)) > n }) - 1
	if p < 0 {
		return "", y.f.Damaged("name %d", n)
	}

	kept := &recent.pages[p%recentPages]
	if kept.number != p+1 {
		// A decoding that fails leaves a page of no number.
		kept.number = 0
		text, err := recent.load(p, kept.text)
		if err != nil {
			return "", err
		}
		kept.number, kept.text = p+1, text
	}

	page := kept.text

	// Count names down from the first of the page: skip of them come before n.
	for skip := n - int(y.pageName.At(p)); ; skip-- {
		line, rest, ok := bytes.Cut(page, newline)
		if !ok {
			return "", y.f.Damaged("name %d", n)
		}

		if skip == 0 {
			recent.named, recent.text = n+1, string(line)
			return recent.text, nil
		}

		page = rest
	}
}
