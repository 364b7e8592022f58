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

// thePastIsSearched looks for commits by what they changed and by what they say, narrows them, and
// goes to the lines as they were and as they are.
func thePastIsSearched(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, "")
	ask := func(query string) { b.goTo("/search?query="+url.QueryEscape(query), 200) }

	ask("type:diff twice repo:app")
	b.expect("the commit is found, and nothing else", `document.querySelectorAll('.commit').length === 1 && document.querySelector('.commit > h2 a.path').innerText === 'say it twice'`)
	b.expect("its line is marked", `document.querySelector('.row.add.hit mark').innerText === 'twice'`)
	b.expect("the answer counts everything", `document.querySelector('.summary').innerText === '1 changed file' && !document.querySelector('#proof.warn')`)
	b.click(".commit .row.add.hit a.no")
	b.until("the line as it was then", `/@[0-9a-f]{40}\/-\/blob\/main\.go$/.test(location.pathname) && location.hash === '#L5'`)

	ask("type:diff greeting repo:app author:ada")
	b.click(".commit .row.hunk a")
	b.until("where it is today", `/app\/-\/blob\/.*\.(go|js|md)$/.test(location.pathname) && location.hash.startsWith('#L')`)

	ask("type:diff greeting repo:app")
	b.click(`.tools .seg a:last-child`)
	b.until("only what went", `location.search.includes('removed%3Agreeting') && document.querySelector('.row.del.hit') && !document.querySelector('.row.add.hit')`)
	ask("type:commit greet")
	b.expect("commits have marks in what they say", `document.querySelector('.commit h2 mark').innerText === 'greet'`)
	b.expect("and authors to choose from", `[...document.querySelectorAll('#facets li a')].some(a => a.innerText === 'Grace Hopper')`)
	b.click(`#facets a[href*="Grace"]`)
	b.until("those of one author", `location.search.includes('author%3A') && document.querySelectorAll('.commit').length === 1`)

	b.goTo(browse(appRepo, "", "blob", "main.go"), 200)
	b.click("#L5")
	b.until("what there is to do with a line", `document.querySelector('#lines:popover-open a[href*="added%3A"]')`)
	b.click(`#lines a[href*="added%3A"]`)
	b.until("the commit in which it came", `document.querySelectorAll('.commit').length === 1 && document.querySelector('.commit').innerText.includes('say it twice')`)
}
