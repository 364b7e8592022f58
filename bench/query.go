package bench

import (
	"encoding/json"
	"strings"

	"github.com/shoalsearch/shoal/shard/query"
)

// counting says which matches of a search are counted.
type counting bool

const (
	countShown counting = false // those that are shown
	countAll   counting = true  // all
)

// Query is one search of a workload.
type Query struct {
	Kind   string
	Text   string
	Regexp bool
	Case   bool // case-sensitive
	// ZoektMs and RipgrepMs are times on one machine. Only their ratio is used. 0 means not measured.
	ZoektMs, RipgrepMs float64
}

// bound returns which part of ripgrep's time a query may take: 0.4 of zoekt's part, but at most 0.3, and
// at most 0.1 for a weak query.
func (q Query) bound() float64 {
	b := 0.3
	if q.RipgrepMs > 0 {
		b = min(b, 0.4*q.ZoektMs/q.RipgrepMs)
	}
	if q.weak() {
		b = min(b, 0.1)
	}
	return b
}

// weak reports whether an index helps little with a query.
func (q Query) weak() bool {
	return q.Kind == "regex-weak" || q.Kind == "regex-none" || q.Text == "^}$"
}

// body returns the body of a search that shows up to so many matches. Unless counts is countAll, it stops
// after these.
func (q Query) body(matches int, counts counting) []byte {
	text := query.Quote(q.Text) // quoted, because the text may have spaces
	if q.Regexp {
		text = query.QuoteRegexp(q.Text)
	}

	if strings.HasPrefix(q.Text, "sym:") {
		text = q.Text
	}
	if counts == countAll {
		text += " count:all"
	}

	return requestBody(map[string]any{
		"query": text, "matches": matches, "isRegexEnabled": q.Regexp, "isCaseSensitivityEnabled": q.Case,
	})
}

// requestBody returns the JSON of a request.
func requestBody(members map[string]any) []byte {
	body, err := json.Marshal(members)
	if err != nil {
		panic("BUG: a request does not marshal: " + err.Error()) // it has strings, numbers and booleans alone
	}
	return body
}

// baselineQueries is the table of queries that all engines were measured with.
func baselineQueries() []Query {
	// The queries are sorted by kind: an index helps most with the first, and not at all with the last.
	return []Query{
		{"rare-lit", "kzalloc_node_failed_xyz", false, false, 1.8, 450},
		{"rare-lit", "tg3_read_firmware_ver", false, false, 4.6, 450},
		{"rare-lit", "io_uring_cmd_import_fixed", false, false, 2.7, 450},
		{"mid-lit", "struct workqueue_struct", false, true, 11.9, 450},
		{"mid-lit", "mutex_lock_interruptible", false, false, 9.0, 450},
		{"mid-lit", "EXPORT_SYMBOL_GPL", false, true, 20.4, 450},

		{"common-lit", "return", false, false, 606.3, 450},
		{"common-lit", "unsigned int", false, false, 134.6, 450},
		{"common-lit", "static inline void", false, true, 34.8, 450},
		{"short-lit", "if", false, false, 5047.9, 450},
		{"short-lit", "rcu", false, false, 56.3, 450},
		{"short-lit", "->x", false, true, 23.7, 450},

		{"common-trigrams-rare", "interrupt context static", false, false, 3.4, 450},
		{"common-trigrams-rare", "return static int struct", false, false, 5.2, 450},
		{"ci-lit", "copyright", false, false, 151.8, 450},
		{"ci-lit", "spin_lock_irqsave", false, false, 24.2, 445},
		{"ci-lit", "todo", false, false, 17.5, 452},

		{"regex-lit", `ext4_[a-z]+_inode`, true, true, 15.6, 381},
		{"regex-lit", `(kmalloc|kzalloc)\(sizeof`, true, true, 181.2, 486},
		{"regex-lit", `struct [a-z_]+_operations`, true, true, 243.0, 406},
		{"regex-lit", `spin_(un)?lock_irqsave\(&[a-z]+->lock`, true, true, 93.9, 433},
		{"regex-weak", `[a-z]+_lock\(`, true, true, 4991.3, 440},
		{"regex-weak", `\bv[0-9]+\.[0-9]+\.[0-9]+\b`, true, true, 8927.4, 895},
		{"regex-weak", `[0-9]{8}`, true, true, 12226.0, 1734},

		{"regex-none", `[A-Z]{20,}`, true, true, 12796.1, 1570},
		{"regex-ci", `copyright.*google`, true, false, 55.3, 458},
		{"regex-ci", `fixme|xxx|hack`, true, false, 52.3, 556},
		{"regex-line", `^#define [A-Z]+_MAX`, true, true, 3829.8, 574},
		{"regex-line", `^}$`, true, true, 6668.6, 629},
	}
}

// hardQueries returns regular expressions for which an index helps little.
func hardQueries() []Query {
	patterns := []string{
		`\b[a-z]+[0-9]+[a-z]+\b`, `[A-Z][a-z]+[A-Z][a-z]+`, `\([a-z]+, [a-z]+\)`, `[a-z]+ = [a-z]+\[[0-9]+\]`,
		`\bint [a-z]+;`, `[^ \t\n]{80,}`, `(a|b)*c[0-9]{3,5}(x|y)`, `0x[0-9a-f]{8}`, `".*%[0-9]+d.*"`, `^\s*[a-z_]+:$`,
		`error|warn|fail|abort`, `\w+\s*\(\)`,
		`[0-9]+\.[0-9]+`, `\b[0-9]{1,3}(\.[0-9]{1,3}){3}\b`, `[a-f0-9]{32}`, `\b[A-Z]{2}[0-9]{4}\b`, `(foo|bar|baz)[0-9]`,

		`[a-z]{3}[0-9]{3}`, `^[a-z]`, `;$`, `\{$`, `^\t+return`, `^static .*\)$`, `[a-z]+_[a-z]+_[a-z]+\(`, `->[a-z]+->[a-z]+->`,
		`if \(!?[a-z]+\)$`, `for \(i = 0; i < [a-z]+; i\+\+\)`, `0[xX][0-9a-fA-F]+ULL`, `/\*.*\*/`, `//.*TODO`, `[(][(][(]`,
		`\b[a-z]\b`, `[^\x00-\x7f]`, `[[:upper:]]+_[[:upper:]]+_[[:digit:]]+`, `(?i)(null|nil|none)`, `\s+$`, `^$`,
		`"[^"]{60,}"`, `'.'`, `\\[nt]`, `%[0-9]*l?l?[dux]`, `(un)?signed (char|short|int|long)`, `(get|set|put)_[a-z]+_(by|from)`,
		`\bx86(_64)?\b`, `[a-z]+\.[ch]>`, `#if(n?def)? [A-Z]+`, `goto [a-z]+;`, `(\w+) (\w+)?`, `=\s*-?[0-9]+;`, `\*\*[a-z]+`,
		`^[A-Z][a-z]+ [a-z]+ [a-z]+`, `[A-Za-z]+@[a-z]+\.(com|org)`, `https?://[^ ]+`, `\(c\) (19|20)[0-9]{2}`, `v[0-9]+`,
		`[~!]\w+`, `>> ?[0-9]+`, `\?.*:.*;`, `sizeof\(\*?[a-z]+\)`, `\bu(8|16|32|64)\b`, `.{120,}`, `_init\b.*\bvoid`,
	}

	var qs []Query
	for _, p := range patterns {
		qs = append(qs, Query{Kind: "hard", Text: p, Regexp: true, Case: true})
	}
	return qs
}

// selectiveQueries returns the queries of the throughput test.
func selectiveQueries() []Query {
	return []Query{
		{Text: "tg3_read_firmware_ver"}, {Text: "io_uring_cmd_import_fixed"}, {Text: "mutex_lock_interruptible"},
		{Text: "struct workqueue_struct"}, {Text: "spin_lock_irqsave"}, {Text: `ext4_[a-z]+_inode`, Regexp: true},
	}
}
