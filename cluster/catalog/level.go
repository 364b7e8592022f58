package catalog

import (
	"cmp"
	"fmt"

	"github.com/shoalsearch/shoal/cluster/catalog/codec"
	"github.com/shoalsearch/shoal/version"
)

// versions lists the release that brought each level, from level 1 on. The comment of a row tells
// what its level changed:
//
//	0.1.0  the first release
//
// A row stays for ever once its release is out. CONTRIBUTING tells how to add one.
var versions = []string{"0.1.0"}

// Level is a set of rules for applying entries. All members follow the same rules, so a program
// that does not know the level cannot take part. A catalog begins at level 1, and its level never
// falls.
type Level struct {
	Number  uint64
	Version string // the release that brought it
	Index   uint64 // index of the entry that raised the catalog to it; 0 for level 1
}

// levelKind is the record kind of Level, the first record of a snapshot. Its fields never change,
// so that a program that cannot read the rest can still read the level.
var levelKind = kindOf[Level](12, "level")

// Build tells which levels a program can apply.
type Build struct {
	Lowest   uint64   // lowest level that it can apply
	Versions []string // the release that brought each level, from level 1 on

	// Also is for tests and stands for a changed rule: it returns further commands to apply after
	// one. It is nil in production.
	Also func(v *View, c Command) []Command

	// Lacks is for tests and stands for an older program: the calls between nodes, and the fields
	// of their questions, that it does not know.
	Lacks map[string]bool
}

// ThisBuild describes the running program.
func ThisBuild() Build { return Build{Lowest: 1, Versions: versions} }

// Highest returns the highest level that the program can apply.
func (b Build) Highest() uint64 { return uint64(len(b.Versions)) }

// New returns an empty catalog. Only tests pass further kinds of jobs: all nodes of a cluster must
// have the same ones.
func (b Build) New(further ...JobRow) *State {
	s := New(further...)
	s.build = b
	return s
}

// Unable returns why the program cannot apply entries at a level, or nil.
func (b Build) Unable(l Level) error {
	if l.Number >= b.Lowest && l.Number <= b.Highest() {
		return nil
	}
	return &LevelError{Level: l, Lowest: b.Lowest, Highest: b.Highest()}
}

// LevelError tells that a program cannot apply the level of a catalog. It matches codec.ErrNewer if
// the catalog is newer than the program.
type LevelError struct {
	Level           Level // of the catalog
	Lowest, Highest uint64
}

func (e *LevelError) Error() string {
	return fmt.Sprintf("the catalog has level %d, and this program applies %s: start %s", e.Level.Number, levelRange(e.Lowest, e.Highest), e.Level.versionsThatApply(e.Lowest))
}

// Is matches codec.ErrNewer if the catalog is newer than the program.
func (e *LevelError) Is(target error) bool {
	return target == codec.ErrNewer && e.Level.Number > e.Highest
}

// versionsThatApply names the versions that can apply level l. lowest is the lowest level of the program
// that cannot.
func (l Level) versionsThatApply(lowest uint64) string {
	if l.Number < lowest {
		return fmt.Sprintf("version %s, or a later one that applies level %d", l.Version, l.Number)
	}
	return "version " + l.Version + " or a later one"
}

// levelRange formats a range of levels.
func levelRange(lowest, highest uint64) string {
	if lowest == highest {
		return fmt.Sprintf("level %d alone", lowest)
	}
	return fmt.Sprintf("levels %d to %d", lowest, highest)
}

// Excludes returns why a node cannot be a member, or nil. Its program must apply the level of the
// catalog. Its release must be the same as, or next to, that of every other member. A program that
// reports no levels applies only the first.
func (t *tables) Excludes(m *Member) *Refusal {
	l, lowest, highest := t.Level(), max(1, m.Lowest), max(1, m.Highest)
	if l.Number < lowest || l.Number > highest {
		return &Refusal{Conflict, fmt.Sprintf("the catalog has level %d, and version %s of this node applies %s: start %s",
			l.Number, cmp.Or(m.Version, "unknown"), levelRange(lowest, highest), l.versionsThatApply(lowest))}
	}

	for other := range t.members.Records() {
		if other.ID != m.ID && other.State != MemberRemoved && !version.Neighbours(other.Version, m.Version) {
			return &Refusal{Conflict, fmt.Sprintf("version %s of this node and version %s of node %s are no neighbouring releases. Bring all nodes to the release between them first. If that node is gone, `shoal remove` it",
				m.Version, other.Version, other.ID)}
		}
	}
	return nil
}

// Level returns the level of the catalog.
func (t *tables) Level() Level {
	if t.raised.Number == 0 {
		return Level{Number: 1, Version: versions[0]}
	}
	return t.raised
}

// level returns the number of the level. A rule that level 2 changed reads
//
//	if t.level() >= 2 { the new rule } else { the old one }
func (t *tables) level() uint64 { return max(1, t.raised.Number) }

// Unable returns why this program cannot apply the next entry, or nil. The caller must then apply
// no further entry.
func (s *State) Unable() error { return s.build.Unable(s.Level()) }

// RaiseLevel raises the level of the catalog for all following commands. It is refused if some
// member cannot apply the level. Its fields never change: a program of any level must be able to
// read it.
type RaiseLevel struct {
	Level   uint64
	Version string // the release that brought the level
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

// restoreLevel reads the level of a snapshot.
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

// NextLevel returns the highest level that some member can apply, and the members that cannot. next
// is 0 if the catalog has that level already.
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

// Raisable returns the level to which the leader may raise the catalog: the highest that every
// member can apply, and never less than the present one. A member that reports no levels can only
// apply level 1.
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
