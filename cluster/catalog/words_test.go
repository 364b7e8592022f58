package catalog

import (
	"fmt"
	"testing"
	"time"
	"unsafe"
)

// Repositories of one page share the memory of equal strings.
func TestDecodeEntry_sharesEqualStrings(t *testing.T) {
	t.Parallel()
	page := &SyncPage{Connection: "a", Fence: 1}
	for i := range 300 {
		name := fmt.Sprintf("github.com/acme/service-%03d", i)
		page.Repos = append(page.Repos, ListedRepo{
			Name: name, Target: "orgs/acme",
			RepoFacts: RepoFacts{HostKind: "github", DefaultBranch: "main", ExternalID: fmt.Sprint("github:github.com:", i), CloneURL: "https://" + name + ".git", Topics: []string{"service"}},
		})
	}

	entry := Entry{At: time.Unix(1, 0), Node: "n1", Commands: []Command{page}}
	raw, err := entry.Encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := DecodeEntry(1, raw)
	if err != nil {
		t.Fatal(err)
	}

	places := map[*byte]bool{}
	for i, r := range back.Commands[0].(*SyncPage).Repos {
		if r.Name != page.Repos[i].Name || r.ExternalID != page.Repos[i].ExternalID || r.CloneURL != page.Repos[i].CloneURL {
			t.Fatalf("repository %d came back as %+v", i, r)
		}
		for _, word := range []string{r.HostKind, r.DefaultBranch, r.Target, r.Topics[0]} {
			places[unsafe.StringData(word)] = true
		}
	}

	// A word that was displaced from its slot is stored a second time.
	if got, most := len(places), 120; got > most {
		t.Errorf("four words of 300 repositories stand in %d places, want %d at most", got, most)
	}
}
