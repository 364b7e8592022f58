package catalog

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog/codec"
)

// Kept logs hold the entries that catalogs of each level have applied, with the states after them.
// The entries are random ones, and those of the tests of this package. The files never change once
// a release has their level.
//
//	testdata/logs/level-N.gz   for each log: name, number of entries, and for each
//	                           entry: length, bytes, 4 bytes of the state hash after it
//	testdata/logs/level-N.snapshot.gz   the state after the first of these logs
var rewrite = flag.Bool("rewrite", false, "write the logs of levels that no release has, after all tests of the package")

// keptLog is a log that begins with an empty catalog of a level.
type keptLog struct {
	name    string
	entries [][]byte // the first entry has index 1
	hashes  []uint32 // of the state after each entry
}

// replay applies a log with the rules of a program. It returns the state hash after each entry, and
// counts accepted commands by name.
func (l *keptLog) replay(b Build, level uint64, accepted map[string]int) (hashes []uint32, err error) {
	s := emptyOf(b, level)
	for i, data := range l.entries {
		e, err := DecodeEntry(uint64(i+1), data)
		if err != nil {
			return nil, err
		}
		for n, r := range s.Apply(e) {
			if r.Err == nil && n < len(e.Commands) {
				accepted[CommandName(e.Commands[n])]++
			}
		}
		hashes = append(hashes, uint32(s.View().Hash()))
	}
	return hashes, nil
}

// differs returns where a program's states differ from those in the log, or nil.
func (l *keptLog) differs(b Build, level uint64) error {
	hashes, err := l.replay(b, level, map[string]int{})
	if err != nil {
		return err
	}
	for i, hash := range hashes {
		if hash == l.hashes[i] {
			continue
		}
		var names []string
		e, _ := DecodeEntry(uint64(i+1), l.entries[i])
		for _, c := range e.Commands {
			names = append(names, CommandName(c))
		}
		return fmt.Errorf("level %d, log %q: entry %d (%s) leads to another catalog than it did.\n"+
			"Let the new rule wait for a level: CONTRIBUTING.md, \"To change what an entry does\"", level, l.name, i+1, strings.Join(names, ", "))
	}
	return nil
}

// emptyOf returns an empty catalog of a level.
func emptyOf(b Build, level uint64) *State {
	s := b.New()
	if level > 1 {
		s.setLevel(Level{Number: level, Version: b.Versions[level-1]})
	}
	return s
}

// The present program applies the logs of every level with the same results.
func TestLogsOfEveryLevel_applyWithTheSameResults(t *testing.T) {
	t.Parallel()
	accepted := map[string]int{}
	for level := uint64(1); level <= ThisBuild().Highest(); level++ {
		if *rewrite && !released(t, level) {
			continue // they are written after the tests
		}
		for _, l := range readKept(t, level) {
			if err := l.differs(ThisBuild(), level); err != nil {
				t.Error(err)
			}
			if _, err := l.replay(ThisBuild(), level, accepted); err != nil {
				t.Error(err)
			}
		}
	}

	for _, kind := range commandKinds {
		if name := kind.typ.Name(); accepted[name] == 0 && !*rewrite && name != "RaiseLevel" {
			t.Errorf("no kept log has a %s that is accepted: draw it in property_test.go, or tell a story of it in a test, and write the logs anew", name)
		}
	}
}

// A rule that changes without a new level is detected, whichever rule it is.
func TestLogsOfEveryLevel_revealARuleChangedWithoutALevel(t *testing.T) {
	t.Parallel()
	if *rewrite {
		return // the logs may not exist yet
	}
	logs := readKept(t, 1)
	for name, changed := range map[string]func(c Command) []Command{
		"configuration": func(c Command) []Command {
			if x, ok := c.(*SetConfig); ok {
				return []Command{&SetSecret{Name: "config", Sealed: x.Raw}}
			}
			return nil
		},
		"drained node": func(c Command) []Command {
			if x, ok := c.(*SetMemberState); ok && x.State == MemberDraining {
				return []Command{&SetMemberState{x.ID, MemberAlive}}
			}
			return nil
		},
		"touched key": func(c Command) []Command {
			if x, ok := c.(*TouchKeys); ok {
				return []Command{&TouchKeys{x.IDs, x.Used.Add(time.Hour)}}
			}
			return nil
		},
	} {
		b := ThisBuild()
		b.Also = func(_ *View, c Command) []Command { return changed(c) }
		if !slices.ContainsFunc(logs, func(l keptLog) bool {
			err := l.differs(b, 1)
			return err != nil && strings.Contains(err.Error(), "CONTRIBUTING.md")
		}) {
			t.Errorf("%s: every log leads to the same catalogs", name)
		}
	}
}

// The present program loads the snapshot of every level. It saves its own level to the same bytes.
func TestSnapshotsOfEveryLevel_load(t *testing.T) {
	t.Parallel()
	for level := uint64(1); level <= ThisBuild().Highest(); level++ {
		if *rewrite && !released(t, level) {
			continue
		}
		data, log := testdata(t, snapshotFile(level)), readKept(t, level)[0]
		s, err := Load(bytes.NewReader(data))
		if err != nil {
			t.Fatalf("level %d: %v", level, err)
		}
		checkTables(t, s)
		if got, want := uint32(s.View().Hash()), log.hashes[len(log.hashes)-1]; got != want {
			t.Errorf("level %d: the snapshot has hash %#x, want %#x as after its log", level, got, want)
		}

		var again bytes.Buffer
		if err := s.View().Save(&again); level == ThisBuild().Highest() && (err != nil || !bytes.Equal(again.Bytes(), data)) {
			t.Errorf("level %d: the loaded state is saved as %d other bytes, error %v", level, again.Len(), err)
		}
	}
}

// released reports whether the changelog has a section for the release that brought a level.
func released(t *testing.T, level uint64) bool {
	text, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(text), "\n## "+versions[level-1])
}

func keptFile(level uint64) string { return fmt.Sprintf("logs/level-%d.gz", level) }

func snapshotFile(level uint64) string { return fmt.Sprintf("logs/level-%d.snapshot.gz", level) }

func readKept(t *testing.T, level uint64) (logs []keptLog) {
	t.Helper()
	r := &codec.Reader{Rest: testdata(t, keptFile(level))}
	for len(r.Rest) > 0 {
		l := keptLog{name: string(r.Take(r.Uvarint()))}
		for range r.Uvarint() {
			l.entries = append(l.entries, r.Take(r.Uvarint()))
			if sum := r.Take(4); r.Err == nil {
				l.hashes = append(l.hashes, binary.LittleEndian.Uint32(sum))
			}
		}
		if r.Err != nil {
			t.Fatalf("level %d, log %q: %v", level, l.name, r.Err)
		}
		logs = append(logs, l)
	}
	return logs
}

// stories are the entries that the tests of this package applied.
var stories struct {
	sync.Mutex
	logs []*keptLog
}

// Limits of stories: otherwise a test with many random catalogs would fill the file.
const (
	maxStory   = 200 // entries per story
	maxStories = 3   // stories per test
)

// record stores the entry of a test while logs are written. It skips catalogs that did not begin
// empty.
func (b *book) record(data []byte) {
	if !*rewrite || b.story == nil && b.index != 1 {
		return
	}
	stories.Lock()
	defer stories.Unlock()
	if b.story == nil {
		n := 1
		for _, l := range stories.logs {
			if strings.HasPrefix(l.name, b.t.Name()+" #") {
				n++
			}
		}
		b.story = &keptLog{name: fmt.Sprintf("%s #%d", b.t.Name(), n)}
		if n <= maxStories {
			stories.logs = append(stories.logs, b.story)
		}
	}
	if len(b.story.entries) < maxStory {
		b.story.entries = append(b.story.entries, bytes.Clone(data))
	}
}

// drawn returns a log of random entries.
func drawn(level, seed uint64) keptLog {
	l := keptLog{name: fmt.Sprintf("drawn %d", seed)}
	rng, s, now := rand.New(rand.NewPCG(seed, 43)), emptyOf(ThisBuild(), level), epoch
	for index := uint64(1); index <= 800; index++ {
		now = now.Add(time.Duration(rng.IntN(2000)-200) * time.Millisecond)
		e := drawEntry(rng, s.View(), index, now)
		data, err := e.Encode()
		if err != nil {
			panic(err)
		}
		s.Apply(e)
		l.entries = append(l.entries, data)
	}
	return l
}

// cut ends a log before an entry that raises its catalog above the level.
func (l *keptLog) cut(level uint64) {
	s := emptyOf(ThisBuild(), level)
	for i, data := range l.entries {
		e, err := DecodeEntry(uint64(i+1), data)
		if err != nil {
			panic(err)
		}
		if s.Apply(e); s.Unable() != nil {
			l.entries = l.entries[:i]
			return
		}
	}
}

// writeKept writes the logs of the highest level, from the tests that have run.
func writeKept() error {
	level := ThisBuild().Highest()
	logs := []keptLog{}
	for seed := range uint64(6) {
		logs = append(logs, drawn(level, seed))
	}
	slices.SortFunc(stories.logs, func(a, b *keptLog) int { return strings.Compare(a.name, b.name) })
	for _, l := range stories.logs {
		logs = append(logs, *l)
	}

	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	put := func(b []byte) { z.Write(append(binary.AppendUvarint(nil, uint64(len(b))), b...)) }
	for _, l := range logs {
		l.cut(level)
		hashes, err := l.replay(ThisBuild(), level, map[string]int{})
		if err != nil {
			return err
		}
		put([]byte(l.name))
		z.Write(binary.AppendUvarint(nil, uint64(len(l.entries))))
		for i, data := range l.entries {
			put(data)
			z.Write(binary.LittleEndian.AppendUint32(nil, hashes[i]))
		}
	}

	// A writer in memory cannot fail before Close.
	if err := z.Close(); err != nil {
		return err
	}
	path := filepath.Join("testdata", keptFile(level))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
		return err
	}
	if err := writeKeptSnapshot(level, &logs[0]); err != nil {
		return err
	}
	return os.WriteFile(fieldsFile(level), []byte(strings.Join(fieldsOf(level), "\n")+"\n"), 0o644)
}

// writeKeptSnapshot writes the state after a log.
func writeKeptSnapshot(level uint64, l *keptLog) error {
	s := emptyOf(ThisBuild(), level)
	for i, data := range l.entries {
		e, err := DecodeEntry(uint64(i+1), data)
		if err != nil {
			return err
		}
		s.Apply(e)
	}
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if err := s.View().Save(z); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join("testdata", snapshotFile(level)), out.Bytes(), 0o644)
}

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if !*rewrite || code != 0 {
		os.Exit(code)
	}

	// If only some tests run, their stories would be incomplete.
	text, err := os.ReadFile("../../CHANGELOG.md")
	switch {
	case err != nil:
	case flag.Lookup("test.run").Value.String() != "" || flag.Lookup("test.skip").Value.String() != "":
		err = fmt.Errorf("-rewrite needs all tests of the package: leave out -run and -skip")
	case strings.Contains(string(text), "\n## "+versions[len(versions)-1]):
		err = fmt.Errorf("version %s is released with level %d: its logs stay. A new rule needs a new level: CONTRIBUTING.md", versions[len(versions)-1], len(versions))
	default:
		err = writeKept()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A snapshot of a later format gives ErrNewer, not ErrDamaged.
func TestLoadSnapshot_ofALaterFormatGivesErrNewer(t *testing.T) {
	t.Parallel()
	data := bytes.Clone(testdata(t, snapshotFile(1)))
	for magic, want := range map[string]error{"SHOALC02": codec.ErrNewer, "SHOALC10": codec.ErrNewer, "SHOALC00": ErrDamaged, "SHOALX01": ErrDamaged} {
		copy(data, magic)
		if _, err := Load(bytes.NewReader(data)); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", magic, err, want)
		}
	}
}
