package browser

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// repositoriesHaveAState: whether they are indexed, how large they are, by filters
// and orders of the list.
func repositoriesHaveAState(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, "")
	names := `[...document.querySelectorAll('main tbody tr th[scope=row] a')].map(a => a.textContent)`
	b.goTo("/settings/repos?sort=size", 200)
	b.expect("the largest first", names+`[0] === 'local/large' && `+names+`.length === 3`)
	b.expect("a state of each", `[...document.querySelectorAll('main tbody tr')].every(r => r.innerText.includes('indexed'))`)
	b.goTo("/settings/repos?state=failed", 200)
	b.expect("none that failed", names+`.length === 0`)
	b.goTo("/repos?sort=pushed", 200)
	b.expect("the order of pushes", `document.querySelector('select[name=sort]').value === 'pushed' && [...document.querySelectorAll('.repo-row a.repo')].at(-1).textContent.startsWith('local/a b')`)
}

// browsersKnowTheSearch: a page says how a browser searches here from its own box.
func browsersKnowTheSearch(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, "")
	b.goTo("/", 200)
	at := eval[string](b, `document.querySelector('link[rel=search]').getAttribute('href')`)
	resp, err := http.Get(s.url + at)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 || !strings.Contains(string(text), "/search?query={searchTerms}") {
		t.Errorf("%s: %s %s %v", at, resp.Status, text, err)
	}
}
