package change

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/klauspost/compress/zstd"

	"github.com/shoalsearch/shoal/shard/file"
)

// Tip is a revision, and the commit whose history the log covers for it.
type Tip struct {
	Name   string `json:"name"` // "HEAD" or a full ref name
	Commit string `json:"commit"`
}

// manifestFormat is the format of manifests. A log of an older format is rebuilt; one of a newer
// format stays unchanged.
const manifestFormat = 4

const manifestName = "manifest.json"

// manifest names the files of a log, and what they cover.
type manifest struct {
	Format    int       `json:"format"`
	Bound     string    `json:"bound"`     // as Bound prints it
	Revisions []Tip     `json:"revisions"` // nil while the first commits are read
	Files     []file.ID `json:"files"`
	Reach     []byte    `json:"reach"` // of each commit a bit for each distinct commit of Revisions, 8 bytes, compressed
	Cut       bool      `json:"cut"`   // commits beyond the bound, or beyond a shallow mirror, are left out
}

// Log has the changes of one repository, in its own directory. Searches may run concurrently,
// together with one update.
type Log struct {
	dir string

	mu     sync.Mutex  // guards the fields below
	state  *generation // what searches read; nil before the first look
	update sync.Mutex
}

// generation is one state of a log. It is immutable except for its number of readers.
type generation struct {
	m     manifest
	files []*index
	reach []uint64 // by number of a commit

	firstParents map[string]string // by id of a commit, where the files lack the parents; nil else

	derive sync.Once
	live   []*roaring.Bitmap // by file, the commits that a revision reaches; see [generation.reachable]

	mu      sync.Mutex
	readers int
	old     bool // another one has taken its place
}

// Open returns the log in dir, which need not exist. It does no I/O.
func Open(dir string) *Log { return &Log{dir: dir} }

// acquire returns the current state. The caller must release it.
func (l *Log) acquire() (*generation, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state == nil {
		s, err := load(l.dir)
		if err != nil {
			return nil, err
		}
		l.state = s
	}
	l.state.mu.Lock()
	l.state.readers++
	l.state.mu.Unlock()
	return l.state, nil
}

// release ends a use of the generation. The last one closes a replaced generation.
func (s *generation) release() {
	s.mu.Lock()
	s.readers--
	last := s.old && s.readers == 0
	s.mu.Unlock()
	if last {
		s.close()
	}
}

// retire closes a state once nobody reads it.
func (s *generation) retire() {
	s.mu.Lock()
	s.old = true
	last := s.readers == 0
	s.mu.Unlock()
	if last {
		s.close()
	}
}

func (s *generation) close() {
	for _, x := range s.files {
		x.close()
	}
}

// Close closes the files. The next use opens them again.
func (l *Log) Close() {
	l.update.Lock()
	defer l.update.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state != nil {
		l.state.retire()
		l.state = nil
	}
}

// load reads the manifest in a directory and opens its files. Without a manifest the state is
// empty.
func load(dir string) (*generation, error) {
	s := &generation{}
	text, err := os.ReadFile(filepath.Join(dir, manifestName))
	if errors.Is(err, os.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("changes: %w", err)
	}
	if err := json.Unmarshal(text, &s.m); err != nil {
		return nil, fmt.Errorf("changes: %s: %w: %w", dir, file.ErrDamaged, err)
	}
	switch {
	case s.m.Format > manifestFormat:
		return nil, fmt.Errorf("changes: %s has format %d, and this program reads %d: %w", dir, s.m.Format, manifestFormat, file.ErrNewer)
	case s.m.Format < manifestFormat:
		return &generation{}, nil
	}
	if err := s.open(dir); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// open opens the files of the manifest.
func (s *generation) open(dir string) error {
	for _, id := range s.m.Files {
		x, err := openIndex(dir, id, uint32(s.commits()))
		if err != nil {
			return err
		}
		s.files = append(s.files, x)
	}

	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return err
	}
	defer d.Close()
	raw, err := d.DecodeAll(s.m.Reach, nil)
	if err != nil || len(s.m.Revisions) > 0 && len(raw) != 8*s.commits() {
		return fmt.Errorf("changes: %s: what revisions reach: %w", dir, file.ErrDamaged)
	}
	s.reach = make([]uint64, len(raw)/8)
	for i := range s.reach {
		s.reach[i] = file.Column64(raw).At(i)
	}
	return nil
}

// commits returns the number of commits in the files.
func (s *generation) commits() (n int) {
	for _, x := range s.files {
		n += x.m.Commits
	}
	return n
}

// find returns the number of a commit.
func (s *generation) find(id string) (uint32, bool) {
	b, err := hex.DecodeString(id)
	if err != nil {
		return 0, false
	}
	for _, x := range s.files {
		if n, ok := x.find(b); ok {
			return n, true
		}
	}
	return 0, false
}

// bits gives each distinct commit of the revisions a bit of its own. Commits after the 64th get
// none.
func bits(revisions []Tip) map[string]uint64 {
	out := map[string]uint64{}
	for _, r := range revisions {
		if _, ok := out[r.Commit]; !ok && len(out) < 64 {
			out[r.Commit] = 1 << len(out)
		}
	}
	return out
}

// reached computes which revisions reach each commit. A commit reaches its parents, which have
// lower numbers.
func reached(files []*index, tips map[uint32]uint64) (reach []uint64, cut bool) {
	n := 0
	for _, x := range files {
		n += x.m.Commits
	}
	reach = make([]uint64, n)
	for c, bit := range tips {
		reach[c] |= bit
	}
	for i := len(files) - 1; i >= 0; i-- {
		x := files[i]
		for c := x.m.Commits - 1; c >= 0; c-- {
			from := reach[x.base+uint32(c)]
			if from == 0 {
				continue
			}
			for _, p := range x.parentsOf(uint32(c)) {
				if p == none {
					cut = true
				} else {
					reach[p] |= from
				}
			}
		}
	}
	return reach, cut
}

// publish replaces the manifest. From then on, searches read the files that it names.
func (l *Log) publish(m manifest) error {
	m.Format = manifestFormat
	text, err := json.Marshal(&m)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(l.dir, file.TempPrefix+"*")
	if err != nil {
		return fmt.Errorf("changes: %w", err)
	}
	if _, err = f.Write(text); err == nil {
		err = file.Publish(f, filepath.Join(l.dir, manifestName))
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return err
	}

	s, err := load(l.dir)
	if err != nil {
		return err
	}
	l.mu.Lock()
	if l.state != nil {
		l.state.retire()
	}
	l.state = s
	l.mu.Unlock()
	return l.sweep(m.Files)
}

// sweep removes files that the manifest does not name. A search that reads such a file can finish.
func (l *Log) sweep(files []file.ID) error {
	entries, err := os.ReadDir(l.dir)
	if err != nil {
		return fmt.Errorf("changes: %w", err)
	}
	for _, e := range entries {
		named := e.Name() == manifestName || slices.ContainsFunc(files, func(id file.ID) bool { return id.Name(file.KindChanges) == e.Name() })
		if !named {
			_ = os.Remove(filepath.Join(l.dir, e.Name()))
		}
	}
	return nil
}

// Extent says what a log covers.
type Extent struct {
	Revisions []Tip
	Bound     string // as [Bound] prints it
	Commits   int    // that a revision reaches
	Files     int    // of all commits
	Named     int    // of those: binary and huge ones, of which only the name is known
	Unread    int    // commits whose changes could not be read
	Text      int64  // bytes of changed lines and messages
	Bytes     int64  // on disk
	Cut       bool   // older commits are left out, by a bound or because the mirror lacks them
}

// Extent returns what the log covers: its revisions, and its numbers of commits, files and bytes.
func (l *Log) Extent(ctx context.Context) (Extent, error) {
	s, err := l.acquire()
	if err != nil {
		return Extent{}, err
	}
	defer s.release()
	out := Extent{Revisions: s.m.Revisions, Bound: s.m.Bound, Cut: s.m.Cut}
	for _, mask := range s.reach {
		if mask != 0 {
			out.Commits++
		}
	}
	for _, x := range s.files {
		out.Text, out.Bytes, out.Unread, out.Files = out.Text+x.m.Text, out.Bytes+x.f.Size(), out.Unread+len(x.m.Unread), out.Files+x.m.Files
		out.Named += x.m.Named
	}
	return out, ctx.Err()
}

// Bound limits how much of a history the log covers. The zero value covers nothing.
type Bound struct {
	All     bool
	Commits int           // the newest so many
	Age     time.Duration // those of so much time
}

// Off reports whether nothing is covered.
func (b Bound) Off() bool { return b == Bound{} }

// String returns the bound as an operator writes it.
func (b Bound) String() string {
	switch {
	case b.Off():
		return "off"
	case b.Commits > 0:
		return fmt.Sprintf("%d commits", b.Commits)
	case b.Age > 0:
		return fmt.Sprintf("%d days", b.Age/(24*time.Hour))
	}
	return "all"
}

// ParseBound reads "all", "off", "1000 commits" or "90 days".
func ParseBound(text string) (Bound, error) {
	switch text {
	case "all":
		return Bound{All: true}, nil
	case "off":
		return Bound{}, nil
	}
	var n int
	var unit string
	if _, err := fmt.Sscanf(text, "%d %s", &n, &unit); err == nil && n > 0 {
		switch {
		case unit == "commits" && n <= 1<<30:
			return Bound{Commits: n}, nil
		case unit == "days" && n <= 36500:
			return Bound{Age: time.Duration(n) * 24 * time.Hour}, nil
		}
	}
	return Bound{}, fmt.Errorf("history %q: want all, off, a number of commits as \"200000 commits\", or of days as \"90 days\"", text)
}
