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

// Graph is the commit graph of a repository, mapped into memory: the parents, time and root tree of
// each commit, and a filter of the paths that it changed. A position identifies a commit. Walking a
// million commits takes less time than git takes to print a thousand. Several goroutines may use a
// Graph, inside [Protect].
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
// Graph ignores other chunks, which newer versions of git write. If a file has another version, the
// graph has no commits. For example, a merge of the commits at the positions 2, 5 and 7, whose
// further parents are the first in EDGE, has these parents:
//
//	CDAT  ... 00 00 00 02  80 00 00 00 ...      2; further parents from edge 0 on
//	EDGE  00 00 00 05  80 00 00 07              5; 7, the last
type Graph struct {
	layers  []*layer // the oldest comes first
	commits int
	idBytes int
}

// layer is one file of the graph. The slices without data are its chunks.
type layer struct {
	data             []byte
	first, commits   int    // position of its first commit, and number of its commits
	fanout, ids      []byte // OIDF, OIDL
	facts, edges     []byte // CDAT, EDGE
	later, muchLater []byte // GDA2, GDO2; empty if there are none
	ends, filters    []byte // BIDX, BDAT without its head; empty if there are none
	version, hashes  uint32 // version and number of hashes of the filters
}

const (
	graphHeader = 8
	chunkRow    = 12
	noParent    = 0x70000000
	moreParents = 0x80000000 // the other bits are an index into the edges
	inMuchLater = 0x80000000 // the other bits are an index into muchLater
	factBytes   = 16         // bytes of a commit in CDAT, without the id of its tree
	filterHead  = 12
	maxLayers   = 64      // git merges layers before there are so many
	maxChainTxt = 8 << 10 // bytes in the list of layers
	maxParents  = 1 << 16 // parents of one commit
)

// OpenGraph maps the commit graph of the repository in dir. If there is none, or its format is
// unknown, the graph has no commits.
func OpenGraph(dir string) *Graph {
	g := &Graph{}
	for _, name := range graphFiles(dir) {
		if err := g.openLayer(name); err != nil {
			g.Close()
			return g
		}
	}
	return g
}

// graphFiles returns the files of the graph, the oldest layer first.
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

	// If there are several layers, a file lists their names.
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

// openLayer maps a file and adds it as a layer on top of the layers so far.
func (g *Graph) openLayer(name string) error {
	data, err := mapFile(name)
	if err != nil {
		return err
	}
	return g.addLayer(data)
}

// addLayer adds a mapped file as a layer on top of the layers so far.
func (g *Graph) addLayer(data []byte) error {
	l := &layer{data: data, first: g.commits}
	g.layers = append(g.layers, l)
	if err := Protect(func() error { return l.parse(g) }); err != nil {
		return err
	}
	g.commits += l.commits
	return nil
}

// parse finds the chunks of a layer and checks their sizes.
func (l *layer) parse(g *Graph) error {
	if err := l.parseHeader(g); err != nil {
		return err
	}
	if err := l.findChunks(); err != nil {
		return err
	}

	// Check the length of every chunk that is read for a commit.
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

// parseHeader checks the header: the version, and that the number of layers and the length of ids
// agree with the layers below.
func (l *layer) parseHeader(g *Graph) error {
	d := l.data

	// Positions count over all layers, so a misplaced layer would name wrong commits.
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

	// Find each known chunk, and ignore unknown ones.
	for i := range count {
		// A chunk ends where the next one begins; the table has a row for the end.
		row := d[graphHeader+chunkRow*i:]
		from, to := be.Uint64(row[4:]), be.Uint64(row[4+chunkRow:])
		if from > to || to > uint64(len(d)) {
			return errDamaged
		}

		chunk := d[from:to]

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
			l.muchLater = chunk
		case "BIDX":
			l.ends = chunk
		case "BDAT":
			l.filters = chunk
		}
	}
	return nil
}

// parseFilters checks the head of the filters. If there are none, or their version is unknown, the
// layer has no filters.
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

// Close unmaps the files. Afterwards the graph has no commits.
func (g *Graph) Close() {
	for _, l := range g.layers {
		_ = syscall.Munmap(l.data)
	}
	*g = Graph{}
}

// Commits returns the number of commits in the graph. Positions are below it.
func (g *Graph) Commits() int { return g.commits }

// findLayer returns the layer of a position, and the index of the commit in that layer.
func (g *Graph) findLayer(pos uint32) (*layer, int) {
	for i := len(g.layers) - 1; i > 0; i-- {
		if l := g.layers[i]; int(pos) >= l.first {
			return l, int(pos) - l.first
		}
	}
	return g.layers[0], int(pos)
}

// Find returns the position of a commit; ok is false if the graph lacks it.
func (g *Graph) Find(id []byte) (pos uint32, ok bool) {
	if len(id) == 0 || len(id) != g.idBytes {
		return 0, false
	}

	be := binary.BigEndian
	for _, l := range slices.Backward(g.layers) {
		// Find the ids that begin with this byte. The fan-out may be damaged, so check its rows.
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

// ID returns the id of a commit. It is part of the mapping.
func (g *Graph) ID(pos uint32) []byte {
	l, i := g.findLayer(pos)
	return l.id(i, g.idBytes)
}

// Tree returns the id of a commit's root tree. It is part of the mapping.
func (g *Graph) Tree(pos uint32) []byte {
	l, i := g.findLayer(pos)
	return l.facts[i*(g.idBytes+factBytes):][:g.idBytes]
}

// Date returns the time of a commit in seconds since 1970.
func (g *Graph) Date(pos uint32) int64 {
	l, i := g.findLayer(pos)
	return int64(binary.BigEndian.Uint64(l.facts[i*(g.idBytes+factBytes)+g.idBytes+8:]) & (1<<34 - 1))
}

// Generation returns one more than the greatest generation of a commit's parents; 1 for a commit
// without parents, 0 if the graph does not know it. It is at most 1<<30 - 1.
func (g *Graph) Generation(pos uint32) uint32 {
	l, i := g.findLayer(pos)
	return binary.BigEndian.Uint32(l.facts[i*(g.idBytes+factBytes)+g.idBytes+8:]) >> 2
}

// Latest returns an upper bound for the times of a commit and of its whole history, in seconds
// since 1970; math.MaxInt64 if the graph knows none. The commit's own time is no bound, because the
// clock of a parent's author may have been ahead.
func (g *Graph) Latest(pos uint32) int64 {
	l, i := g.findLayer(pos)
	if len(l.later) != 4*l.commits {
		return math.MaxInt64
	}

	// Git's corrected time is at least one second later than that of each parent.
	by := uint64(binary.BigEndian.Uint32(l.later[4*i:])) // seconds
	if by&inMuchLater != 0 {
		row := int(by&^inMuchLater) * 8
		if row+8 > len(l.muchLater) {
			return math.MaxInt64
		}
		by = binary.BigEndian.Uint64(l.muchLater[row:])
	}
	if by >= 1<<62 {
		return math.MaxInt64
	}
	return g.Date(pos) + int64(by)
}

// Parents appends the positions of a commit's parents, which are all below Commits. The error wraps
// ErrAskGit.
func (g *Graph) Parents(dst []uint32, pos uint32) ([]uint32, error) {
	l, i := g.findLayer(pos)
	fact := l.facts[i*(g.idBytes+factBytes)+g.idBytes:]
	first, second := binary.BigEndian.Uint32(fact), binary.BigEndian.Uint32(fact[4:])
	if first == noParent {
		return dst, nil
	}

	from := len(dst)
	dst = append(dst, first)

	// There are one or two parents, or a list whose last row is marked.
	switch {
	case second == noParent:
	case second&moreParents == 0:
		dst = append(dst, second)
	default:
		// A merge of three or more has rows of 4 bytes each.
		for e := int(second&^moreParents) * 4; ; e += 4 {
			if e+4 > len(l.edges) || len(dst)-from > maxParents {
				return dst, wrapAskGit(errDamaged)
			}
			edge := binary.BigEndian.Uint32(l.edges[e:])
			dst = append(dst, edge&^moreParents)
			if edge&moreParents != 0 {
				break
			}
		}
	}

	// Callers use positions as indexes without a check.
	for _, p := range dst[from:] {
		if int(p) >= g.commits {
			return dst, wrapAskGit(errDamaged)
		}
	}
	return dst, nil
}
