package browser

// keyRow is a page, and what is done on it by keys.
type keyRow struct {
	page   string
	path   string // the address that is opened first
	who    string // a guest, or an owner, who is signed in by the row of the invitation
	routes []string
	steps  []keyStep
}

// keyStep is keys, what happens then, and how the page shows that it has.
type keyStep struct{ keys, then, holds string }

const (
	aGuest  = "a guest"
	anOwner = "an owner"
)

// at holds on a page, and text where a page has it.
func at(path string) string   { return `location.pathname === '` + path + `'` }
func text(s string) string    { return `document.body.innerText.includes(` + quote(s) + `)` }
func element(s string) string { return `!!document.querySelector(` + quote(s) + `)` }
func focus(s string) string   { return `document.activeElement.matches(` + quote(s) + `)` }
func in(s string) string      { return `location.pathname.includes('` + s + `')` }

// keyRows is every page of the site. The list of keyboard.md is made of it.
var keyRows = []keyRow{
	{"The first page", "/", aGuest, []string{"GET /", "GET /search"}, []keyStep{
		{"type needle", "results stand below the box", `document.querySelectorAll('#files .file').length > 2`},
		{"Enter", "the page of the results", at("/search") + " && " + element(".summary")},
	}},
	{"Results", "/search?query=needle", aGuest, []string{"GET /search", "GET /browse/*/-/blob"}, []keyStep{
		{"j", "the first file has the focus", focus(".file.on a.path")},
		{"n", "the first match has it", `!!document.activeElement.closest('.hit')`},
		{"e", "more lines around the matches", `location.search.includes('ctx=3')`},
		{"Alt+c", "case counts", `document.getElementById('case').checked && location.search.includes('isCaseSensitivityEnabled')`},
		{"/", "the box has the focus", focus("#query")},
		{"Tab to View, Enter", "the menu is open", element(".tools .menu[open]")},
		{"Esc", "it is closed", "!" + element(".tools .menu[open]") + " && " + focus("summary")},
		{"Tab to Save, Space", "the search is saved", element("#save[aria-pressed=true]")},
		{"j, o", "the file is open", in("/-/blob/")},
	}},
	{"Nothing found", "/search?query=nosuchword+lang:go", aGuest, []string{"GET /search"}, []keyStep{
		{"Tab to lang:go × remove, Enter", "the query without the filter", `!location.search.includes('lang')`},
	}},
	{"Commits found", "/search?query=type:diff+needle", aGuest, []string{"GET /search", "GET /browse/*/-/commit"}, []keyStep{
		{"j", "the first commit has the focus", focus(".commit.on a.path")},
		{"n", "the first line that matches has it", `!!document.activeElement.closest('.row.hit')`},
		{"Tab to − removed, Enter", "only lines that went", `location.search.includes('removed%3Aneedle')`},
		{"j, o", "the commit is open", in("/-/commit/")},
	}},
	{"A mistake in the query", "/search?query=foo+lang:nothing", aGuest, []string{"GET /search", "GET /help/{topic}"}, []keyStep{
		{"Tab to how queries are written, Enter", "the help", at("/help/syntax")},
	}},
	{"Repositories", "/repos", aGuest, []string{"GET /repos", "GET /browse/*/-/tree"}, []keyStep{
		{"Tab to Name, type app, Enter", "those with these letters", `location.search.includes('query=app')`},
		{"Tab to local/app, Enter", "its directory", in("/browse/local/app")},
	}},
	{"A directory", "/browse/local/app", aGuest, []string{"GET /browse/*/-/tree", "GET /browse/*/-/blob"}, []keyStep{
		{"Tab to greet/, Enter", "the directory below", in("/-/tree/greet")},
		{"t, type grtest", "the finder, with the file first", `document.querySelector('#finder')?.dataset.query === 'grtest'`},
		{"Esc", "it is closed", "!" + element("#finder[open]")},
		{"t, type run, Enter", "the file is open", in("/-/blob/tools/deep/down/run.sh")},
	}},
	{"A file", "/browse/local/app/-/blob/main.go", aGuest, []string{"GET /browse/*/-/blob", "GET /browse/*/-/blame"}, []keyStep{
		{"l, type 4-6, Enter", "lines 4 to 6 are marked", `location.hash === '#L4-L6'`},
		{"w", "long lines go on in the next row", element(".text .line")},
		{"w", "as before", "!" + element(".text .line")},
		{"Tab to Copy path, Enter", "the path is copied", `document.getElementById('status').textContent === 'Copied.'`},
		{"y", "the address names this very commit", `/@[0-9a-f]{40}/.test(location.pathname)`},
		{"b", "blame", in("/-/blame/")},
	}},
	{"Definitions and references", "/browse/local/app/-/blob/main.go", aGuest, []string{"GET /browse/*/-/blob"}, []keyStep{
		{"r, type Greeting, Enter", "the panel, with the focus on the definition", focus("#panel[open] .uses a")},
		{"Esc", "it is closed, the text has the focus", focus("#code") + " && !" + element("#panel[open]")},
		{"r, type Greeting, Enter", "the panel again", focus("#panel[open] .uses a")},
		{"Enter", "the file of the definition", in("/-/blob/greet/greet.go")},
	}},
	{"A document", "/browse/local/app/-/blob/docs/guide.md", aGuest, []string{"GET /browse/*/-/blob"}, []keyStep{
		{"m", "its source", `location.search === '?plain=1'`},
		{"m", "the document", `location.search === '' && ` + element("#document")},
	}},
	{"Another revision", "/browse/local/app/-/blob/main.go", aGuest, []string{"GET /browse/*/-/blob"}, []keyStep{
		{"Tab to main indexed, Enter", "the revisions", element(".picker[open]")},
		{"Tab to v1.0, Enter", "the file of the tag", in("@v1.0/-/blob/main.go")},
	}},
	{"Blame", "/browse/local/app/-/blame/main.go", aGuest, []string{"GET /browse/*/-/blame", "GET /browse/*/-/commits"}, []keyStep{
		{"Tab to Lines with their commits", "the lines can be scrolled", focus(".code")},
		{"h", "the history", in("/-/commits/")},
	}},
	{"History", "/browse/local/app/-/commits/", aGuest, []string{"GET /browse/*/-/commits", "GET /browse/*/-/commit"}, []keyStep{
		{"Tab to Message, type twice, Enter", "the commits that say so", `location.search.includes('message=twice')`},
		{"Tab to say it twice, Enter", "the commit", in("/-/commit/")},
	}},
	{"A commit", "/browse/local/app/-/commit/{commit}", aGuest, []string{"GET /browse/*/-/commit"}, []keyStep{
		{"n", "the first place that changed", `document.documentElement.dataset.change === '0'`},
		{"j", "the first file", focus("a.path")},
		{"w", "blanks are ignored", `location.search.includes('w=1')`},
		{"Tab to side by side, Enter", "old beside new", element(".pair")},
	}},
	{"A comparison", "/browse/local/app/-/compare/v1.0...main", aGuest, []string{"GET /browse/*/-/compare"}, []keyStep{
		{"Tab to the other way round, Enter", "it is", in("/-/compare/main...v1.0")},
	}},
	{"Branches", "/browse/local/app/-/branches", aGuest, []string{"GET /browse/*/-/branches", "GET /browse/*/-/tree"}, []keyStep{
		{"Tab to Name, type old, Enter", "those with these letters", `location.search.includes('query=old')`},
		{"Tab to old, Enter", "the directory of the branch", in("@old")},
	}},
	{"Tags", "/browse/local/app/-/tags", aGuest, []string{"GET /browse/*/-/tags", "GET /browse/*/-/tree"}, []keyStep{
		{"Tab to v1.0, Enter", "the directory of the tag", in("@v1.0")},
	}},
	{"Dependencies", "/browse/local/app/-/dependencies", aGuest, []string{"GET /browse/*/-/dependencies"}, []keyStep{
		{"Tab to Library, type zod, Enter", "those with these letters", `location.search.includes('query=zod')`},
	}},
	{"Files found", "/browse/local/app/-/find", aGuest, []string{"GET /browse/*/-/find", "GET /browse/*/-/blob"}, []keyStep{
		{"Tab to Letters of the path, type grtest, Enter", "the files with these letters", `location.search.includes('query=grtest')`},
		{"Tab to greet/greet_test.go, Enter", "the file", in("/-/blob/greet/greet_test.go")},
	}},
	{"Symbols found", "/browse/local/app/-/symbols", aGuest, []string{"GET /browse/*/-/symbols", "GET /browse/*/-/blob"}, []keyStep{
		{"T, type grtng", "the finder of symbols, with the first", `document.querySelector('#symbolFinder')?.dataset.query === 'grtng'`},
		{"Esc", "it is closed", "!" + element("#symbolFinder[open]")},
		{"Tab to Letters of the name, type grtng, Enter", "the symbols with these letters", `location.search.includes('query=grtng')`},
		{"Tab to Greeting…, Enter", "the file, at its line", in("/-/blob/greet/greet.go") + ` && location.hash.startsWith('#L')`},
	}},
	{"A name", "/browse/local/app/-/names?name=Greeting", aGuest, []string{"GET /browse/*/-/names"}, []keyStep{
		{"Tab to in all repositories, Enter", "its places everywhere", text("only in local/app")},
	}},
	{"A raw file", "/browse/local/app/-/blob/many.txt", aGuest, []string{"GET /browse/*/-/raw"}, []keyStep{
		{"Tab to Raw, Enter", "the file as the browser shows it", in("/-/raw/many.txt")},
		{"Space", "it scrolls", `scrollY > 0`},
	}},
	{"Lines on pages of other sites", "/embed/local/app/-/blob/many.txt?lines=1-3", aGuest, []string{"GET /embed/*"}, []keyStep{
		{"Tab to Text of the file", "the lines can be scrolled", focus(".code")},
	}},
	{"The keys of a page", "/repos", aGuest, []string{"GET /help/{topic}"}, []keyStep{
		{"?", "they lie over the page", element("#sheet[open] kbd")},
		{"Esc", "it is as before", "!" + element("#sheet[open]") + " && " + at("/repos")},
	}},
	{"The palette", "/repos", aGuest, []string{"GET /settings"}, []keyStep{
		{"Ctrl+k, type settings", "the page is in the list", `document.getElementById('palette')?.dataset.query === 'settings'`},
		{"Esc", "it is closed", "!" + element("#palette[open]")},
		{"Ctrl+k, type settings, Enter", "the settings", at("/settings")},
	}},
	{"Help", "/help/keys", aGuest, []string{"GET /help/{topic}"}, []keyStep{
		{"Tab to press, type d, Enter", "d does what / did", text("does what / did")},
		{"Tab to / as before, Enter", "/ does it again", "!" + element("#remapped li")},
		{"Tab to Switch single keys off in this browser, Space", "single keys are off", `localStorage.getItem('keysOff') === '1'`},
		{"Space", "they are on", `localStorage.getItem('keysOff') === ''`},
	}},
	{"Documentation", "/docs", aGuest, []string{"GET /docs", "GET /docs/*"}, []keyStep{
		{"Tab to Search the documentation, type drain node, Enter", "the pages that have both words", in("/docs?q=drain+node")},
		{"Tab to Add, drain, replace and remove nodes, Enter", "the page", at("/docs/how-to/add-remove-replace.md")},
	}},
	{"No such page", "/browse/local/nosuch", aGuest, []string{"GET /repos"}, []keyStep{
		{"Tab to Skip to the content, Enter, Tab to Repositories, Enter", "the repositories", at("/repos")},
	}},
	{"An invitation", "/join?link={link}", anOwner, []string{"GET /join", "POST /join"}, []keyStep{
		{"Tab to Choose a password\\, of ten characters at least, type correct horse battery, Tab to Once more, type correct horse battery, Enter", "signed in", at("/") + " && " + text("ann@example.com")},
	}},
	{"Questions", "/chat", anOwner, []string{"GET /chat", "POST /chat", "GET /chat/{id}", "POST /chat/{id}"}, []keyStep{
		{"Tab to Question, type What is seven?, Tab to Ask, Enter", "the thread, with the answer", text("It is seven") + " && " + element("#chat textarea")},
		{"Tab to A further question, type And why?, Tab to Ask, Enter", "the second answer", `document.querySelectorAll('.answer').length === 2 && ` + element("#chat textarea")},
		{"Tab to Share, Enter", "it is shared", text("Share no more")},
		{"Tab to Delete, Enter", "the list of threads", at("/chat") + " && " + text("Nothing was asked yet.")},
	}},
	{"Overview", "/settings", anOwner, []string{"GET /settings", "GET /settings/repos"}, []keyStep{
		{"Tab to Repositories, Tab to Repositories, Enter", "the repositories by state", at("/settings/repos")},
	}},
	{"Repositories by state", "/settings/repos", anOwner, []string{"GET /settings/repos", "GET /settings/do/{action}", "POST /settings/do/{action}"}, []keyStep{
		{"Tab to Name, type app, Enter", "those with these letters", `location.search.includes('query=app')`},
		{"Tab to Index now: local/app, Enter", "what it will do is told", at("/settings/do/reindex")},
		{"Tab to Index now, Enter", "it is done", text("The repository is queued.")},
	}},
	{"Connections", "/settings/connections", anOwner, []string{"GET /settings/connections", "GET /settings/connections/{connection}", "POST /settings/do/{action}"}, []keyStep{
		{"Tab to work, Enter", "how its last listings ended", text("Last listings")},
		{"Tab to All connections, Enter", "all of them", at("/settings/connections")},
		{"Tab to List now: work, Enter", "what it will do is told", at("/settings/do/sync")},
		{"Tab to List now, Enter", "it is done", text("The connection is queued.")},
	}},
	{"Jobs", "/settings/jobs", anOwner, []string{"GET /settings/jobs", "POST /settings/do/{action}"}, []keyStep{
		{"Tab to Cancel… sync slow, Enter", "what it will do is told", at("/settings/do/cancel")},
		{"Tab to Cancel the job, Enter", "it is done", text("The job is cancelled.")},
		{"Tab to Run now… sync slow, Enter", "what it will do is told", at("/settings/do/retry")},
		{"Tab to Run now, Enter", "it is done", text("The job is queued.")},
	}},
	{"Nodes", "/settings/nodes", anOwner, []string{"GET /settings/nodes", "GET /settings/do/{action}", "POST /settings/do/{action}"}, []keyStep{
		{"Tab to Drain… {node}, Enter", "what it will do is told", at("/settings/do/drain")},
		{"Tab to Drain, Enter", "the only node is not drained, and why is told", element(".bad[role=alert]")},
		{"Tab to Cancel, Enter", "the nodes", at("/settings/nodes")},
	}},
	{"A removal that is asked about", "/settings/do/remove?subject={node}", anOwner, []string{"GET /settings/do/{action}", "POST /settings/do/{action}"}, []keyStep{
		{"Tab to To confirm\\, type the name, type another, Enter", "another name removes nothing", text("Type the name exactly as it stands above.")},
		{"Tab to Cancel, Enter", "the nodes", at("/settings/nodes")},
	}},
	{"Placement", "/settings/placement", anOwner, []string{"GET /settings/placement"}, []keyStep{
		{"Tab to Placement", "where it stands among the settings", focus("[aria-current=page]")},
	}},
	{"Events", "/settings/events", anOwner, []string{"GET /settings/events"}, []keyStep{
		{"Tab to Events, Tab to Events", "the table can be scrolled", focus("[role=region]")},
	}},
	{"Audit", "/settings/audit", anOwner, []string{"GET /settings/audit"}, []keyStep{
		{"Tab to Action, type user, Enter", "what was done with people", `location.search.includes('action=user')`},
	}},
	{"Configuration", "/settings/config", anOwner, []string{"GET /settings/config"}, []keyStep{
		{"Tab to Files of the nodes", "the table can be scrolled", focus("[role=region]")},
	}},
	{"Search contexts", "/settings/contexts", anOwner, []string{"GET /settings/contexts", "GET /search"}, []keyStep{
		{`Tab to context:"ours", Enter`, "a search in it", at("/search")},
	}},
	{"Agents", "/settings/agents", anOwner, []string{"GET /settings/agents", "GET /settings/access"}, []keyStep{
		{"Tab to claude mcp add…", "what is to be copied is selected", `String(getSelection()).trim() === document.activeElement.textContent.trim()`},
		{"Tab to Access, Enter", "the programs with access", at("/settings/access")},
	}},
	{"An agent that asks to be let in", "{agent}", anOwner, []string{"GET /oauth/authorize", "POST /oauth/authorize"}, []keyStep{
		{"Tab to Let it in, Enter", "the agent is told, and has its tokens", text("The agent has 200 OK")},
	}},
	{"Access", "/settings/access", anOwner, []string{"GET /settings/access", "POST /settings/access"}, []keyStep{
		{"Tab to End An agent, Enter", "it is ended", text("is ended")},
	}},
	{"API keys", "/settings/keys", anOwner, []string{"GET /settings/keys", "POST /settings/keys"}, []keyStep{
		{"Tab to Name, type mine, Enter", "the key is shown", element("#made")},
		{"Tab to Revoke mine, Enter", "it is revoked", "!" + text("mine")},
	}},
	{"Watches", "/watches", anOwner, []string{"GET /watches", "POST /watches", "GET /watches/{id}", "POST /watches/{id}"}, []keyStep{
		{"Tab to Watch for, type type:diff added:octopus, Enter", "the page of the watch", text("It looks at each push from now on")},
		{"Tab to New address, Enter", "the address of its feed is shown", text("is shown this once")},
		{"Tab to Delete this watch, Enter", "the list without it", text("No watch yet.")},
	}},
	{"People", "/settings/people", anOwner, []string{"GET /settings/people", "POST /settings/people"}, []keyStep{
		{"Tab to E-mail address, type bob@example.com, Enter", "the link is shown", element("#made")},
		{"Tab to Suspend: bob@example.com, Enter", "the account is suspended", element("[aria-label='Reactivate: bob@example.com']")},
		{"Tab to Reactivate: bob@example.com, Enter", "it is active", element("[aria-label='Suspend: bob@example.com']")},
		{"Tab to New link: bob@example.com, Enter", "another link is shown", element("#made")},
	}},
	{"Rights", "/settings/rights", anOwner, []string{"GET /settings/rights"}, []keyStep{
		{"Tab to E-mail address or id, type bob@example.com, Tab to Repository, type local/app, Enter", "why somebody sees a repository", element("[aria-label=Reasons]")},
	}},
	{"Your account, and signing out", "/settings/account", anOwner, []string{"GET /settings/account", "POST /settings/account", "POST /logout"}, []keyStep{
		{"Tab to Sign out everywhere else, Enter", "it is done", text("Signed out there.")},
		{"Tab to Present password\\, if you have one, type correct horse battery, Tab to New password\\, of ten characters at least, type another horse, Tab to Once more, type another horse, Enter", "it is changed", text("The password is changed.")},
		{"Tab to Sign out, Enter", "signed out", "!" + text("ann@example.com")},
	}},
	{"Signing in", "/login?next=/repos", anOwner, []string{"GET /login", "POST /login"}, []keyStep{
		{"Tab to E-mail address, type ann@example.com, Tab to Password, type another horse, Enter", "the page that was asked for", at("/repos") + " && " + text("ann@example.com")},
	}},
	{"Signing in by a key", "/login?next=/repos", aGuest, []string{"GET /login", "POST /login"}, []keyStep{
		{"Tab to API key, type {key}, Enter", "the page that was asked for", at("/repos")},
	}},
}
