package catalog

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
)

// Each case is a list of listings in a short notation, with the repositories after each. A listing
// is "connection: name=id name=id". An id of the form /dir is a local directory, and "-" is an
// address without an id. Repositories are "number:name", by number.
func TestListing_identifiesRepositoriesByTheHostsOwnID(t *testing.T) {
	t.Parallel()
	for name, steps := range map[string][][2]string{
		"a rename keeps the number": {
			{"a: h/one=1 h/two=2", "1:h/one 2:h/two"},
			{"a: h/uno=1 h/two=2", "1:h/uno 2:h/two"},
		},
		"a swap of names": {
			{"a: h/one=1 h/two=2", "1:h/one 2:h/two"},
			{"a: h/two=1 h/one=2", "1:h/two 2:h/one"},
		},
		"a circle of three": {
			{"a: h/x=1 h/y=2 h/z=3", "1:h/x 2:h/y 3:h/z"},
			{"a: h/y=1 h/z=2 h/x=3", "1:h/y 2:h/z 3:h/x"},
		},
		"a name that came back with another id is another repository": {
			{"a: h/one=1", "1:h/one"},
			{"a: h/one=9", "1:h/one+1(gone) 2:h/one"},
		},
		"a record from before there were ids gets its id by its name": {
			{"a: h/one=-", "1:h/one"},
			{"a: h/one=1", "1:h/one"},
			{"a: h/uno=1", "1:h/uno"},
		},
		"an address without an id does not speak for the host": {
			{"b: h/one=1", "1:h/one"},
			{"a: h/one=-", "1:h/one"},
			{"b: h/uno=1", "1:h/uno"},
		},
		"a directory does not keep the name of a repository that is listed": {
			{"a: h/one=/srv/x", "1:h/one"},
			{"b: h/one=1", "1:local/x 2:h/one"},
		},
		"a directory does not take the name of a repository that is listed": {
			{"b: h/one=1", "1:h/one"},
			{"a: h/one=/srv/x", "1:h/one 2:local/x"},
			{"a: h/one=/srv/x", "1:h/one 2:local/x"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBook(t)
			b.configure(twoConnections)
			b.member("n1")
			for _, step := range steps {
				b.list(step[0])
				if got := b.numbers(); got != step[1] {
					t.Fatalf("after %q:\n got %s\nwant %s", step[0], got, step[1])
				}
				again := restored(t, b.s)
				if again.View().Hash() != b.s.View().Hash() || again.externals.Len() != b.s.externals.Len() {
					t.Fatalf("after %q a snapshot is restored to another state", step[0])
				}
			}
		})
	}
}

// list runs a complete listing in the notation above.
func (b *book) list(text string) {
	b.t.Helper()
	connection, rest, _ := strings.Cut(text, ": ")
	b.do(&EnqueueJob{Kind: JobSync, Subject: connection, Urgent: true})
	page := &SyncPage{Connection: connection, Fence: b.grant(JobSync, connection)}
	for _, item := range strings.Fields(rest) {
		name, id, _ := strings.Cut(item, "=")
		l := ListedRepo{Name: name, RepoFacts: RepoFacts{ExternalID: "gitea:h:" + id, CloneURL: "https://" + name + ".git"}}
		switch {
		case id == "-":
			l.ExternalID, l.CloneURL = name, "https://"+name
		case strings.HasPrefix(id, "/"):
			l.ExternalID, l.CloneURL = name, "file://"+id
		}
		page.Repos = append(page.Repos, l)
	}
	b.do(page)
	b.do(&FinishSync{Connection: connection, Fence: page.Fence, Complete: true, Listed: uint32(len(page.Repos))})
}

// numbers returns the repositories as "number:name", by number.
func (b *book) numbers() string {
	var out []string
	for r := range b.s.View().Repos() {
		text := fmt.Sprintf("%d:%s", r.ID, r.Name)
		if r.Orphaned() {
			text += "(gone)"
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

func TestFormerRepositoryName_leadsToItForThirtyDays(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.configure(twoConnections)
	b.member("n1")
	b.list("a: h/one=1")
	b.list("a: h/uno=1")
	if r := b.s.View().RepoByFormerName("h/one"); r == nil || r.Name != "h/uno" {
		t.Fatalf("the former name leads to %+v", r)
	}
	if v := b.s.View(); fmt.Sprint(v.FormerNames(v.RepoByName("h/uno"))) != "[h/one]" {
		t.Fatalf("former names %v", v.FormerNames(v.RepoByName("h/uno")))
	}
	if r := b.s.View().RepoByFormerName("h/uno"); r != nil {
		t.Fatalf("the name of now is a former one of %s", r.Name)
	}
	b.list("a: h/uno=1 h/one=2")
	if v := b.s.View(); len(v.FormerNames(v.RepoByName("h/uno"))) > 0 {
		t.Fatal("a name that another repository has now still leads to the one that had it")
	}
	b.list("a: h/uno=1 h/two=2")
	b.now = b.now.Add(31 * 24 * time.Hour)
	b.do(&Noop{})
	if r := b.s.View().RepoByFormerName("h/one"); r != nil {
		t.Fatalf("after a month the former name leads to %s", r.Name)
	}
}

func TestFinishSync_repositoriesInKeptOrPartialStayListed(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.configure(twoConnections)
	b.member("n1")
	b.do(&EnqueueJob{Kind: JobSync, Subject: "a", Urgent: true})
	fence := b.grant(JobSync, "a")
	page := &SyncPage{Connection: "a", Fence: fence}
	for _, name := range []string{"x/1", "x/2", "y/3", "y/4"} {
		page.Repos = append(page.Repos, ListedRepo{Name: name, RepoFacts: RepoFacts{ExternalID: "gitea:h:" + name}, Target: "orgs/" + name[:1]})
	}
	b.do(page)
	b.do(&FinishSync{Connection: "a", Fence: fence, Complete: true, Listed: 4})

	// The second listing has only x/1: y was listed in part, and the host still has x/2.
	b.do(&EnqueueJob{Kind: JobSync, Subject: "a", Urgent: true})
	fence = b.grant(JobSync, "a")
	b.do(&SyncPage{Connection: "a", Fence: fence, Repos: page.Repos[:1]})
	b.do(&FinishSync{Connection: "a", Fence: fence, Complete: true, Listed: 1, Partial: []string{"orgs/y"}, Kept: []RepoID{2}})
	if got, want := b.numbers(), "1:x/1 2:x/2 3:y/3 4:y/4"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}

	// In the third listing the host no longer has them.
	b.do(&EnqueueJob{Kind: JobSync, Subject: "a", Urgent: true})
	fence = b.grant(JobSync, "a")
	b.do(&SyncPage{Connection: "a", Fence: fence, Repos: page.Repos[:1]})
	b.do(&FinishSync{Connection: "a", Fence: fence, Complete: true, Listed: 1})
	if got, want := b.numbers(), "1:x/1 2:x/2(gone) 3:y/3(gone) 4:y/4(gone)"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
}

// restored saves a state and returns what Load reads.
func restored(t *testing.T, s *State) *State {
	t.Helper()
	var buf bytes.Buffer
	if err := s.View().Save(&buf); err != nil {
		t.Fatal(err)
	}
	out, err := Load(&buf)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
