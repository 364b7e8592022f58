package catalog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog/codec"
	"github.com/shoalsearch/shoal/cluster/config"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// book is a catalog to which a test applies commands, one entry each, through the codec.
type book struct {
	t     *testing.T
	s     *State
	index uint64
	now   time.Time
	story *keptLog // the log of its entries, while logs are recorded
}

func newBook(t *testing.T) *book {
	return &book{t: t, s: emptyOf(ThisBuild(), ThisBuild().Highest()), now: epoch}
}

func (b *book) apply(cmds ...Command) []Result {
	b.t.Helper()
	b.index++
	e := Entry{At: b.now, Node: "n1", Commands: cmds}
	data, err := e.Encode()
	if err != nil {
		b.t.Fatal(err)
	}
	b.record(data)
	e, err = DecodeEntry(b.index, data)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.s.Apply(e)
}

// do applies a command that must be accepted, and returns its Result.ID.
func (b *book) do(c Command) uint64 {
	b.t.Helper()
	r := b.apply(c)[0]
	if r.Err != nil {
		b.t.Fatalf("%s %+v: refused: %v", CommandName(c), c, r.Err)
	}
	return r.ID
}

// refused applies a command that must be refused with this code.
func (b *book) refused(code Code, c Command) {
	b.t.Helper()
	before := b.s.View()
	r := b.apply(c)[0]
	if r.Err == nil || r.Err.Code != code {
		b.t.Fatalf("%s %+v: got %+v, want a refusal of code %d", CommandName(c), c, r, code)
	}
	after := b.s.View()
	before.meta, before.metaHash = after.meta, after.metaHash
	if before.Hash() != after.Hash() {
		b.t.Fatalf("%s %+v: was refused and changed the state", CommandName(c), c)
	}
}

// configure sets a configuration with these connections. text is only hashed, not parsed.
func (b *book) configure(text string) {
	b.t.Helper()
	sum := sha256.Sum256([]byte(text))
	c := &SetConfig{Raw: []byte(text), Hash: hex.EncodeToString(sum[:]), Instead: InsteadOfAny}
	for _, name := range strings.Fields(text) {
		c.Connections = append(c.Connections, ConnectionDef{name, "git", name})
	}
	b.do(c)
}

// member adds a node with epoch 1.
func (b *book) member(id string) {
	b.t.Helper()
	b.do(&PutMember{Member{ID: id, Epoch: 1 << 24, Addr: id + ":1"}})
}

func (b *book) grant(kind JobKind, subject string) uint64 {
	b.t.Helper()
	return b.do(&GrantJob{Kind: kind, Subject: subject, Node: "n1", Epoch: 1 << 24, Deadline: b.now.Add(time.Hour)})
}

// listing syncs a connection with these repositories.
func (b *book) listing(connection string, names ...string) {
	b.t.Helper()
	b.do(&EnqueueJob{Kind: JobSync, Subject: connection, Urgent: true})
	fence := b.grant(JobSync, connection)
	page := &SyncPage{Connection: connection, Fence: fence}
	for _, n := range names {
		page.Repos = append(page.Repos, ListedRepo{Name: n, RepoFacts: RepoFacts{Topics: []string{"T-" + n}}})
	}
	b.do(page)
	b.do(&FinishSync{Connection: connection, Fence: fence, Complete: true, Listed: uint32(len(names))})
}

func (b *book) names() string {
	var names []string
	for r := range b.s.View().ReposByName() {
		n := r.Name
		if r.Orphaned() {
			n += "(orphaned)"
		}
		names = append(names, n)
	}
	return strings.Join(names, " ")
}

func hash(n int) string { return fmt.Sprintf("%064x", n) }

const twoConnections = "a b"

func TestListing_removesRepositoriesOnlyIfComplete(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.configure(twoConnections)
	b.member("n1")
	b.listing("a", "h/one", "h/two")
	b.listing("b", "h/two", "h/three")
	if got, want := b.names(), "h/one h/three h/two"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	one := b.s.View().RepoByName("h/one")

	// A partial listing removes nothing.
	b.do(&EnqueueJob{Kind: JobSync, Subject: "a"})
	fence := b.grant(JobSync, "a")
	b.do(&FinishSync{Connection: "a", Fence: fence, Warnings: []string{"the host went away"}})
	if got, want := b.names(), "h/one h/three h/two"; got != want {
		t.Fatalf("after a partial listing: got %s, want %s", got, want)
	}

	// A complete listing is refused while pages are missing.
	b.do(&EnqueueJob{Kind: JobSync, Subject: "a"})
	fence = b.grant(JobSync, "a")
	b.refused(Conflict, &FinishSync{Connection: "a", Fence: fence, Complete: true, Listed: 1})
	page := &SyncPage{Connection: "a", Fence: fence, Repos: []ListedRepo{{Name: "h/two"}}}
	b.do(page)
	b.do(page) // a repeated page counts once
	b.do(&FinishSync{Connection: "a", Fence: fence, Complete: true, Listed: 1})
	if got, want := b.names(), "h/one(orphaned) h/three h/two"; got != want {
		t.Fatalf("after a complete listing: got %s, want %s", got, want)
	}
	if v := b.s.View(); v.Visible(Operator()).Contains(one.ID) || v.Visible(Operator()).GetCardinality() != 2 {
		t.Fatal("an orphaned repository is visible")
	}

	// A late page of the previous sync is refused.
	b.refused(Stale, page)

	// The orphan is deleted, and its number is never reused.
	b.do(&EnqueueJob{Kind: JobCollect, Subject: RepoSubject(one.ID)})
	b.do(&FinishCollect{Repo: one.ID, Fence: b.grant(JobCollect, RepoSubject(one.ID))})
	b.listing("a", "h/two", "h/one")
	again := b.s.View().RepoByName("h/one")
	if again.ID <= one.ID+1 || b.s.View().Repo(one.ID) != nil {
		t.Fatalf("number %d was used again", again.ID)
	}
}

func TestListing_firstConnectionDecidesASharedName(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.configure(twoConnections)
	b.member("n1")
	sync := func(connection, url string) {
		t.Helper()
		b.do(&EnqueueJob{Kind: JobSync, Subject: connection, Urgent: true})
		fence := b.grant(JobSync, connection)
		page := &SyncPage{Connection: connection, Fence: fence}
		if url != "" {
			page.Repos = []ListedRepo{{Name: "local/x", RepoFacts: RepoFacts{CloneURL: url}}}
		}
		b.do(page)
		b.do(&FinishSync{Connection: connection, Fence: fence, Complete: true, Listed: uint32(len(page.Repos))})
	}
	for _, step := range []struct{ connection, url, want string }{
		{"b", "file:///two/x", "file:///two/x"},
		{"a", "file:///one/x", "file:///one/x"},
		{"b", "file:///two/x", "file:///one/x"},
		{"a", "", "file:///one/x"}, // a no longer lists it, so b's next sync decides
		{"b", "file:///two/x", "file:///two/x"},
	} {
		sync(step.connection, step.url)
		if got := b.s.View().RepoByName("local/x").CloneURL; got != step.want {
			t.Fatalf("after %s listed %q: %s, want %s", step.connection, step.url, got, step.want)
		}
	}
}

// A local directory chooses its own clone URL. A repository that a host lists takes the name from
// it.
func TestListing_hostWinsOverALocalDirectory(t *testing.T) {
	t.Parallel()
	const genuine, claim = "https://git.corp.example/acme/payroll.git", "file:///users/mallory/app"
	for _, order := range [][]string{{"a", "b"}, {"b", "a"}, {"a", "b", "a"}, {"b", "a", "b", "a"}} {
		b := newBook(t)
		b.configure(twoConnections)
		b.member("n1")
		for _, connection := range order {
			b.do(&EnqueueJob{Kind: JobSync, Subject: connection, Urgent: true})
			fence := b.grant(JobSync, connection)
			b.do(&SyncPage{Connection: connection, Fence: fence, Repos: []ListedRepo{
				{Name: "git.corp.example/acme/payroll", RepoFacts: RepoFacts{CloneURL: map[string]string{"a": claim, "b": genuine}[connection]}},
			}})
			b.do(&FinishSync{Connection: connection, Fence: fence, Complete: true, Listed: 1})
		}
		r := b.s.View().RepoByName("git.corp.example/acme/payroll")
		if r.CloneURL != genuine {
			t.Errorf("after %v: %s is shown", order, r.CloneURL)
		}
		if b.s.View().Job(JobIndex, RepoSubject(r.ID)) == nil {
			t.Errorf("after %v: nothing indexes it", order)
		}
	}
}

func TestFinishCollect_isRefusedForARelistedRepository(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.configure(twoConnections)
	b.member("n1")
	b.listing("a", "h/one")
	id := b.s.View().RepoByName("h/one").ID
	b.listing("a")
	b.do(&EnqueueJob{Kind: JobCollect, Subject: RepoSubject(id)})
	fence := b.grant(JobCollect, RepoSubject(id))
	b.listing("b", "h/one")
	b.refused(NotFound, &FinishCollect{Repo: id, Fence: fence})
	if r := b.s.View().Repo(id); r == nil || r.Orphaned() {
		t.Fatal("the repository left though it is listed")
	}
}

func TestSetConfig_removedConnectionOrphansRepositories(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.configure(twoConnections)
	b.member("n1")
	b.listing("a", "h/one", "h/two")
	b.listing("b", "h/two")
	b.configure("b")
	if got, want := b.names(), "h/one(orphaned) h/two"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	if v := b.s.View(); v.Job(JobSync, "a") != nil || v.Connection("a") != nil || v.Job(JobIndex, "1") != nil {
		t.Fatal("what belongs to the connection stayed")
	}
	if j := b.s.View().Job(JobSync, "b"); j.State != JobDone {
		t.Fatalf("an unchanged connection is synced again: %+v", j)
	}
}

// A node that slept may propose the configuration that it read long ago.
func TestSetConfig_staleFileIsRefused(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.configure("a")
	read := b.s.View().Config().Index
	b.configure("a b")
	old := &SetConfig{Raw: []byte("a "), Hash: hashText("a "), Connections: []ConnectionDef{{"a", "git", "a"}}, Instead: read}
	b.refused(Stale, old)
	old.Instead = 0 // as from a new node, which does not know the configuration in force
	b.refused(Stale, old)
	same := &SetConfig{Raw: []byte("a b"), Hash: hashText("a b"), Instead: read}
	if got, want := b.do(same), b.s.View().Config().Index; got != want {
		t.Errorf("the configuration in force, offered again, gets index %d, want %d", got, want)
	}
	old.Instead = b.s.View().Config().Index
	b.do(old)
	if v := b.s.View(); v.Connection("b") != nil {
		t.Error("what was read since is not taken")
	}
}

func TestSetConfig_droppingManyRepositoriesNeedsConfirmation(t *testing.T) {
	t.Parallel()
	repos := func(host string, n int) (names []string) {
		for i := range n {
			names = append(names, fmt.Sprintf("%s/%02d", host, i))
		}
		return names
	}
	set := func(text string, connections ...ConnectionDef) *SetConfig {
		return &SetConfig{Raw: []byte(text), Hash: hashText(text), Connections: connections, Instead: InsteadOfAny, Careful: true, Keep: time.Hour}
	}
	for _, c := range []struct {
		what   string
		a, b   int // repositories of the removed connection, and of the remaining one
		change *SetConfig
		held   bool
	}{
		{"more than half of many", 21, 20, set("b", ConnectionDef{"b", "git", "b"}), true},
		{"half of many", 21, 21, set("b", ConnectionDef{"b", "git", "b"}), false},
		{"all of few", 20, 0, set("b", ConnectionDef{"b", "git", "b"}), false},
		{"everything", 15, 15, set(""), true},
		{"another name", 30, 5, set("b c", ConnectionDef{"b", "git", "b"}, ConnectionDef{"c", "git", "a"}), false},
		{"what the other one has too", 0, 30, set("b", ConnectionDef{"b", "git", "b"}), false},
	} {
		b := newBook(t)
		b.configure(twoConnections)
		b.member("n1")
		b.listing("a", repos("a", c.a)...)
		b.listing("b", repos("b", c.b)...)
		if !c.held {
			b.do(c.change)
			continue
		}
		b.refused(Held, c.change)
		meant := *c.change
		meant.Careful = false
		b.do(&meant)
	}
}

func TestSetConfig_restoredConnectionKeepsItsData(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.configure("a")
	b.member("n1")
	b.listing("a", "h/one")
	b.do(&FinishIndex{Repo: 1, Fence: b.grant(JobIndex, "1"), InputKey: "k", Holder: "n1", Shards: []ShardRef{{ID: hash(1)}}})
	b.do(&SetConfig{Raw: []byte(""), Hash: hashText(""), Instead: InsteadOfAny, Keep: time.Hour})
	if r := b.s.View().Repo(1); r == nil || !r.Orphaned() || !r.KeptUntil.Equal(b.now.Add(time.Hour)) {
		t.Fatalf("after the connection was dropped: %+v", r)
	}
	b.configure("a")
	b.listing("a", "h/one")
	r := b.s.View().Repo(1)
	if r == nil || r.Orphaned() || !r.KeptUntil.IsZero() || r.Generation != 1 || r.InputKey != "k" || len(b.s.View().Holders(MirrorKey(1))) != 1 {
		t.Fatalf("after it came back: %+v", r)
	}
	b.listing("a") // the host no longer lists it, so nothing keeps it
	if r := b.s.View().Repo(1); !r.Orphaned() || !r.KeptUntil.IsZero() {
		t.Errorf("after the host lost it: %+v", r)
	}
}

// A renamed connection keeps its repositories, and is listed again.
func TestSetConfig_renamedConnectionKeepsItsRepositories(t *testing.T) {
	t.Parallel()
	defs := func(text string) (list []ConnectionDef) {
		for _, word := range strings.Fields(text) {
			name, hash, _ := strings.Cut(word, "=")
			list = append(list, ConnectionDef{name, "git", hash})
		}
		return list
	}
	for _, c := range []struct {
		what, before, after string // connections as name=definition
		earlier             bool   // the entry comes from a version without the field Renames
		want                string // the connections of repositories one and both afterwards
		listed              string // the connections that are queued for a listing
	}{
		{"another name", "a=1 b=2", "b=2 z=1", false, "z / b z", "z"},
		{"of before the field", "a=1 b=2", "b=2 z=1", true, " / b", "z"},
		{"another definition too", "a=1 b=2", "b=2 z=3", false, " / b", "z"},
		{"exchanged names", "a=1 b=2", "a=2 b=1", false, "a / a b", "a b"},
		{"one of two alike", "a=1 b=1", "b=1 z=1", false, "z / b z", "z"},
		{"both of two alike", "a=1 b=1", "y=1 z=1", false, "y / y z", "y z"},
		{"two that become one", "a=1 b=1", "z=1", false, "z / z", "z"},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			b := newBook(t)
			set := func(text string) *SetConfig {
				return &SetConfig{Raw: []byte(text), Hash: hashText(text), Connections: defs(text), Instead: InsteadOfAny, Careful: true, Keep: time.Hour}
			}
			b.do(set(c.before))
			b.member("n1")
			b.listing("a", "h/one", "h/both")
			b.listing("b", "h/both")

			change := set(c.after).Following(b.s.View())
			if c.earlier {
				change.Renames = false
			}
			b.do(change)

			var has []string
			for r := range b.s.View().Repos() {
				var names []string
				for _, conn := range r.Connections {
					names = append(names, conn.Name)
				}
				has = append(has, strings.Join(names, " "))
			}
			if got := strings.Join(has, " / "); got != c.want {
				t.Errorf("the repositories are of %q, want %q", got, c.want)
			}

			var listed []string
			for j := range b.s.View().JobsOfKind(JobSync, JobWaiting) {
				listed = append(listed, j.Subject)
			}
			slices.Sort(listed)
			if got := strings.Join(listed, " "); got != c.listed {
				t.Errorf("listed again are %q, want %q", got, c.listed)
			}

			// The next listing removes what the host no longer has.
			if c.what == "another name" {
				b.listing("z", "h/both")
				if got := b.names(); got != "h/both h/one(orphaned)" {
					t.Errorf("after the next listing: %s", got)
				}
			}
		})
	}
}

func TestSearchContexts_includeThenExclude(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.configure(twoConnections)
	b.member("n1")
	b.listing("a", "h/x1", "h/x9", "h/y")
	b.listing("b", "h/no", "h/z")
	def := &config.Context{Include: []string{"h/x*"}, IncludeConnections: []string{"b"},
		Exclude: []string{"h/x9"}, ExcludeTopics: []string{"t-h/no"}}
	var got []string
	for r := range b.s.View().ReposByName() {
		if newScope(def).contains(r) {
			got = append(got, r.Name)
		}
	}
	if want := "h/x1 h/z"; strings.Join(got, " ") != want {
		t.Fatalf("got %v, want %s", got, want)
	}
	if _, ok := b.s.View().Context("other"); ok {
		t.Fatal("a context that is not configured exists")
	}
}

// Code hosts ignore letter case in names, and so do globs and names of contexts.
func TestSearchContexts_ignoreCase(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.configure(twoConnections)
	b.member("n1")
	b.listing("a", "Git.example.com/Team/App", "git.example.com/team/lib")
	def := &config.Context{Include: []string{"GIT.example.com/TEAM/*"}, Exclude: []string{"*/*/LIB"}}
	for r := range b.s.View().Repos() {
		if got, want := newScope(def).contains(r), strings.HasSuffix(r.Name, "App"); got != want {
			t.Errorf("%s is in the context: %v", r.Name, got)
		}
	}

	file := &config.File{Contexts: []config.Context{{Name: "Team"}, {Name: "other"}, {Name: "team"}}}
	for name, want := range map[string]string{"team": "team", "Team": "Team", "TEAM": "Team", "OTHER": "other"} {
		if c := file.Context(name); c == nil || c.Name != want {
			t.Errorf("%s is %+v, want %s", name, c, want)
		}
	}
}

func TestFinishIndex_switchesGenerationOnlyUnderTheFence(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.configure(twoConnections)
	b.member("n1")
	b.member("n2")
	b.listing("a", "h/one")
	id := b.s.View().RepoByName("h/one").ID
	subject := RepoSubject(id)
	first := b.grant(JobIndex, subject)
	b.do(&RevokeJob{Kind: JobIndex, Subject: subject, Fence: first, Reason: "lost"})
	second := b.grant(JobIndex, subject)
	finish := func(fence uint64, shards ...ShardRef) *FinishIndex {
		return &FinishIndex{Repo: id, Fence: fence, Shards: shards, Holder: "n1",
			Revisions: []Revision{{"HEAD", strings.Repeat("ab", 20)}}}
	}
	b.refused(Stale, finish(first, ShardRef{ID: hash(1)}))
	more := finish(second, ShardRef{ID: hash(2)}, ShardRef{ID: hash(3), Dead: hash(4)})
	more.Continue = true
	b.do(more)
	if j := b.s.View().Job(JobIndex, subject); j.State != JobRunning || !b.s.View().Repo(id).Indexed() {
		t.Fatalf("a job that continues: %+v", j)
	}
	b.do(&Confirm{Node: "n2", Epoch: 1 << 24, Held: []string{ShardKey(hash(2)), ShardKey(hash(3)), ShardKey(hash(99)), MirrorKey(id), MirrorKey(99), "", "x"}})
	old := b.s.View()
	b.do(finish(second, ShardRef{ID: hash(3), Dead: hash(5)}))

	v := b.s.View()
	if r := v.Repo(id); r.Generation != 2 || len(r.Shards) != 1 || r.GenerationAt != b.index {
		t.Fatalf("got %+v", r)
	}
	holders := func(v *View, key string) string { return strings.Join(v.Holders(key), " ") }
	for key, want := range map[string]string{ShardKey(hash(2)): "", ShardKey(hash(3)): "n1 n2", ShardKey(hash(4)): "",
		ShardKey(hash(5)): "n1", ShardKey(hash(99)): "", MirrorKey(id): "n1 n2", MirrorKey(99): ""} {
		if got := holders(v, key); got != want {
			t.Errorf("holders of %s: got %q, want %q", key, got, want)
		}
	}
	if got := holders(old, ShardKey(hash(2))); got != "n1 n2" {
		t.Errorf("an older view changed: %q hold what n1 and n2 held", got)
	}
	if v.FileRefs(hash(3)) != 1 || v.FileRefs(hash(2)) != 0 || old.FileRefs(hash(2)) != 1 {
		t.Error("references are miscounted")
	}
	b.do(&RemoveMember{"n1"})
	if got := holders(b.s.View(), ShardKey(hash(3))); got != "n2" {
		t.Errorf("a removed member holds: %q", got)
	}
	b.do(&EnqueueJob{Kind: JobIndex, Subject: subject})
	b.refused(Conflict, &GrantJob{Kind: JobIndex, Subject: subject, Node: "n1", Epoch: 1 << 24})
	b.member("n3")
	fence := b.do(&GrantJob{Kind: JobIndex, Subject: subject, Node: "n2", Epoch: 1 << 24, Deadline: epoch.Add(time.Hour)})
	b.do(&FinishIndex{Repo: id, Fence: fence, Shards: []ShardRef{{ID: hash(6)}}, Holder: "n2", Second: "n3"})
	if got, mirror := holders(b.s.View(), ShardKey(hash(6))), holders(b.s.View(), MirrorKey(id)); got != "n2 n3" || mirror != "n2" {
		t.Errorf("after a publication with a second copy %q hold the shard and %q the mirror", got, mirror)
	}
}

func TestPutMember_refusesOldStartsAndCopies(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.member("n1")
	b.do(&PutMember{Member{ID: "n1", Epoch: 1 << 24, Addr: "elsewhere:1"}})
	b.refused(Conflict, &PutMember{Member{ID: "n1", Epoch: 1<<24 + 7}})
	b.configure(twoConnections)
	b.do(&EnqueueJob{Kind: JobSync, Subject: "a"})
	fence := b.grant(JobSync, "a")
	b.do(&PutMember{Member{ID: "n1", Epoch: 2 << 24}})
	if j := b.s.View().Job(JobSync, "a"); j.State != JobWaiting || j.Resets != 1 {
		t.Fatalf("the job of a restarted node: %+v", j)
	}
	b.refused(Stale, &FinishJob{Kind: JobSync, Subject: "a", Fence: fence, Error: "x"})
	b.refused(Stale, &PutMember{Member{ID: "n1", Epoch: 1 << 24}})
	b.do(&SetMemberState{"n1", MemberDraining})
	b.refused(Conflict, &GrantJob{Kind: JobSync, Subject: "a", Node: "n1", Epoch: 2 << 24})
	b.do(&RemoveMember{"n1"})
	b.refused(Conflict, &PutMember{Member{ID: "n1", Epoch: 3 << 24}})
	b.member("n9")
	if m := b.s.View().Member("n9"); m.Number != 2 || b.s.View().MemberNumber(2) != m {
		t.Fatalf("got %+v", m)
	}
}

func TestAPIKey_expiredOrRevokedIsRefused(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	h := bytes.Repeat([]byte{7}, 32)
	key := Key{ID: "k1", Hash: h, Name: "ci", Role: RoleMember, Expires: epoch.Add(time.Hour)}
	b.do(&CreateKey{key})
	b.refused(Conflict, &CreateKey{key})
	key.ID = "k2"
	b.refused(Conflict, &CreateKey{key})
	// Two nodes may create the same name at once. The catalog decides.
	b.refused(Conflict, &CreateKey{Key{ID: "k2", Hash: bytes.Repeat([]byte{8}, 32), Name: "ci", Role: RoleMember}})
	b.refused(Invalid, &CreateKey{Key{ID: "k3", Hash: []byte("short"), Role: RoleOwner}})
	b.refused(Invalid, &CreateKey{Key{ID: "k3", Hash: bytes.Repeat([]byte{9}, 32), Role: RoleGuest}})
	b.refused(Invalid, &CreateKey{Key{ID: "k3", Hash: bytes.Repeat([]byte{9}, 32), Role: RoleMetrics, All: true}})
	b.do(&TouchKeys{[]string{"k1", "none"}, epoch.Add(time.Minute)})
	got := b.s.View().KeyByHash(h)
	if got == nil || got.Name != "ci" || !got.Used.Equal(epoch.Add(time.Minute)) || !got.Created.Equal(epoch) {
		t.Fatalf("got %+v", got)
	}
	b.do(&RevokeKey{"k1"})
	b.refused(NotFound, &RevokeKey{"k1"})
	if b.s.View().KeyByHash(h) != nil {
		t.Fatal("a revoked key is found")
	}
}

func TestApply_retryReturnsFirstResultWithoutEffect(t *testing.T) {
	t.Parallel()
	s := New()
	e := Entry{Index: 1, Request: [16]byte{1}, At: epoch, Commands: []Command{&PutMember{Member{ID: "a", Epoch: 1 << 24}}, &RevokeKey{"no"}}}
	first := s.Apply(e)
	e.Index = 2
	if again := s.Apply(e); !reflect.DeepEqual(first, again) || s.View().meta.LastMember != 1 {
		t.Fatalf("got %+v, want %+v", again, first)
	}
	for i := range maxRequests + 10 {
		s.Apply(Entry{Index: uint64(i) + 3, Request: [16]byte{2, byte(i), byte(i >> 8), byte(i >> 16)}, Commands: []Command{&Noop{}}})
	}
	if n := s.requests.Len(); n != maxRequests || s.order.Len() != n || s.replies != n {
		t.Fatalf("%d requests are remembered, at most %d should be", n, maxRequests)
	}
}

func TestCatalogClock_neverRunsBackwards(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.now = epoch.Add(time.Hour)
	b.do(&Noop{})
	b.now = epoch
	b.do(&Noop{})
	if got := b.s.View().Time(); !got.Equal(epoch.Add(time.Hour)) {
		t.Fatalf("got %v", got)
	}
}

// Two nodes compare their hashes after the same entry, even many entries later. A node that no
// longer remembers the hash does not complain.
func TestCheckHash_comparesStatesAfterTheSameEntry(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		after  int // entries between the compared one and the check
		other  uint64
		reload bool
		want   bool
	}{
		"equal":                {after: 0, want: false},
		"equal, later":         {after: 500, want: false},
		"other":                {after: 0, other: 1, want: true},
		"other, later":         {after: 500, other: 1, want: true},
		"other, long ago":      {after: hashCount, other: 1, want: false},
		"other, from snapshot": {after: 3, other: 1, reload: true, want: false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBook(t)
			b.do(&SetSecret{Name: "s", Sealed: []byte("x")})
			at, hash := b.index, b.s.View().Hash()
			if c.reload {
				b.s = reload(t, b.s)
			}
			for range c.after {
				b.do(&Noop{})
			}
			b.do(&CheckHash{})
			b.do(&CheckHash{At: at, Hash: hash + c.other})
			if b.s.Diverged() != c.want {
				t.Errorf("diverged: %v, want %v", b.s.Diverged(), c.want)
			}
		})
	}
}

func TestCodec_roundTripsEveryCommandAndRecord(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	seen := map[uint64]bool{}
	for _, kind := range commandKinds {
		if seen[kind.number] {
			t.Fatalf("command number %d is used twice", kind.number)
		}
		seen[kind.number] = true
		for range 50 {
			v := reflect.New(kind.typ)
			fill(rng, v.Elem())
			in := Entry{At: epoch, Node: "x", Commands: []Command{v.Interface().(Command)}}
			data, err := in.Encode()
			if err != nil {
				t.Fatal(err)
			}
			out, err := DecodeEntry(0, data)
			if err != nil || !reflect.DeepEqual(in, out) {
				t.Fatalf("%v: got %+v, want %+v: %v", kind.typ, out.Commands[0], in.Commands[0], err)
			}
			for cut := range data {
				if _, err := DecodeEntry(0, data[:cut]); err == nil {
					t.Fatalf("%v: an entry cut at %d of %d is accepted", kind.typ, cut, len(data))
				}
			}
		}
	}
	if n := len(commandKinds); len(seen) != n || !slices.IsSortedFunc(commandKinds, func(a, b commandKind) int { return int(a.number) - int(b.number) }) {
		t.Fatal("the table of commands is not in order")
	}
}

// fill sets a value to random content that the codec preserves.
func fill(rng *rand.Rand, v reflect.Value) {
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(codec.FromMillis(rng.Int64N(1 << 45))))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if rng.IntN(4) > 0 {
				fill(rng, v.Field(i))
			}
		}
	case v.Kind() == reflect.Slice:
		n := rng.IntN(4)
		if n == 0 {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(rng, v.Index(i))
		}
	case v.Kind() == reflect.String:
		v.SetString([]string{"", "a", "日本", hash(rng.IntN(1000)), strings.Repeat("F", 64), strings.Repeat("a", 41)}[rng.IntN(6)])
	case v.Kind() == reflect.Bool:
		v.SetBool(rng.IntN(2) == 0)
	case v.CanUint():
		v.SetUint(rng.Uint64() >> (64 - v.Type().Bits()))
	case v.CanInt():
		v.SetInt(int64(rng.Uint64()))
	}
}

func TestCodec_bytesOfANewerVersionGiveErrNewer(t *testing.T) {
	t.Parallel()
	e := Entry{Commands: []Command{&Noop{}}}
	data, _ := e.Encode()
	data[len(data)-1] = 1 // one field more than Noop has
	if _, err := DecodeEntry(1, append(data, 5)); err == nil {
		t.Fatal("trailing bytes are accepted")
	}
	if _, err := DecodeEntry(1, data); !errors.Is(err, codec.ErrNewer) {
		t.Fatalf("got %v, want %v", err, codec.ErrNewer)
	}
	data[len(data)-3] = 120 // an unknown command
	data[len(data)-1] = 0
	if _, err := DecodeEntry(1, data); !errors.Is(err, codec.ErrNewer) {
		t.Fatalf("got %v, want %v", err, codec.ErrNewer)
	}
}

// An old catalog holds its configuration in plain text. It is read, and sealed later without any
// other change.
func TestSealConfig_sealsAPlainConfiguration(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.s.Unseal(func(box []byte) ([]byte, error) { return bytes.TrimPrefix(box, []byte("box ")), nil })
	text := `{"connections": {"a": {"type": "git", "url": "https://git.example.com/a"}}}`
	b.do(&SetConfig{Raw: []byte(text), Hash: hashText(text), Connections: []ConnectionDef{{"a", "git", "a"}}, Instead: InsteadOfAny})
	before := *b.s.View().Config()
	for _, c := range []struct {
		hash   string
		sealed bool
	}{{hashText("another"), false}, {hashText(text), true}} {
		b.do(&SealConfig{Hash: c.hash, Raw: SealedConfig([]byte("box " + text))})
		v := b.s.View()
		if _, sealed := v.Config().Sealed(); sealed != c.sealed || v.FileError() != nil || len(v.File().Connections) != 1 {
			t.Errorf("sealed %t, %d connections, %v", sealed, len(v.File().Connections), v.FileError())
		}
		if v.Config().Hash != before.Hash || v.Config().Index != before.Index || v.Job(JobSync, "a") == nil {
			t.Errorf("something else has changed: %+v", v.Config())
		}
	}
}
