package suggest

// filters are those of a query, the common ones first.
var filters = []struct{ name, means string }{
	{"repo", "repositories whose name matches"},
	{"file", "files whose path matches"},
	{"lang", "files of a language"},
	{"sym", "symbols whose name matches"},
	{"rev", "a branch, tag or commit"},
	{"at", "a date, as 2026-01-31"},
	{"content", "text that looks like a filter"},
	{"context", "a search context"},
	{"reposet", "repositories by exact name"},
	{"case", "yes, no, auto"},
	{"type", "file, repo"},
	{"count", "how much is returned; all counts everything"},
	{"archived", "yes, no, only"},
	{"fork", "yes, no, only"},
	{"visibility", "public, internal, private, any"},
	{"timeout", "bounds the query"},
}

// canonical is the name of a filter by each of its names.
var canonical = map[string]string{
	"repo": "repo", "r": "repo", "file": "file", "f": "file", "lang": "lang", "l": "lang", "sym": "sym", "rev": "rev", "branch": "rev", "b": "rev",
	"revision": "rev", "context": "context", "reposet": "reposet", "case": "case", "type": "type", "count": "count", "archived": "archived",
	"content": "content", "c": "content", "fork": "fork", "visibility": "visibility", "timeout": "timeout", "at": "at",
}

// fixed are the values of filters that take few.
var fixed = map[string][]string{
	"case": {"yes", "no", "auto"}, "type": {"file", "repo"}, "count": {"all", "100", "1000", "10000"}, "archived": {"yes", "no", "only"},
	"fork": {"yes", "no", "only"}, "visibility": {"public", "internal", "private", "any"}, "timeout": {"500ms", "5s", "30s"},
}
