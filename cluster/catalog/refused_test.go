package catalog

import (
	"slices"
	"testing"
	"time"
)

// attempt runs a sync of connection a to its end: a refusal of the token, another failure, or a
// success.
func (b *book) attempt(connection string, refused bool) {
	b.t.Helper()
	b.do(&FinishJob{Kind: JobSync, Subject: connection, Fence: b.begin(JobSync, connection), Error: "401", NotBefore: b.now, TokenRefused: refused})
}

// define sets two connections, a with this definition, and a context with all repositories.
func (b *book) define(a string) {
	b.t.Helper()
	raw := `{"connections": {"a": {"type": "git", "url": "file:///a"}, "b": {"type": "git", "url": "file:///b"}}, "contexts": {"all": {"include": ["**"]}}}`
	b.do(&SetConfig{Raw: []byte(raw), Hash: hashText(raw), Instead: InsteadOfAny, Connections: []ConnectionDef{{"a", "git", a}, {"b", "git", "1"}}})
}

// shown returns what everybody may see. It checks that viewers who see all listed repositories see
// the same.
func (b *book) shown() []string {
	b.t.Helper()
	v := b.s.View()
	set := v.Visible(Operator())
	if !set.Equals(v.Visible(Guest())) || !set.Equals(v.Visible(Viewer{Role: RoleMember, Account: "ann"})) {
		b.t.Errorf("the operator sees %v, a guest %v", set, v.Visible(Guest()))
	}
	if context, known := v.Context("all"); !known || !context.Equals(set) {
		b.t.Errorf("the operator sees %v, a context of all has %v", set, context)
	}
	b.sees("ann") // also checks that Why agrees

	var names []string
	for _, id := range set.ToArray() {
		names = append(names, v.Repo(id).Name)
	}
	return names
}

// After thirty days of refusing a token, a host's repositories are hidden from everybody. None is
// lost: the first successful listing shows them unchanged.
func TestTokenRefusal_hidesRepositoriesAfterThirtyDays(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	all := []string{"h/one", "h/two", "h/both", "h/other"}
	rest := []string{"h/both", "h/other"}

	refused := func(b *book) { b.attempt("a", true) }
	failed := func(b *book) { b.attempt("a", false) }
	listed := func(b *book) { b.listing("a", "h/one", "h/two", "h/both") }
	absent := func(b *book) { b.do(&FinishSync{Connection: "a", Fence: b.begin(JobSync, "a"), Nothing: true}) }
	none := func(*book) {}

	type step struct {
		after time.Duration
		do    func(*book)
		want  []string
		until time.Duration // time from the start until they are hidden; 0: no refusal, or hidden already
	}
	for name, steps := range map[string][]step{
		"refused for thirty days": {
			{0, refused, all, 30 * day}, {29 * day, refused, all, 30 * day}, {day - 1, refused, all, 30 * day}, {time.Millisecond, refused, rest, 0},
			{100 * day, refused, rest, 0}, {time.Hour, listed, all, 0}, {time.Hour, refused, all, 160*day + 2*time.Hour},
		},
		"taken in between": {
			{0, refused, all, 30 * day}, {20 * day, listed, all, 0}, {20 * day, refused, all, 70 * day}, {29 * day, refused, all, 70 * day}, {day, refused, rest, 0},
		},
		"not reached for a while": {
			{0, refused, all, 30 * day}, {40 * day, failed, all, 30 * day}, {day, failed, all, 30 * day}, {day, refused, rest, 0}, {day, failed, rest, 0}, {day, listed, all, 0},
		},
		"never refused":      {{0, failed, all, 0}, {40 * day, failed, all, 0}},
		"nobody asks":        {{0, refused, all, 30 * day}, {40 * day, none, all, 30 * day}},
		"another definition": {{0, refused, all, 30 * day}, {30 * day, refused, rest, 0}, {0, func(b *book) { b.define("2") }, rest, 0}},
		"listed in part": {
			{0, refused, all, 30 * day}, {30 * day, refused, rest, 0},
			{0, func(b *book) { b.do(&FinishSync{Connection: "a", Fence: b.begin(JobSync, "a")}) }, all, 0},
		},
		"nothing of it is there": {
			{0, refused, all, 30 * day}, {day, absent, all, 30 * day}, {29 * day, refused, rest, 0}, {day, absent, rest, 0}, {day, listed, all, 0},
		},
		"pages before a failure": {
			{0, refused, all, 30 * day}, {30 * day, refused, rest, 0},
			{0, func(b *book) {
				fence := b.begin(JobSync, "a")
				b.do(&SyncPage{Connection: "a", Fence: fence, Repos: []ListedRepo{{Name: "h/one"}}})
				b.do(&FinishJob{Kind: JobSync, Subject: "a", Fence: fence, Error: "401", NotBefore: b.now, TokenRefused: true})
			}, rest, 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBook(t)
			b.define("1")
			b.member("n1")
			b.do(&PutAccount{Account: User{ID: "ann", Email: "ann@x", Role: RoleMember, State: AccountActive}})
			listed(b)
			b.listing("b", "h/both", "h/other")
			began, before := b.now, b.s.View().Repo(1)

			for i, s := range steps {
				b.now = b.now.Add(s.after)
				s.do(b)
				if got := b.shown(); !slices.Equal(got, s.want) {
					t.Fatalf("step %d: everybody sees %v, want %v", i, got, s.want)
				}

				c := b.s.View().Connection("a")
				if s.until == 0 != c.HidesAt().IsZero() || s.until > 0 && c.RefusedAt.Before(began) {
					t.Errorf("step %d: it hides %v after the start, want %v", i, c.HidesAt().Sub(began), s.until)
				}
			}

			// No repository was deleted, so nothing has to be fetched again.
			if r := b.s.View().Repo(1); r.ID != before.ID || r.Orphaned() || r.Generation != before.Generation || !r.OrphanedAt.IsZero() {
				t.Errorf("a repository was let go of: %+v", r)
			}
		})
	}
}

// While the host refuses the token, it is not asked who may read hidden repositories.
func TestPermissionJobs_skipRepositoriesHiddenByATokenRefusal(t *testing.T) {
	t.Parallel()
	b, ids := observed(t, 2)
	b.endOfPerson(ids, "p0", b.begin(JobAccountSync, ReaderKey(hSite, "p0")), []bool{true, true})
	counts := func() [2]int { return [2]int{int(b.s.View().Asked().GetCardinality()), len(b.sees("ann"))} }

	b.attempt("host", true)
	if got := counts(); got != [2]int{2, 2} {
		t.Fatalf("%v repositories are asked for and seen, want two of each", got)
	}
	b.now = b.now.Add(ServeRefused)
	b.attempt("host", true)
	if got := counts(); got != [2]int{} {
		t.Errorf("%v repositories are asked for and seen, want none", got)
	}
}
