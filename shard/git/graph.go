package git

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"syscall"
)

// graph is the commit graph that git keeps of a repository, mapped: parents,
// time and root tree of each commit, and a filter of the paths that it
// changed. A commit is known by its position; a million of them are walked in
// less time than git takes to print a thousand. The format is in git's
// gitformat-commit-graph.
type graph struct {
	layers  []*graphLayer // the oldest first
	commits int
	idBytes int
}

// graphLayer is one file of the graph.
type graphLayer struct {
	data            []byte
	first, commits  int // position of its first commit, and how many it has
	fanout, ids     []byte
	facts, edges    []byte
	ends, filters   []byte // of the filters; empty when there are none
	version, hashes uint32 // of the filters
}

const (
	graphHeader = 8
	noParent    = 0x70000000
	moreParents = 0x80000000 // the rest is an index into the edges
	factBytes   = 16         // of a commit, besides the id of its tree
	filterHead  = 12
)

// openGraph maps the graph of a repository. One that has none, or one that
// is damaged, has a graph without commits.
func openGraph(dir string) *graph {
	g := &graph{}
	info := filepath.Join(dir, "objects", "info")
	names := []string{filepath.Join(info, "commit-graph")}
	if chain, err := os.ReadFile(filepath.Join(info, "commit-graphs", "commit-graph-chain")); err == nil {
		if _, err := os.Stat(names[0]); errors.Is(err, fs.ErrNotExist) {
			names = nil
			for sum := range strings.FieldsSeq(string(chain)) {
				if !isHex(sum) {
					return g
				}
				names = append(names, filepath.Join(info, "commit-graphs", "graph-"+sum+".graph"))
			}
		}
	}
	for _, name := range names {
		if err := g.add(name); err != nil {
			g.close()
			return g
		}
	}
	return g
}

// add maps one more file.
func (g *graph) add(name string) error {
	data, err := mapFile(name)
	if err != nil {
		return err
	}
	l := &graphLayer{data: data, first: g.commits}
	g.layers = append(g.layers, l)
	if err := faultless(func() error { return l.parse(g) }); err != nil {
		return err
	}
	g.commits += l.commits
	return nil
}

// parse finds the chunks of a file and checks their sizes.
func (l *graphLayer) parse(g *graph) error {
	be, d := binary.BigEndian, l.data
	if len(d) < graphHeader+12 || string(d[:4]) != "CGPH" || d[4] != 1 || d[5] < 1 || d[5] > 2 || int(d[7]) != len(g.layers)-1 {
		return errPack
	}
	idBytes := map[byte]int{1: 20, 2: 32}[d[5]]
	if g.idBytes != 0 && g.idBytes != idBytes {
		return errPack
	}
	g.idBytes = idBytes
	count := int(d[6])
	if len(d) < graphHeader+12*(count+1) {
		return errPack
	}
	for i := range count {
		row := d[graphHeader+12*i:]
		from, to := be.Uint64(row[4:]), be.Uint64(row[16:])
		if from > to || to > uint64(len(d)) {
			return errPack
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
		case "BIDX":
			l.ends = chunk
		case "BDAT":
			l.filters = chunk
		}
	}
	if len(l.fanout) != 1024 {
		return errPack
	}
	l.commits = int(be.Uint32(l.fanout[1020:]))
	if len(l.ids) != l.commits*idBytes || len(l.facts) != l.commits*(idBytes+factBytes) || l.first+l.commits >= noParent {
		return errPack
	}
	if len(l.ends) != 4*l.commits || len(l.filters) < filterHead {
		l.ends, l.filters = nil, nil
		return nil
	}
	l.version, l.hashes = be.Uint32(l.filters), be.Uint32(l.filters[4:])
	l.filters = l.filters[filterHead:]
	if l.version < 1 || l.version > 2 || l.hashes == 0 || l.hashes > 64 {
		l.ends, l.filters = nil, nil
	}
	return nil
}

func (g *graph) close() {
	for _, l := range g.layers {
		_ = syscall.Munmap(l.data)
	}
	*g = graph{}
}

// at finds the layer of a position, and the commit's number in it.
func (g *graph) at(pos uint32) (*graphLayer, int) {
	for i := len(g.layers) - 1; i > 0; i-- {
		if l := g.layers[i]; int(pos) >= l.first {
			return l, int(pos) - l.first
		}
	}
	return g.layers[0], int(pos)
}

// find gives the position of a commit.
func (g *graph) find(id []byte) (pos uint32, ok bool) {
	if len(id) != g.idBytes {
		return 0, false
	}
	for _, l := range slices.Backward(g.layers) {
		from, to := 0, int(binary.BigEndian.Uint32(l.fanout[4*int(id[0]):]))
		if id[0] > 0 {
			from = int(binary.BigEndian.Uint32(l.fanout[4*int(id[0])-4:]))
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

func (l *graphLayer) id(i, idBytes int) []byte { return l.ids[i*idBytes : (i+1)*idBytes] }

// id is the id of a commit. It is part of the mapping.
func (g *graph) id(pos uint32) []byte {
	l, i := g.at(pos)
	return l.id(i, g.idBytes)
}

// tree is the id of a commit's root tree. It is part of the mapping.
func (g *graph) tree(pos uint32) []byte {
	l, i := g.at(pos)
	return l.facts[i*(g.idBytes+factBytes):][:g.idBytes]
}

// date is when a commit was made, in seconds.
func (g *graph) date(pos uint32) int64 {
	l, i := g.at(pos)
	return int64(binary.BigEndian.Uint64(l.facts[i*(g.idBytes+factBytes)+g.idBytes+8:]) & (1<<34 - 1))
}

// parents appends the positions of a commit's parents.
func (g *graph) parents(dst []uint32, pos uint32) ([]uint32, error) {
	l, i := g.at(pos)
	fact := l.facts[i*(g.idBytes+factBytes)+g.idBytes:]
	first, second := binary.BigEndian.Uint32(fact), binary.BigEndian.Uint32(fact[4:])
	if first == noParent {
		return dst, nil
	}
	dst = append(dst, first)
	switch {
	case second == noParent:
	case second&moreParents == 0:
		dst = append(dst, second)
	default:
		for e := int(second&^moreParents) * 4; ; e += 4 {
			if e+4 > len(l.edges) {
				return dst, errPack
			}
			edge := binary.BigEndian.Uint32(l.edges[e:])
			dst = append(dst, edge&^moreParents)
			if edge&moreParents != 0 {
				break
			}
		}
	}
	for _, p := range dst {
		if int(p) >= g.commits {
			return dst, errPack
		}
	}
	return dst, nil
}

// pathKey is a path as the filters ask for it: the hashes of the path and of
// the directories above it, for each version of the filters.
type pathKey [3][][2]uint32

func newPathKey(path string) *pathKey {
	k := &pathKey{}
	for {
		for version := 1; version <= 2; version++ {
			k[version] = append(k[version], [2]uint32{
				murmur3(0x293ae76f, path, version == 1), murmur3(0x7e646e2c, path, version == 1),
			})
		}
		i := strings.LastIndexByte(path, '/')
		if i < 0 {
			return k
		}
		path = path[:i]
	}
}

// unchanged tells that a commit certainly has the same at a path as its first
// parent.
func (g *graph) unchanged(pos uint32, k *pathKey) bool {
	l, i := g.at(pos)
	if l.ends == nil {
		return false
	}
	from, to := uint32(0), binary.BigEndian.Uint32(l.ends[4*i:])
	if i > 0 {
		from = binary.BigEndian.Uint32(l.ends[4*i-4:])
	}
	if from >= to || int(to) > len(l.filters) {
		return false // none was made
	}
	filter := l.filters[from:to]
	size := uint64(len(filter)) * 8
	for _, h := range k[l.version] {
		for n := range l.hashes {
			bit := uint64(h[0]+n*h[1]) % size
			if filter[bit/8]&(1<<(bit%8)) == 0 {
				return true
			}
		}
	}
	return false
}

// murmur3 is the hash of the filters. The first version of them took bytes
// for signed numbers.
func murmur3(seed uint32, s string, signed bool) uint32 {
	const c1, c2 = 0xcc9e2d51, 0x1b873593
	at := func(i int) uint32 {
		if signed {
			return uint32(int32(int8(s[i])))
		}
		return uint32(s[i])
	}
	mix := func(k uint32) uint32 { return bits.RotateLeft32(k*c1, 15) * c2 }
	i := 0
	for ; i+4 <= len(s); i += 4 {
		seed ^= mix(at(i) | at(i+1)<<8 | at(i+2)<<16 | at(i+3)<<24)
		seed = bits.RotateLeft32(seed, 13)*5 + 0xe6546b64
	}
	var k uint32
	switch len(s) - i {
	case 3:
		k ^= at(i+2) << 16
		fallthrough
	case 2:
		k ^= at(i+1) << 8
		fallthrough
	case 1:
		k ^= at(i)
		seed ^= mix(k)
	}
	seed ^= uint32(len(s))
	seed = (seed ^ seed>>16) * 0x85ebca6b
	seed = (seed ^ seed>>13) * 0xc2b2ae35
	return seed ^ seed>>16
}
