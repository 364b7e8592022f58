package shard

import (
	"time"

	"github.com/shoalsearch/shoal/shard/file"
)

// meta is the first section: counts, and the tables that numbers in the columns refer to.
type meta struct {
	repos     []Repository
	languages []string // canonical names, by the numbers of secOccLang; "" means none
	documents int
	occurs    int
	paths     int
	units     int // rows of the unit columns
	segments  int // segments of text postings
	textBytes int64
	oidBytes  int // width of secDocID
}

// append appends meta in the form that parseMeta reads.
func (m *meta) append(b []byte) []byte {
	e := &file.Encoder{B: b}
	appendRepos(e, m.repos)
	e.Uint(uint64(len(m.languages)))
	for _, l := range m.languages {
		e.Text(l)
	}

	for _, n := range []int{m.documents, m.occurs, m.paths, m.units, m.segments, int(m.textBytes), m.oidBytes} {
		e.Uint(uint64(n))
	}
	return e.B
}

// appendRepos appends repositories in the form that readRepos reads.
func appendRepos(e *file.Encoder, repos []Repository) {
	e.Uint(uint64(len(repos)))

	for _, r := range repos {
		e.Uint(uint64(r.ID))
		e.Text(r.Name)
		e.Uint(uint64(len(r.Revisions)))
		for _, v := range r.Revisions {
			e.Text(v.Name)
			e.Text(v.Commit)
			e.Uint(uint64(v.Bit))

			// Numbers have no sign, so a date before 1970 becomes 0.
			e.Uint(uint64(max(v.Time.Unix(), 0)))
		}
	}
}

// readRepos decodes the repositories that appendRepos encoded. The caller checks d.Err.
func readRepos(d *file.Decoder) []Repository {
	repos := make([]Repository, d.Count())
	for i := range repos {
		r := &repos[i]
		r.ID = uint32(d.Uint())
		r.Name = d.Text()

		n := d.Count()
		r.Revisions = make([]Revision, n)
		for k := range r.Revisions {
			// Mask the bit number, so that a damaged file cannot index out of range.
			r.Revisions[k] = Revision{Name: d.Text(), Commit: d.Text(), Bit: uint8(d.Uint()) & (maxRevisions - 1), Time: time.Unix(int64(d.Uint()), 0).UTC()}
		}
	}
	return repos
}

// maxRevisions is the number of bits of a mask.
const maxRevisions = 64

// parseMeta decodes the metadata of a shard.
func parseMeta(b []byte) (*meta, error) {
	d := file.NewDecoder(b)
	m := &meta{repos: readRepos(d)}
	m.languages = make([]string, d.Count())
	for i := range m.languages {
		m.languages[i] = d.Text()
	}

	// With 48 bits a number times the width of a row cannot overflow.
	textBytes := 0
	for _, n := range []*int{&m.documents, &m.occurs, &m.paths, &m.units, &m.segments, &textBytes, &m.oidBytes} {
		*n = int(d.Uint() & (1<<48 - 1))
	}
	m.textBytes = int64(textBytes)

	if m.oidBytes > 32 {
		d.Fail("width of blob ids")
	}
	return m, d.Err()
}
