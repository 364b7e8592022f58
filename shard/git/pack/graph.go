package pack

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"syscall"
)

// Graph is the commit graph that git keeps of a repository, mapped: parents,
// time and root tree of each commit, and a filter of the paths that it
// changed. A commit is known by its position; a million of them are walked in
// less time than git takes to print a thousand. It may be used by several
// goroutines, in [Protect].
//
// A layer is a file:
//
//	0    "CGPH", version=1, 1 for SHA-1 or 2 for SHA-256, number of chunks, number of layers below
//	8    a row for each chunk, and one for the end: 4 bytes its name, 8 bytes where it begins
//	     OIDF  how many ids begin with a byte or a lesser one: 256 numbers of 4 bytes
//	     OIDL  the ids, sorted
//	     CDAT  of each commit: id of its tree, first and second parent (positions
//	           over all layers), 30 bits of its generation, 34 of its time
//	     EDGE  further parents: positions; the highest bit marks the last of a commit
//	     GDA2  how much later than its own time the corrected time of each commit is, or
//	           with the highest bit set a row of
//	     GDO2  8 bytes each, for what 31 bits cannot say
//	     BIDX  where the filter of each commit ends
//	     BDAT  version, hashes, bits of an entry; then the filters
//
// Other chunks, which newer versions of git write, are passed over. A file of
// another version is not read: the graph has no commits then. For example, the
// parents of a merge of the commits at the positions 2, 5 and 7, which has the
// first further parents of the file:
//
//	CDAT  ... 00 00 00 02  80 00 00 00 ...      2; the rest from edge 0 on
//	EDGE  00 00 00 05  80 00 00 07              5; 7, the last
type Graph struct {
	layers  []*layer // the oldest first
	commits int
	idBytes int
}

// layer is one file of the graph.
type layer struct {
	data            []byte
	first, commits  int // position of its first commit, and how many it has
	fanout, ids     []byte
	facts, edges    []byte
	later, muchMore []byte // of corrected times; empty when there are none
	ends, filters   []byte // of the filters; empty when there are none
	version, hashes uint32 // of the filters
}

const (
	graphHeader = 8
	chunkRow    = 12
	noParent    = 0x70000000
	moreParents = 0x80000000 // the rest is an index into the edges
	factBytes   = 16         // of a commit, besides the id of its tree
	filterHead  = 12
	maxLayers   = 64      // git joins them long before
	maxChainTxt = 8 << 10 // bytes of the list of layers
	mostParents = 1 << 16 // of one commit
)

// OpenGraph maps the commit graph of the repository in dir. One that has none,
// or one that is not read here, has a graph without commits.
func OpenGraph(dir string) *Graph {
	g := &Graph{}
	for _, name := range graphFiles(dir) {
		if err := g.add(name); err != nil {
			g.Close()
			return g
		}
	}
	return g
}

// graphFiles are the files of the graph, the oldest layer first.
func graphFiles(dir string) []string {
	root, err := os.OpenRoot(filepath.Join(dir, "objects", "info"))
	if err != nil {
		return nil
	}
	defer root.Close()

	single := filepath.Join(root.Name(), "commit-graph")
	if _, err := root.Lstat("commit-graph"); !errors.Is(err, fs.ErrNotExist) {
		return []string{single}
	}

	// Several layers: their names stand in a file.
	chain, err := ReadFile(root, "commit-graphs/commit-graph-chain", maxChainTxt)
	if err != nil {
		return nil
	}

	var names []string
	for sum := range strings.FieldsSeq(string(chain)) {
		if !IsID(sum) || len(names) == maxLayers {
			return nil
		}

		names = append(names, filepath.Join(root.Name(), "commit-graphs", "graph-"+sum+".graph"))
	}
	return names
}

// add maps one more file.
func (g *Graph) add(name string) error {
	data, err := mapFile(name)
	if err != nil {
		return err
	}
	return g.addLayer(data)
}

// addLayer adds a file on top of the others.
func (g *Graph) addLayer(data []byte) error {
	l := &layer{data: data, first: g.commits}
	g.layers = append(g.layers, l)
	if err := Protect(func() error { return l.parse(g) }); err != nil {
		return err
	}
	g.commits += l.commits
	return nil
}

// parse finds the chunks of a file and checks their sizes.
func (l *layer) parse(g *Graph) error {
	if err := l.parseHeader(g); err != nil {
		return err
	}
	if err := l.findChunks(); err != nil {
		return err
	}

	// Everything that is read of a commit is in chunks as long as they must be.
	if len(l.fanout) != 1024 {
		return errDamaged
	}
	l.commits = int(binary.BigEndian.Uint32(l.fanout[1020:]))
	if len(l.ids) != l.commits*g.idBytes || len(l.facts) != l.commits*(g.idBytes+factBytes) || l.first+l.commits >= noParent {
		return errDamaged
	}
	l.parseFilters()
	return nil
}

// parseHeader checks the first bytes, which have to fit those of the layers
// below.
func (l *layer) parseHeader(g *Graph) error {
	d := l.data

	// Positions count over all layers, so one out of its place would name wrong commits.
	if len(d) < graphHeader+chunkRow || string(d[:4]) != "CGPH" || d[4] != 1 || int(d[7]) != len(g.layers)-1 {
		return errDamaged
	}

	idBytes := map[byte]int{1: 20, 2: 32}[d[5]]
	if idBytes == 0 || g.idBytes != 0 && g.idBytes != idBytes {
		return errDamaged
	}

	g.idBytes = idBytes
	return nil
}

// findChunks reads the table of chunks.
func (l *layer) findChunks() error {
	be, d := binary.BigEndian, l.data
	count := int(d[6])
	if len(d) < graphHeader+chunkRow*(count+1) {
		return errDamaged
	}

	// Which chunks there are, and where; those not known here are passed over.
	for i := range count {
		// A chunk ends where the next begins; the table has a row for the end.
		row := d[graphHeader+chunkRow*i:]
		from, to := be.Uint64(row[4:]), be.Uint64(row[4+chunkRow:])
		if from > to || to > uint64(len(d)) {
			return errDamaged
		}

		chunk := d[from:to]

		// Ids with their fan-out, facts, parents of merges, and filters of changed paths.
		switch string(row[:4]) {
		case "OIDF":
			l.fanout = chunk
		case "OIDL":
			l.ids = chunk

		case "CDAT":
			l.facts = chunk
		case "EDGE":
			l.edges = chunk
		case "GDA2":
			l.later = chunk
		case "GDO2":
			l.muchMore = chunk
		case "BIDX":
			l.ends = chunk
		case "BDAT":
			l.filters = chunk
		}
	}
	return nil
}

// parseFilters looks at the head of the filters. Without them, or with those
// of a version that is not known, the graph has none.
func (l *layer) parseFilters() {
	be := binary.BigEndian
	if len(l.ends) == 4*l.commits && len(l.filters) >= filterHead {
		l.version, l.hashes = be.Uint32(l.filters), be.Uint32(l.filters[4:])
		l.filters = l.filters[filterHead:]
		if l.version >= 1 && l.version <= 2 && l.hashes > 0 && l.hashes <= 64 {
			return
		}
	}
	l.ends, l.filters = nil, nil
}

// Close gives the mappings back. The graph has no commits afterwards.
func (g *Graph) Close() {
	for _, l := range g.layers {
		_ = syscall.Munmap(l.data)
	}
	*g = Graph{}
}

// Commits is how many commits the graph has: their positions are below it.
func (g *Graph) Commits() int { return g.commits }

// at finds the layer of a position, and the commit's number in it.
func (g *Graph) at(pos uint32) (*layer, int) {
	for i := len(g.layers) - 1; i > 0; i-- {
		if l := g.layers[i]; int(pos) >= l.first {
			return l, int(pos) - l.first
		}
	}
	return g.layers[0], int(pos)
}

// Find gives the position of a commit.
func (g *Graph) Find(id []byte) (pos uint32, ok bool) {
	if len(id) == 0 || len(id) != g.idBytes {
		return 0, false
	}

	be := binary.BigEndian
	for _, l := range slices.Backward(g.layers) {
		// The ids that begin with this byte. The rows of the table were not checked before.
		from, to := 0, int(be.Uint32(l.fanout[4*int(id[0]):]))
		if id[0] > 0 {
			from = int(be.Uint32(l.fanout[4*int(id[0])-4:]))
		}
		if from > to || to > l.commits {
			return 0, false
		}

		i := from + sort.Search(to-from, func(i int) bool { return bytes.Compare(l.id(from+i, g.idBytes), id) >= 0 })
		if i < to && bytes.Equal(l.id(i, g.idBytes), id) {
			return uint32(l.first + i), true
		}
	}
	return 0, false
}

func (l *layer) id(i, idBytes int) []byte { return l.ids[i*idBytes : (i+1)*idBytes] }

// ID is the id of a commit. It is part of the mapping.
func (g *Graph) ID(pos uint32) []byte {
	l, i := g.at(pos)
	return l.id(i, g.idBytes)
}

// Tree is the id of a commit's root tree. It is part of the mapping.
func (g *Graph) Tree(pos uint32) []byte {
	l, i := g.at(pos)
	return l.facts[i*(g.idBytes+factBytes):][:g.idBytes]
}

// Date is when a commit was made, in seconds since 1970.
func (g *Graph) Date(pos uint32) int64 {
	l, i := g.at(pos)
	return int64(binary.BigEndian.Uint64(l.facts[i*(g.idBytes+factBytes)+g.idBytes+8:]) & (1<<34 - 1))
}

// Generation is one more than the largest of a commit's parents, 1 for a commit
// without any; 0 where the graph does not know it. It stops rising at 1<<30 - 1.
func (g *Graph) Generation(pos uint32) uint32 {
	l, i := g.at(pos)
	return binary.BigEndian.Uint32(l.facts[i*(g.idBytes+factBytes)+g.idBytes+8:]) >> 2
}

// Latest is a bound on the times of a commit and of its whole history, in seconds
// since 1970: none of them is later. math.MaxInt64 where the graph does not know one.
// A parent's clock may be ahead of its child's, so the child's own time is no bound.
func (g *Graph) Latest(pos uint32) int64 {
	l, i := g.at(pos)
	if len(l.later) != 4*l.commits {
		return math.MaxInt64
	}

	// The corrected time of git: at least one second more than that of each parent.
	by := uint64(binary.BigEndian.Uint32(l.later[4*i:]))
	if by&moreParents != 0 {
		row := int(by&^moreParents) * 8
		if row+8 > len(l.muchMore) {
			return math.MaxInt64
		}
		by = binary.BigEndian.Uint64(l.muchMore[row:])
	}
	if by >= 1<<62 {
		return math.MaxInt64
	}
	return g.Date(pos) + int64(by)
}

// Parents appends the positions of a commit's parents, all of them below
// Commits. The error is ErrAskGit.
func (g *Graph) Parents(dst []uint32, pos uint32) ([]uint32, error) {
	l, i := g.at(pos)
	fact := l.facts[i*(g.idBytes+factBytes)+g.idBytes:]
	first, second := binary.BigEndian.Uint32(fact), binary.BigEndian.Uint32(fact[4:])
	if first == noParent {
		return dst, nil
	}

	from := len(dst)
	dst = append(dst, first)

	// One parent, two, or a list of them whose last row is marked.
	switch {
	case second == noParent:
	case second&moreParents == 0:
		dst = append(dst, second)
	default:
		// A merge of three or more: a row of 4 bytes each.
		for e := int(second&^moreParents) * 4; ; e += 4 {
			if e+4 > len(l.edges) || len(dst)-from > mostParents {
				return dst, ask(errDamaged)
			}
			edge := binary.BigEndian.Uint32(l.edges[e:])
			dst = append(dst, edge&^moreParents)
			if edge&moreParents != 0 {
				break
			}
		}
	}

	// A parent beyond the graph would lead outside of its tables.
	for _, p := range dst[from:] {
		if int(p) >= g.commits {
			return dst, ask(errDamaged)
		}
	}
	return dst, nil
}
