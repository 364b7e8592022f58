package catalog

import (
	"cmp"
	"fmt"

	"github.com/shoalsearch/shoal/cluster/catalog/codec"
	"github.com/shoalsearch/shoal/version"
)

// versions names the release that brought each level, from level 1 on. A row
// says what an entry does since then that it did not do before:
//
//	0.1.0  the first release
//
// A release that is out keeps its row for ever. CONTRIBUTING says how to add one.
var versions = []string{"0.1.0"}

// Level is the set of rules by which a catalog applies entries. All members
// follow the same ones, so a member whose program does not know the level cannot
// take part. A catalog begins at level 1, and its level never falls.
type Level struct {
	Number  uint64
	Version string // the release that brought it
	Index   uint64 // of the entry that raised the catalog to it; 0 for level 1
}

// levelKind is the kind of Level in snapshots, where it comes before all else.
// Its fields never change: a program that cannot read the rest reads the level.
var levelKind = kindOf[Level](12, "level")

// Build is a program as far as levels go.
type Build struct {
	Lowest   uint64   // level that it can apply
	Versions []string // the release that brought each level, from level 1 on

	// Also is for tests, as a rule that a level changed: commands that are applied
	// after one, by the level of the catalog. Nil in every other program.
	Also func(v *View, c Command) []Command

	// Lacks is for tests, as an earlier program: methods between nodes, and fields of their
	// questions, that it does not know.
	Lacks map[string]bool
}

// ThisBuild is the program as it is.
func ThisBuild() Build { return Build{Lowest: 1, Versions: versions} }

// Highest is the highest level that the program can apply.
func (b Build) Highest() uint64 { return uint64(len(b.Versions)) }

// New returns an empty catalog. A cluster passes no further kinds of jobs:
// all of its nodes must have the same ones.
func (b Build) New(further ...JobRow) *State {
	s := New(further...)
	s.build = b
	return s
}

// Unable says why the program cannot apply entries at a level, or returns nil.
func (b Build) Unable(l Level) error {
	if l.Number >= b.Lowest && l.Number <= b.Highest() {
		return nil
	}
	return &LevelError{Level: l, Lowest: b.Lowest, Highest: b.Highest()}
}

// LevelError says that a program cannot apply the level of a catalog. It is an
// ErrNewer where the catalog is the newer one.
type LevelError struct {
	Level           Level // of the catalog
	Lowest, Highest uint64
}

func (e *LevelError) Error() string {
	return fmt.Sprintf("the catalog has level %d, and this program applies %s: start %s", e.Level.Number, span(e.Lowest, e.Highest), e.Level.startable(e.Lowest))
}

// Is makes it an ErrNewer where that is so.
func (e *LevelError) Is(target error) bool {
	return target == codec.ErrNewer && e.Level.Number > e.Highest
}

// startable names the versions that can apply a level, which one cannot whose
// lowest level is given.
func (l Level) startable(lowest uint64) string {
	if l.Number < lowest {
		return fmt.Sprintf("version %s, or a later one that applies level %d", l.Version, l.Number)
	}
	return "version " + l.Version + " or a later one"
}

// span names levels.
func span(lowest, highest uint64) string {
	if lowest == highest {
		return fmt.Sprintf("level %d alone", lowest)
	}
	return fmt.Sprintf("levels %d to %d", lowest, highest)
}

// Excludes says why a node cannot be a member, or returns nil: its program has to apply
// the level of the catalog, and its release has to be that of every other member or the next
// to it. A program that reports no levels is older than they are: it applies the first.
func (t *tables) Excludes(m *Member) *Refusal {
	l, lowest, highest := t.Level(), max(1, m.Lowest), max(1, m.Highest)
	if l.Number < lowest || l.Number > highest {
		return &Refusal{Conflict, fmt.Sprintf("the catalog has level %d, and version %s of this node applies %s: start %s",
			l.Number, cmp.Or(m.Version, "unknown"), span(lowest, highest), l.startable(lowest))}
	}

	for other := range t.members.Records() {
		if other.ID != m.ID && other.State != MemberRemoved && !version.Neighbours(other.Version, m.Version) {
			return &Refusal{Conflict, fmt.Sprintf("version %s of this node and version %s of node %s are no neighbouring releases: bring all nodes to the release between them first, or `shoal remove` that node where it is gone",
				m.Version, other.Version, other.ID)}
		}
	}
	return nil
}

// Level is the level of the catalog.
func (t *tables) Level() Level {
	if t.raised.Number == 0 {
		return Level{Number: 1, Version: versions[0]}
	}
	return t.raised
}

// level is the number of the level, for apply: a rule that level 2 changed reads
//
//	if t.level() >= 2 { the new rule } else { the old one }
func (t *tables) level() uint64 { return max(1, t.raised.Number) }

// Unable says why this program cannot apply what comes after the last entry, or
// returns nil. Once it has a reason, no entry may be applied.
func (s *State) Unable() error { return s.build.Unable(s.Level()) }

// RaiseLevel makes the catalog follow the rules of a higher level from the next
// command on. It is refused while a member cannot apply them. Its fields never
// change: a program of any level must be able to read it.
type RaiseLevel struct {
	Level   uint64
	Version string // the release that brought it
}

func (c *RaiseLevel) apply(t *txn) Result {
	if c.Level <= t.level() {
		return refuse(Conflict, "the catalog has that level already")
	}
	for m := range t.members.Records() {
		if m.State != MemberRemoved && m.Highest < c.Level {
			return refuse(Conflict, "node "+m.ID+" cannot apply that level")
		}
	}
	t.setLevel(Level{c.Level, c.Version, t.index})
	return Result{}
}

func (s *State) setLevel(l Level) {
	s.raised, s.raisedHash = l, levelKind.hash(&l)
}

// restoreLevel takes in the level of a snapshot.
func (s *State) restoreLevel(b []byte) error {
	var l Level
	if err := levelKind.decode(b, &l); err != nil {
		return err
	}
	if l.Number <= 1 {
		return fmt.Errorf("%w: it has level %d", ErrDamaged, l.Number)
	}
	s.setLevel(l)
	return s.Unable()
}

// NextLevel is the highest level that some member can apply, and who cannot: they
// hold the catalog back. It is 0 where the catalog has that level already.
func (v *View) NextLevel() (next uint64, waitsFor []string) {
	for m := range v.Members() {
		if m.State != MemberRemoved {
			next = max(next, m.Highest)
		}
	}
	if next <= v.level() {
		return 0, nil
	}
	for m := range v.Members() {
		if m.State != MemberRemoved && m.Highest < next {
			waitsFor = append(waitsFor, m.ID)
		}
	}
	return next, waitsFor
}

// Raisable is the level to which the leader may raise the catalog: the highest
// that every member can apply, or the present one. A member whose program
// reports no levels counts as one that can apply no other.
func (v *View) Raisable() uint64 {
	highest := uint64(0)
	for m := range v.Members() {
		if m.State == MemberRemoved {
			continue
		}
		if highest == 0 || m.Highest < highest {
			highest = max(1, m.Highest)
		}
	}
	return max(highest, v.level())
}
