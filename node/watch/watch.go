package watch

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/shard/query"
)

// Info describes a watch to a viewer.
type Info struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Query   string    `json:"query"`
	Regexp  bool      `json:"isRegexEnabled"`
	Case    bool      `json:"isCaseSensitivityEnabled"`
	Words   bool      `json:"isWholeWordEnabled"`
	Kind    string    `json:"kind"` // what it finds: files, commits or diffs
	Shared  bool      `json:"isShared"`
	Mine    bool      `json:"isMine"`
	Owner   string    `json:"owner"` // e-mail address of the account
	Created time.Time `json:"createdAt"`
	Feed    bool      `json:"hasFeed"`
	Webhook string    `json:"webhookUrl,omitzero"` // of the owner alone; "": none
	Mail    bool      `json:"isMailed"`            // of the owner alone
	New     int       `json:"newCount"`            // matches that were found in the last 24 hours
	Last    time.Time `json:"lastFoundAt,omitzero"`
	Problem string    `json:"problem,omitzero"` // why the owner may not hear of something; "": nothing is known
}

// Detail is a watch with what it found.
type Detail struct {
	Info  Info    `json:",inline"`
	Found []Found `json:"found"` // the newest first
}

// Found is what one push brought for a watch.
type Found struct {
	ID    string    `json:"id"` // the same whenever it is told again
	Repo  string    `json:"repository"`
	At    time.Time `json:"foundAt"`
	Total int       `json:"totalCount"` // of matching commits or files
	Hits  []Match   `json:"matches"`    // the newest
}

// Match is a commit or a file that matches.
type Match struct {
	Commit string    `json:"commit"`
	Path   string    `json:"path,omitzero"`
	Line   int       `json:"line,omitzero"`
	Title  string    `json:"title"`
	Author string    `json:"author,omitzero"`
	At     time.Time `json:"committedAt,omitzero"`
	URL    string    `json:"webUrl"`
}

// Change is a new watch, or what changes in one. Nil fields keep their values.
type Change struct {
	Name, Query                 *string
	Regexp, Case, Words, Shared *bool
	Mail                        *bool
}

// recent is the time for which something found is new.
const recent = 24 * time.Hour

// Watches returns the watches of a viewer, and those that others share, by name.
func (w *Watches) Watches(_ context.Context, v catalog.Viewer) ([]Info, error) {
	if _, err := account.AsPerson(v); err != nil {
		return nil, err
	}
	visible, err := w.d.Gate.Repos(v)
	if err != nil {
		return nil, err
	}
	out := []Info{}
	for x := range visible.View.Watches() {
		if mayRead(v, x) {
			out = append(out, w.info(visible, v, x))
		}
	}
	slices.SortFunc(out, func(a, b Info) int {
		return cmp.Or(compareBool(b.Mine, a.Mine), strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID))
	})
	return out, nil
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// mayRead reports whether a viewer may read a watch: their own, and shared ones of others if the
// viewer has an account.
func mayRead(v catalog.Viewer, x *catalog.Watch) bool {
	return v.Account != "" && (x.Account == v.Account || x.Shared)
}

// find returns a watch that the viewer may read.
func find(view *catalog.View, v catalog.Viewer, id string) (*catalog.Watch, error) {
	if x := view.Watch(id); x != nil && mayRead(v, x) {
		return x, nil
	}
	return nil, call.Fail(call.ErrNotFound, "There is no watch %q", id)
}

// Watch returns a watch and what it found in repositories that the viewer may see.
func (w *Watches) Watch(_ context.Context, v catalog.Viewer, id string) (*Detail, error) {
	if _, err := account.AsPerson(v); err != nil {
		return nil, err
	}
	visible, err := w.d.Gate.Repos(v)
	if err != nil {
		return nil, err
	}
	x, err := find(visible.View, v, id)
	if err != nil {
		return nil, err
	}
	return &Detail{w.info(visible, v, x), w.found(visible, x)}, nil
}

func (w *Watches) info(visible *account.Repos, v catalog.Viewer, x *catalog.Watch) Info {
	out := Info{
		ID: x.ID, Name: x.Name, Query: x.Query, Regexp: x.Regexp, Case: x.Case, Words: x.Words, Shared: x.Shared, Created: x.Created,
		Mine: x.Account == v.Account, Kind: kindFiles,
	}
	if a := visible.View.Account(x.Account); a != nil {
		out.Owner = a.Email
	}
	if s, err := standing(x); err == nil {
		out.Kind = kindOf(s)
	}
	for _, n := range visible.View.NoticesOf(x.ID) {
		if !visible.Set.Contains(n.Repo) {
			continue
		}
		out.Last = n.At
		if w.d.Now().Sub(n.At) < recent {
			out.New += int(n.Total)
		}
	}
	if out.Mine {
		out.Feed, out.Problem = len(x.Feed) > 0, w.problem(x, out.Kind)
		out.Webhook, out.Mail = x.URL, x.Mail
	}
	return out
}

// problem says why the owner of a watch may not hear of something.
func (w *Watches) problem(x *catalog.Watch, kind string) string {
	if kind != kindFiles && w.d.Histories.Off() {
		return "This node keeps no history of commits (SHOAL_HISTORY=off), so it finds nothing for this watch."
	}
	if s, err := standing(x); err != nil {
		return "Its search cannot be understood: " + err.Error() + "."
	} else if name := lostContext(w.d.Cluster.View(), s); name != "" {
		return fmt.Sprintf("There is no search context %q any more, so it finds nothing.", name)
	}
	missed := ""
	if x.Missed > 0 {
		missed = fmt.Sprintf(" Not sent, and given up: %d.", x.Missed)
	}
	if !x.Failing.IsZero() {
		return fmt.Sprintf("Sending fails since %s: %s.%s", x.Failing.UTC().Format("2006-01-02 15:04 UTC"), x.Problem, missed)
	}
	return strings.TrimSpace(missed)
}

// lostContext returns a search context that a query names and that is not there; "" if there is none.
func lostContext(view *catalog.View, s *search.Standing) (name string) {
	query.Map(s.Query.Q, func(n query.Q) query.Q {
		if c, ok := n.(*query.Context); ok {
			if _, there := view.Context(c.Name); !there {
				name = c.Name
			}
		}
		return n
	})
	return name
}

// The kinds of watches, by what they find.
const (
	kindFiles   = "files"
	kindCommits = "commits"
	kindDiffs   = "diffs"
)

func kindOf(s *search.Standing) string {
	switch s.Query.Type {
	case query.CommitType:
		return kindCommits
	case query.DiffType:
		return kindDiffs
	}
	return kindFiles
}

// found returns what a watch found in visible repositories, the newest first.
func (w *Watches) found(visible *account.Repos, x *catalog.Watch) []Found {
	out := []Found{}
	for _, n := range slices.Backward(visible.View.NoticesOf(x.ID)) {
		if repo, err := visible.ByID(n.Repo); err == nil {
			out = append(out, w.foundIn(repo, n))
		}
	}
	return out
}

// foundIn describes a notice about a repository.
func (w *Watches) foundIn(repo *catalog.Repo, n *catalog.Notice) Found {
	f := Found{ID: n.ID, Repo: repo.Name, At: n.At, Total: int(n.Total)}
	for _, h := range n.Hits {
		hit := Match{Commit: h.Commit, Path: h.Path, Line: int(h.Line), Title: h.Title, Author: h.Author, At: h.At}
		if hit.URL = browse.WebURL(w.d.BaseURL(), repo.Name, "", "commit", h.Commit); h.Path != "" && h.Author == "" {
			hit.URL = browse.WebURL(w.d.BaseURL(), repo.Name, h.Commit, "blob", h.Path)
			if h.Line > 0 {
				hit.URL += fmt.Sprintf("#L%d", h.Line)
			}
		}
		f.Hits = append(f.Hits, hit)
	}
	return f
}

// CreateWatch makes a watch of a person.
func (w *Watches) CreateWatch(ctx context.Context, v catalog.Viewer, req Change) (*Info, error) {
	if _, err := account.AsPerson(v); err != nil {
		return nil, err
	}
	var random [8]byte
	rand.Read(random[:])
	x := catalog.Watch{ID: hex.EncodeToString(random[:]), Account: v.Account}
	return w.put(ctx, v, x, req, true)
}

// ChangeWatch changes a watch of a person.
func (w *Watches) ChangeWatch(ctx context.Context, v catalog.Viewer, id string, req Change) (*Info, error) {
	x, err := w.own(v, id)
	if err != nil {
		return nil, err
	}
	return w.put(ctx, v, *x, req, false)
}

// own returns a watch of a person. A shared one of somebody else can be read and not changed.
func (w *Watches) own(v catalog.Viewer, id string) (*catalog.Watch, error) {
	if _, err := account.AsPerson(v); err != nil {
		return nil, err
	}
	x, err := find(w.d.Cluster.View(), v, id)
	if err == nil && x.Account != v.Account {
		return nil, call.Fail(call.ErrForbidden, "The watch %q is of somebody else: only its owner changes it.", x.Name)
	}
	return x, err
}

// put applies a change to a watch and stores it.
func (w *Watches) put(ctx context.Context, v catalog.Viewer, x catalog.Watch, req Change, isNew bool) (*Info, error) {
	set(&x.Name, req.Name)
	set(&x.Query, req.Query)
	set(&x.Regexp, req.Regexp)
	set(&x.Case, req.Case)
	set(&x.Words, req.Words)
	set(&x.Shared, req.Shared)
	set(&x.Mail, req.Mail)
	if a := w.d.Cluster.View().Account(v.Account); req.Mail != nil && *req.Mail && (w.d.Mail == nil || a == nil || a.Unproven) {
		return nil, call.Fail(call.ErrUnable, "no mail can be sent to you: this node has no mail server (SMTP_CONNECTION_URL), or nobody has confirmed your address")
	}
	x.Query = strings.TrimSpace(x.Query)
	x.Name = strings.TrimSpace(x.Name)
	if x.Name == "" {
		x.Name = nameOf(x.Query)
	}
	if err := w.check(&x); err != nil {
		return nil, err
	}
	return w.propose(ctx, v, x, isNew)
}

func (w *Watches) propose(ctx context.Context, v catalog.Viewer, x catalog.Watch, isNew bool) (*Info, error) {
	if _, err := w.d.Cluster.Propose(ctx, &catalog.PutWatch{Watch: x, New: isNew}); err != nil {
		return nil, call.WriteError(err)
	}
	visible, err := w.d.Gate.Repos(v)
	if err != nil {
		return nil, err
	}
	stored, err := find(visible.View, v, x.ID)
	if err != nil {
		return nil, err
	}
	out := w.info(visible, v, stored)
	return &out, nil
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// nameOf makes a name from a query.
func nameOf(text string) string {
	const most = 60
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// check returns an error for a watch that could never find anything, or that is malformed.
func (w *Watches) check(x *catalog.Watch) error {
	if strings.ContainsAny(x.Name, "\n\r\t\x00") {
		return call.Fail(call.ErrInvalid, "a watch needs a name on one line")
	}
	s, err := standing(x)
	if err != nil {
		return err
	}
	if name := lostContext(w.d.Cluster.View(), s); name != "" {
		return call.Fail(call.ErrContextNotFound, "Search context %q not found", name)
	}
	switch {
	case s.Query.Type == query.RepoType:
		return call.Fail(call.ErrQuery, "a watch finds files, commits or diffs: leave out type:repo")
	case !s.Query.At.IsZero():
		return call.Fail(call.ErrQuery, "a watch is about what is new: leave out at:")
	case s.Query.Type.Changes() && w.d.Histories.Off():
		return call.Fail(call.ErrUnable, "this node keeps no history of commits: SHOAL_HISTORY is off")
	}
	return nil
}

// standing parses the query of a watch.
func standing(x *catalog.Watch) (*search.Standing, error) {
	return search.NewStanding(search.Request{Query: x.Query, Regexp: x.Regexp, CaseSensitive: x.Case, Words: x.Words})
}

// DeleteWatch removes a watch of a person, and what it found.
func (w *Watches) DeleteWatch(ctx context.Context, v catalog.Viewer, id string) (*Info, error) {
	x, err := w.own(v, id)
	if err != nil {
		return nil, err
	}
	visible, err := w.d.Gate.Repos(v)
	if err != nil {
		return nil, err
	}
	out := w.info(visible, v, x)
	if _, err := w.d.Cluster.Propose(ctx, &catalog.DeleteWatch{ID: id}); err != nil {
		return nil, call.WriteError(err)
	}
	return &out, nil
}

// feedPrefix begins the token of a feed, before 64 hex digits.
const feedPrefix = "shoalfeed_"

// FeedToken is the answer that shows the token of a feed, this once.
type FeedToken struct {
	Token string `json:"token"`
	URL   string `json:"url"`
}

// NewFeed gives a watch a feed with a new token. An earlier token ends.
func (w *Watches) NewFeed(ctx context.Context, v catalog.Viewer, id string) (*FeedToken, error) {
	x, err := w.own(v, id)
	if err != nil {
		return nil, err
	}
	var random [32]byte
	rand.Read(random[:])
	token := feedPrefix + hex.EncodeToString(random[:])
	changed := *x
	changed.Feed = hashOf(token)
	if _, err := w.propose(ctx, v, changed, false); err != nil {
		return nil, err
	}
	return &FeedToken{token, w.d.BaseURL() + "/feed/" + token}, nil
}

// EndFeed ends the feed of a watch.
func (w *Watches) EndFeed(ctx context.Context, v catalog.Viewer, id string) (*Info, error) {
	x, err := w.own(v, id)
	if err != nil {
		return nil, err
	}
	changed := *x
	changed.Feed = nil
	return w.propose(ctx, v, changed, false)
}

// hashOf hashes a token. It has 256 random bits, so the hash needs no secret.
func hashOf(token string) []byte {
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}

// Feed returns the watch with a token, as its owner sees it at this moment. An unknown token and
// one whose owner may not sign in give the same error.
func (w *Watches) Feed(_ context.Context, token string) (*Detail, error) {
	unknown := call.Fail(call.ErrNotFound, "There is no such feed.")
	if err := w.d.Current(); err != nil {
		return nil, err
	}
	x := w.d.Cluster.View().WatchByFeed(hashOf(token))
	if x == nil {
		return nil, unknown
	}
	v, ok := w.d.Gate.WorksFor(x.Account)
	if !ok {
		return nil, unknown
	}
	visible, err := w.d.Gate.Repos(v)
	if err != nil {
		return nil, err
	}
	return &Detail{w.info(visible, v, x), w.found(visible, x)}, nil
}
