package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/api"
	"github.com/shoalsearch/shoal/cluster/config"
)

// actionMeans has the meaning of each action of the audit.
var actionMeans = map[string]string{
	"access.denied":               "A right was lacking",
	"account.authorized":          "A code host may be asked in somebody's name",
	"account.linked":              "Somebody linked an account of a provider",
	"account.unlinked":            "That link ended",
	"api_key.created":             "A key was made",
	"api_key.deleted":             "A key was revoked",
	"audit.lost":                  "So many lines could not be written",
	"audit.missing":               "A node did not answer this export (a line at its end)",
	"audit.read":                  "An owner read the audit",
	"chat.changed":                "A thread was shared, or made private",
	"chat.deleted":                "A thread was deleted",
	"chat.duplicated":             "Somebody copied a shared thread",
	"chat.read":                   "Somebody read a thread",
	"cluster.level_raised":        "The catalog has a higher level: see versions",
	"cluster.recovered":           "`shoal recover` made a cluster of one node",
	"cluster.restored":            "`shoal snapshot restore` made a new cluster",
	"code.browsed":                "Pages of a repository",
	"code.definitions":            "Definitions of a name",
	"code.listed":                 "Directories and names of files",
	"code.read":                   "Text of a file, blame, changes, symbols",
	"code.references":             "References of a name",
	"code.searched":               "A search",
	"config.changed":              "Another configuration is in force",
	"config.sealed":               "It was sealed under the newest cluster key",
	"connection.listing_accepted": "Somebody accepted that repositories are gone",
	"credential.refused":          "A key or token was not good",
	"history.read":                "Commits, branches, tags",
	"job.canceled":                "Somebody cancelled a job",
	"job.requested":               "Somebody asked for a job",
	"login.failed":                "A password, key, link or provider did not let somebody in",
	"node.drained":                "A node gives its data away",
	"node.removed":                "A node was removed",
	"node.undrained":              "A drain was taken back",
	"oauth.all_revoked":           "All agents of an account ended",
	"oauth.consented":             "Somebody let an agent in",
	"oauth.revoked":               "An agent ended",
	"permissions.changed":         "Grants of an account changed",
	"permissions.cleared":         "A code host refuses somebody",
	"permissions.shrunk":          "A code host said twice that most of what somebody could read is gone",
	"question.asked":              "A question to a language model",
	"repository.listed":           "The list of repositories",
	"rights.read":                 "An owner asked why somebody sees a repository",
	"history.set":                 "Commits of repositories are indexed, or no longer",
	"secret.set":                  "A secret of the cluster was made anew",
	"session.all_ended":           "All sessions of an account ended",
	"session.created":             "Somebody signed in",
	"session.ended":               "A session ended",
	"sessions.read":               "An owner looked at somebody's sessions",
	"snapshot.taken":              "A back-up was made",
	"token.refused":               "A token or code of an agent was not good",
	"tool":                        "A tool of agents: `tool.` and its name",
	"tool.resource":               "A resource of the tool server",
	"user.approved":               "An owner let somebody in who waited",
	"user.changed":                "Another change of an account",
	"user.created":                "An account was made",
	"user.deleted":                "An account was deleted",
	"user.link_created":           "An invitation or a link to sign in was made",
	"user.password_changed":       "A password was set",
	"user.password_removed":       "A password was removed",
	"user.reactivated":            "A suspended account is let in again",
	"user.role_changed":           "An account has another role",
	"user.suspended":              "An account was suspended",
	"watch.changed":               "Somebody changed a watch, or made or ended its feed",
	"watch.created":               "Somebody saved a search that notifies",
	"watch.read":                  "Somebody, or a feed reader, read what a watch found",
	"watch.deleted":               "Somebody removed a watch",
}

// actionFiles are the files with names of audit actions, and what to read there.
var actionFiles = map[string]string{
	"cluster/catalog/eventrules.go": "changes", "cluster/catalog/refound.go": "changes", "node/job/owns.go": "changes", "node/operate/snapshot.go": "changes",
	"api/access.go": "accesses", "node/chronicle/series.go": "accesses", "node/chronicle/audit.go": "accesses",
}

// auditReference prints the actions that the code names.
func auditReference(t *testing.T) string {
	t.Helper()
	kinds := map[string]string{"tool": "accesses"} // its names are those of the tools
	action := regexp.MustCompile(`^[a-z_]+\.[a-z_]+$`)
	for _, s := range sources(t) {
		kind := actionFiles[s.path]
		if kind == "" {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && action.MatchString(literal(lit)) {
				kinds[literal(lit)] = kind
			}
			return true
		})
	}
	var b strings.Builder
	b.WriteString("# Actions of the audit\n\nThis page is printed from the code. [Audit](../audit.md) says how to read them.\n\n" +
		"Changes are in the catalog, at every node. Accesses and refusals are files of the node that answered.\n\n| action | kind | means |\n|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		if actionMeans[name] == "" {
			t.Errorf("actionMeans does not say what %s means", name)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, kinds[name], actionMeans[name])
	}
	for name := range actionMeans {
		if kinds[name] == "" {
			t.Errorf("actionMeans has %s, which the code does not name", name)
		}
	}
	return b.String()
}

// dataFile is a kind of file below a data directory.
type dataFile struct{ path, shown, holds, without string }

// dataFiles are all kinds, with expressions for their paths.
var dataFiles = []dataFile{
	{`node\.json`, "node.json", "id, cluster and number of starts of this node", "it cannot start: put it back, or join as a new node"},
	{`cluster\.key`, "cluster.key", "cluster key, unless `--cluster-key-file` names another file", "it cannot start"},
	{`peers\.json`, "peers.json", "how far the other nodes had come", "made again"},
	{`config-file\.json`, "config-file.json", "sums of the configuration files that this node has read", "made again"},
	{`last-backup`, "last-backup", "time of the newest back-up that this node gave", "it counts as none"},
	{`acme/.*`, "acme/", "keys and certificate of `--acme-domain`", "asked for anew"},
	{`api\.sock`, "api.sock", "socket of the operator, mode 0600", "made at each start"},
	{`raft/raft\.db`, "raft/raft.db", "log of the catalog", "it cannot start; the other nodes have the same entries"},
	{`raft/snapshots/.*`, "raft/snapshots/", "older part of the log, as a snapshot", "as above"},
	{`differing/.*\.snapshot`, "differing/", "catalogs that differed from the majority's, the newest three", "nothing"},
	{`mirrors/[0-9]+\.git/.*`, "mirrors/NUMBER.git/", "bare clone of a repository", "copied from another node, or cloned again"},
	{`shards/[0-9a-f]{64}\.shard`, "shards/SHA256.shard", "index with the text of some files", "copied, or made again"},
	{`shards/[0-9a-f]{64}\.(symbols|dead)`, "shards/SHA256.symbols, .dead", "symbols of a shard; what of it is out of date", "copied, or made again"},
	{`history/[0-9]+/.*`, "history/NUMBER/", "index of what the commits of a repository changed, for `type:commit` and `type:diff`", "made again from the mirror"},
	{`shards/damaged/.*`, "shards/damaged/", "index files whose checksum did not match", "nothing: delete them after a look at the disk"},
	{`threads/.*`, "threads/turns/", "questions to models and their answers, sealed", "answers are gone unless another node or a back-up has them"},
	{`audit/.*\.jsonl`, "audit/", "who read what, as JSON lines", "gone"},
	{`answers/.*`, "answers/", "last answers of code hosts, so that unchanged ones are not sent again", "asked again"},
	{`scratch/.*`, "scratch/", "small indexes of commits that are not indexed", "emptied at each start"},
	{`demo\.json`, "demo.json", "configuration of `shoal serve --demo`", "made again"},
}

// fileReference prints the kinds of files of a data directory.
func fileReference(*testing.T) string {
	var b strings.Builder
	b.WriteString("# Files on disk\n\nThis page is printed from a list that a test compares with the data directory of running nodes.\n\n" +
		"Everything of a node is below `--data-dir`, readable by its user alone. Only the catalog and the chats need a [back-up](../how-to/back-up.md).\n\n| below the data directory | holds | without it |\n|---|---|---|\n")
	for _, f := range dataFiles {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.shown, f.holds, f.without)
	}
	b.WriteString("\nNames that begin with a dot, or end in `.new`, `.tmp`, `.old` or `.part`, are files that are being written.\n\n" +
		"Never change a file, and never copy the directory of a running node: use `shoal snapshot save`.\n")
	return b.String()
}

// holdFiles compares the data directory of a node with the list.
func holdFiles(t *testing.T, dir string) {
	t.Helper()
	var all []string
	for _, f := range dataFiles {
		all = append(all, f.path)
	}
	known := regexp.MustCompile(`^(?:` + strings.Join(all, "|") + `|(?:.*/)?\.[^/]*|.*\.(?:new|tmp|old|part)[^/]*)$`)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // deleted meanwhile
		}
		if name, _ := filepath.Rel(dir, path); !known.MatchString(filepath.ToSlash(name)) {
			t.Errorf("docs/reference/files-on-disk.md does not have %s", name)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// limit is a limit: a constant of the code, by folder and name, or a text.
type limit struct{ what, of, setting, beyond string }

var limits = []struct {
	title string
	rows  []limit
}{
	{"Repositories", []limit{
		{"indexed revisions of a repository, besides HEAD and its branch", "shard/git.MaxRevisions", "`revisions`", "branches before tags, the newest first; `shoal status` names the repository"},
		{"size of a file", "schema.maxFileSize bytes", "`maxFileSize`", "by name only: `lang:skipped` finds it"},
		{"distinct trigrams of a file", "schema.maxTrigramCount", "`maxTrigramCount`", "by name only"},
		{"branches and tags of a repository", "shard/git/pack.MaxRefs", "", "refused before a fetch"},
		{"levels of directories", "shard/git/run.MaxDepth", "", "refused"},
	}},
	{"Searches and questions", []limit{
		{"length of a query", "shard/query.MaxLength bytes", "", "400"},
		{"`matches`", "node/search.MaxMatches", "`DEFAULT_MAX_MATCH_COUNT` for the default", "400"},
		{"`contextLines`", "node/search.MaxContext", "", "400"},
		{"time of a search", "node/search.defaultTime", "`timeout:` in the query", "the answer says that it is not complete"},
		{"length of a question", "node/ask.maxQuestion bytes", "", "400"},
		{"time of a question", "node/ask.turnTime", "", "the answer ends there, and says so"},
		{"running questions of a node", "node/ask.runningHere", "", "429"},
	}},
	{"Requests", []limit{
		{"request body", "api.maxBody bytes", "", "413"},
		{"a configuration", "cluster/config.MaxSize bytes", "", "413"},
		{"a webhook", "node/host.MaxDelivery bytes", "", "413"},
		{"running requests of one client", "limits.PerClient", "", "429 with `Retry-After`"},
		{"running requests in all", "limits.Total", "", "429 with `Retry-After`"},
		{"requests a second", "none", "`--rate-limit`", "429"},
		{"age of the catalog without a leader", "age", "`SHOAL_MAX_PERMISSION_AGE`", "signed-in requests get 503; anonymous access goes on"},
	}},
	{"People", []limit{
		{"a session that is not used", "node/account.sessionIdle", "`AUTH_SESSION_MAX_AGE_SECONDS`", "sign in again"},
		{"a session in all", "node/account.sessionAbsolute", "", "sign in again"},
		{"wrong passwords for one account from one address, without a wait", "node/account.freeAttempts", "", "each doubles the wait"},
		{"wrong passwords from one address, without a wait", "node/account.freeOfAddress", "", "each doubles the wait"},
		{"longest wait of an address", "node/account.maxWait", "", ""},
		{"wrong passwords for one account from anywhere, without a wait", "node/account.freeOfAccount", "", "each doubles the wait"},
		{"longest wait of an account", "node/account.accountWait", "", ""},
	}},
}

// limitReference prints the limits from the code.
func limitReference(t *testing.T) string {
	t.Helper()
	all := sources(t)
	var b strings.Builder
	b.WriteString("# Limits\n\nThis page is printed from the constants of the code.\n")
	for _, group := range limits {
		fmt.Fprintf(&b, "\n## %s\n\n| what | limit | setting | beyond it |\n|---|---|---|---|\n", group.title)
		for _, l := range group.rows {
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", l.what, limitText(t, all, l.of), l.setting, l.beyond)
		}
	}
	b.WriteString("\nFiles with a zero byte in their first 8,000 bytes are binary, and kept by name only. Each node counts wrong passwords for itself, in memory.\n")
	return b.String()
}

// limitText returns the value of a limit for display.
func limitText(t *testing.T, all []source, of string) string {
	t.Helper()
	usual := api.DefaultLimits()
	switch of {
	case "none":
		return "none"
	case "limits.PerClient":
		return thousands(int64(usual.PerClient))
	case "limits.Total":
		return thousands(int64(usual.Total))
	case "age":
		age, err := config.PermissionAge("")
		if err != nil {
			t.Fatal(err)
		}
		return durationText(age)
	}
	of, inBytes := strings.CutSuffix(of, " bytes")
	if name, ok := strings.CutPrefix(of, "schema."); ok {
		var root property
		if err := json.Unmarshal(config.Schema(), &root); err != nil {
			t.Fatal(err)
		}
		return numberText(int64(root.Definitions["settings"].Properties[name].Default.(float64)), inBytes)
	}
	dot := strings.LastIndexByte(of, '.')
	v, isTime := constantOf(all, of[:dot], of[dot+1:])
	n, exact := constant.Int64Val(constant.ToInt(v))
	if !exact || n <= 0 {
		t.Errorf("%s is no constant of the code", of)
	}
	if isTime {
		return durationText(time.Duration(n))
	}
	return numberText(n, inBytes)
}

// constantOf returns the value of a constant of a folder, and whether it is a duration.
func constantOf(all []source, folder, name string) (v constant.Value, isTime bool) {
	v = constant.MakeUnknown()
	for _, s := range all {
		if s.isTest() || filepath.Dir(s.path) != folder {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if ok && len(spec.Names) == 1 && spec.Names[0].Name == name && len(spec.Values) == 1 {
				v, isTime = evaluate(spec.Values[0])
			}
			return true
		})
	}
	return v, isTime
}

// evaluate computes a constant of numbers and units of time.
func evaluate(e ast.Expr) (v constant.Value, isTime bool) {
	units := map[string]time.Duration{"Second": time.Second, "Minute": time.Minute, "Hour": time.Hour, "Millisecond": time.Millisecond}
	switch e := e.(type) {
	case *ast.BasicLit:
		return constant.MakeFromLiteral(e.Value, e.Kind, 0), false
	case *ast.SelectorExpr:
		return constant.MakeInt64(int64(units[e.Sel.Name])), true
	case *ast.BinaryExpr:
		x, a := evaluate(e.X)
		y, b := evaluate(e.Y)
		if n, ok := constant.Uint64Val(y); ok && e.Op == token.SHL {
			return constant.Shift(x, token.SHL, uint(n)), false
		}
		return constant.BinaryOp(x, e.Op, y), a || b
	}
	return constant.MakeUnknown(), false
}

func numberText(n int64, inBytes bool) string {
	switch {
	case inBytes && n%(1<<20) == 0:
		return thousands(n>>20) + " MiB"
	case inBytes && n%(1<<10) == 0:
		return thousands(n>>10) + " KiB"
	case inBytes:
		return thousands(n) + " bytes"
	}
	return thousands(n)
}

// thousands formats a number with commas.
func thousands(n int64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func durationText(d time.Duration) string {
	switch {
	case d%(24*time.Hour) == 0:
		return fmt.Sprint(int64(d/(24*time.Hour)), " days")
	case d%time.Minute == 0:
		return fmt.Sprint(int64(d/time.Minute), " min")
	}
	return fmt.Sprint(int64(d/time.Second), " s")
}
