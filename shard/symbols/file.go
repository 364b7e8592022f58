package symbols

import (
	"errors"
	"fmt"
	"math"
	"sort"
	"sync"

	"github.com/shoalsearch/shoal/shard/file"
	"github.com/shoalsearch/shoal/trigram"
)

// File is an open file of symbols. It is safe for concurrent use after Ready.
type File struct {
	f      *file.File
	tables *Tables

	once      sync.Once // guards the fields below
	err       error
	shard     string // name of the shard file
	documents int
	names     int
	kinds     []string
	parents   []parent
	pageEnd   file.Column32 // end of each page in pages
	pageSize  file.Column32 // bytes of the page before compression, front-coded
	pageName  file.Column32 // number of the page's first name
	firstEnd  file.Column32 // end of that name in first
	first     []byte
	pages     []byte
	refEnd    file.Column32 // end of the references of the page's names, in refs
	refs      []byte
	docEnd    file.Column32 // end of each document's rows, in docs
	docs      []byte
	dict      []byte        // of the blocks of pages
	extentEnd file.Column32 // end of each document's extents, in extents
	extents   []byte
	code      struct{ parents, pages, refs, docs, extents *code }
	post      *trigram.Index
	unknown   []Unknown // by number
}

// parent is the scope in which a symbol is defined, such as a class.
type parent struct{ name, kind string }

// Open returns the symbols of a file of kind [file.KindSymbols], which shares the tables with other
// files. It reads nothing: Ready does.
func Open(f *file.File, tables *Tables) *File { return &File{f: f, tables: tables} }

// Ready reads and checks the columns, once, and checks that the symbols belong to the given shard
// file with that many documents. The caller must call it before any other method.
func (y *File) Ready(shard string, documents int) error {
	y.once.Do(func() { y.err = y.f.Blame(y.readSections()) })
	if y.err == nil && (y.shard != shard || y.documents != documents) {
		return y.f.Damaged("it belongs to %s", y.shard)
	}
	return y.err
}

// readSections reads and checks the sections of the file. Only Ready calls it, once.
func (y *File) readSections() error {
	b, err := y.f.Bytes(secMeta)
	if err != nil {
		return err
	}

	d := file.NewDecoder(b)
	y.shard = d.Text()
	y.documents, y.names = int(d.Uint()&(1<<40-1)), int(d.Uint()&(1<<40-1))

	// Kinds of symbols, then kinds of parents.
	y.kinds = make([]string, d.Count())
	for i := range y.kinds {
		y.kinds[i] = d.Text()
	}
	parentKinds := make([]string, d.Count())
	for i := range parentKinds {
		parentKinds[i] = d.Text()
	}

	if err := d.Err(); err != nil {
		return err
	}

	// The other sections are written in these codes.
	if err := y.loadCodes(); err != nil {
		return err
	}
	if err := y.loadParents(parentKinds); err != nil {
		return err
	}
	if err := y.loadColumns(); err != nil {
		return err
	}
	if err := y.loadUnknown(); err != nil {
		return err
	}
	return y.openPostings()
}

// loadUnknown reads the list of the documents whose symbols are not known.
func (y *File) loadUnknown() error {
	b, err := y.f.Bytes(secUnknown)
	if err != nil {
		return err
	}

	d := file.NewDecoder(b)
	y.unknown = make([]Unknown, d.Count())
	doc := uint64(0)
	for i := range y.unknown {
		doc += d.Uint()
		tries := d.Uint()
		if d.Err() != nil || doc >= uint64(y.documents) || tries > math.MaxUint8 || i > 0 && int(doc) <= y.unknown[i-1].Doc {
			return fmt.Errorf("%w: unknown symbols", file.ErrDamaged)
		}
		y.unknown[i] = Unknown{int(doc), int(tries)}
	}
	return d.Err()
}

// Unknown lists the documents whose symbols are not known, by number. The list is shared.
func (y *File) Unknown() []Unknown { return y.unknown }

// failedTries returns how many attempts at the symbols of a document failed; 0 if they are known.
func (y *File) failedTries(doc int) int {
	i := sort.Search(len(y.unknown), func(i int) bool { return y.unknown[i].Doc >= doc })
	if i == len(y.unknown) || y.unknown[i].Doc != doc {
		return 0
	}
	return max(y.unknown[i].Tries, 1)
}

// loadCodes reads the codes of the sections.
func (y *File) loadCodes() error {
	b, err := y.f.Bytes(secCodes)
	if err != nil {
		return err
	}

	// The order in which collector.writeFile adds these columns.
	codes := []**code{&y.code.parents, &y.code.pages, &y.code.refs, &y.code.docs, &y.code.extents}
	if len(b) != len(codes)*codeBytes {
		return fmt.Errorf("%w: size of the codes", file.ErrDamaged)
	}

	for i, c := range codes {
		if *c, err = newCode(b[i*codeBytes:(i+1)*codeBytes], y.tables); err != nil {
			return err
		}
	}
	return nil
}

// loadParents reads the parents, which are front-coded: how many bytes the name shares with
// the one before, the rest of it, and its kind.
func (y *File) loadParents(kinds []string) error {
	b, err := y.f.Bytes(secParents)
	if err != nil {
		return err
	}

	b, ok := y.code.parents.decodeCoded(nil, b)
	if !ok {
		return fmt.Errorf("%w: parents", file.ErrDamaged)
	}

	d := file.NewDecoder(b)
	y.parents = make([]parent, d.Count())
	before := ""
	for i := range y.parents {
		shared, rest, kind := d.Uint(), d.Text(), d.Uint()

		// Limit the length of names. Each may repeat the whole name before it, so a small damaged
		// file could otherwise need memory that grows with the square of its size.
		if d.Err() != nil || shared > uint64(len(before)) || len(rest) > MaxName-int(shared) || kind >= uint64(len(kinds)) {
			return fmt.Errorf("%w: parent %d", file.ErrDamaged, i)
		}

		before = before[:shared] + rest
		y.parents[i] = parent{before, kinds[kind]}
	}
	return nil
}

// loadColumns reads the columns and checks that they have the same number of rows and that their
// offsets ascend, so that queries can index with them unchecked.
func (y *File) loadColumns() error {
	for _, c := range []struct {
		id file.SectionID
		to *[]byte
	}{
		{secPageEnd, (*[]byte)(&y.pageEnd)}, {secPageSize, (*[]byte)(&y.pageSize)}, {secPageName, (*[]byte)(&y.pageName)},
		{secFirstEnd, (*[]byte)(&y.firstEnd)}, {secFirst, &y.first}, {secPages, &y.pages},
		{secRefEnd, (*[]byte)(&y.refEnd)}, {secRefs, &y.refs},

		{secDocEnd, (*[]byte)(&y.docEnd)}, {secDocs, &y.docs}, {secDict, &y.dict},
		{secExtentEnd, (*[]byte)(&y.extentEnd)}, {secExtents, &y.extents},
	} {
		var err error
		if *c.to, err = y.f.Bytes(c.id); err != nil {
			return err
		}
	}

	// The columns of pages have one row a page, the others one row a document.
	pages := y.pageEnd.Len()
	lengthsMatch := y.pageSize.Len() == pages && y.pageName.Len() == pages && y.firstEnd.Len() == pages && y.refEnd.Len() == pages &&
		y.docEnd.Len() == y.documents && y.extentEnd.Len() == y.documents
	inOrder := ascending(y.pageEnd, len(y.pages)) && ascending(y.firstEnd, len(y.first)) && ascending(y.refEnd, len(y.refs)) &&
		ascending(y.docEnd, len(y.docs)) && ascending(y.extentEnd, len(y.extents)) && ascending(y.pageName, y.names)
	if !lengthsMatch || !inOrder {
		return fmt.Errorf("%w: columns do not fit together", file.ErrDamaged)
	}

	for i := range pages {
		if y.pageSize.At(i) > frontPage {
			return fmt.Errorf("%w: size of a page", file.ErrDamaged)
		}
	}
	return nil
}

// ascending reports whether the column ascends up to limit: 0 <= c[0] <= c[1] <= ... <= limit.
func ascending(c file.Column32, limit int) bool {
	before := uint32(0)
	for i := range c.Len() {
		if c.At(i) < before {
			return false
		}
		before = c.At(i)
	}
	return int(before) <= limit
}

// openPostings opens the postings of the pages. They are small, so it checks all of their bytes.
func (y *File) openPostings() error {
	var segments [][]byte
	for i := file.SectionID(0); ; i++ {
		// Segments are numbered without a gap, so the first missing number is the end.
		s := y.f.Find(secPostings + i)
		if s.Length == 0 {
			break
		}

		b, err := y.f.Bytes(s.ID)
		if err != nil {
			return err
		}

		segments = append(segments, b)
	}

	post, err := trigram.Open(segments, nil)
	if err != nil {
		return fmt.Errorf("%w: %w", file.ErrDamaged, err)
	}

	// A page is one unit. If there were more units than pages, the postings would name missing
	// pages.
	units := 0
	for i := range segments {
		units += post.Units(i)
	}
	if pages := y.pageEnd.Len(); units != pages {
		return fmt.Errorf("%w: %d pages, postings of %d", file.ErrDamaged, pages, units)
	}

	y.post = post
	return nil
}

// damagedFile turns an error about corrupt postings into one that names the file as damaged. It
// returns other errors unchanged.
func (y *File) damagedFile(err error) error {
	if errors.Is(err, trigram.ErrCorrupt) {
		return y.f.Damaged("%w", err)
	}
	return err
}
