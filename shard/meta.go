package shard

import "time"

// meta is the section that says what the columns number.
type meta struct {
	repos     []Repository
	languages []string // canonical names, "" for none, by the numbers of secOccLang
	documents int
	occurs    int
	paths     int
	units     int // rows of the unit columns
	segments  int // of text postings
	textBytes int64
	oidBytes  int // width of secDocID
}

func (m *meta) append(b []byte) []byte {
	e := encoder{b}
	e.repos(m.repos)
	e.uint(uint64(len(m.languages)))
	for _, l := range m.languages {
		e.text(l)
	}
	for _, n := range []int{m.documents, m.occurs, m.paths, m.units, m.segments, int(m.textBytes), m.oidBytes} {
		e.uint(uint64(n))
	}
	return e.b
}

func (e *encoder) repos(repos []Repository) {
	e.uint(uint64(len(repos)))
	for _, r := range repos {
		e.uint(uint64(r.ID))
		e.text(r.Name)
		e.uint(uint64(len(r.Revisions)))
		for _, v := range r.Revisions {
			e.text(v.Name)
			e.text(v.Commit)
			e.uint(uint64(v.Bit))
			e.uint(uint64(max(v.Time.Unix(), 0)))
		}
	}
}

func (d *decoder) repos() []Repository {
	repos := make([]Repository, d.count())
	for i := range repos {
		r := &repos[i]
		r.ID = uint32(d.uint())
		r.Name = d.text()
		n := d.count()
		r.Revisions = make([]Revision, n)
		for k := range r.Revisions {
			r.Revisions[k] = Revision{Name: d.text(), Commit: d.text(), Bit: uint8(d.uint()) & (maxRevisions - 1), Time: time.Unix(int64(d.uint()), 0).UTC()}
		}
	}
	return repos
}

// maxRevisions is the number of bits of a mask.
const maxRevisions = 64

func parseMeta(b []byte) (*meta, error) {
	d := decoder{b: b}
	m := &meta{repos: d.repos()}
	m.languages = make([]string, d.count())
	for i := range m.languages {
		m.languages[i] = d.text()
	}
	text := 0
	for _, n := range []*int{&m.documents, &m.occurs, &m.paths, &m.units, &m.segments, &text, &m.oidBytes} {
		*n = int(d.uint() & (1<<48 - 1))
	}
	m.textBytes = int64(text)
	if m.oidBytes > 32 {
		d.fail("width of blob ids")
	}
	return m, d.err
}
