package browser

import (
	"net/url"
	"testing"
	"time"
)

// anyCommitAndAnyDay asks in the box for a commit that is not indexed and for a
// day, and is told which part was searched where.
func anyCommitAndAnyDay(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, "")
	ask := func(query string, status int64) { b.goTo("/search?query="+url.QueryEscape(query), status) }

	first := s.app.Git("rev-list", "--max-parents=0", "HEAD")
	ask("needle rev:"+first, 200)
	b.expect("one file has it in the first commit", `document.querySelectorAll('article.file').length === 1 && document.querySelector('.path').textContent === 'README.md'`)
	b.expect("the page says where it was searched", `/local\/app at [0-9a-f]{10} of .*index of/.test(document.querySelector('.past').innerText)`)
	b.expect("the answer is proved complete", `document.querySelector('#proof.good')`)
	b.click(".path")
	b.until("its file at that commit", `location.pathname.includes('@`+first+`/') && document.body.innerText.includes('A needle in a haystack')`)

	ask("repo:app at:"+day.AddDate(0, 1, 0).Format(time.DateOnly)+" HELLO", 200)
	b.expect("the commit of that day is named", `document.querySelector('.past')`)
	ask("repo:app needle at:1990-01-01", 400)
	b.expect("no commit is as old", `document.querySelector('#trouble').innerText.includes('as old as 1990-01-01')`)
	ask("repo:large straw at:1990", 400)
}

// aDirectoryTellsItsLastCommits puts the last commit of each entry into the list of a
// directory once that is there; its size stays the last column.
func aDirectoryTellsItsLastCommits(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, "")
	b.goTo(browse(appRepo, "", "tree", ""), 200)
	b.until("the last commits", `document.documentElement.dataset.last === 'told'`)
	b.expect("each row has one", `[...document.querySelectorAll('#entries tbody tr')].every(row => row.cells.length === 4 && row.cells[1].querySelector('a[href*="/-/commit/"]'))`)
	b.expect("the columns have names", `[...document.querySelectorAll('#entries th')].map(th => th.innerText).join() === 'Name,Last change,When,Size'`)

	last := s.app.Git("log", "-1", "--format=%H", "--", "README.md")
	b.expect("it is the one that git has", `[...document.querySelectorAll('#entries tr')].find(row => row.innerText.startsWith('README.md')).cells[1].querySelector('a').href.endsWith('/`+last+`')`)
}
