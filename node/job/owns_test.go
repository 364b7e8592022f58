package job

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/host"
)

const (
	ownSite     = "gitea:h.example"
	ownProvider = "https://h.example"
)

// ownWorld is a world in which ann, who is 7 at a host, lets it be asked in her name. The host gives
// one of its answers after the other.
type ownWorld struct {
	*world
	sync    *accountSyncer
	answers []string // numbers of repositories; "401", "403!", "other", ...
	asked   int
	anew    int // how often another token was requested
}

func newOwnWorld(t *testing.T) *ownWorld {
	t.Helper()
	s := &ownWorld{world: newWorld(t, `{
		"connections": {"a": {"type": "gitea", "url": "https://h.example", "orgs": ["x"]}},
		"identityProviders": {"h": {"provider": "gitea", "purpose": "sso", "clientId": {"env": "A"}, "clientSecret": {"env": "B"}, "baseUrl": "https://h.example"}}}`, 1)}
	s.Do(&catalog.SayPermissionSync{Node: "n1", Permissions: catalog.PermissionSyncOn})
	var ids []string
	for n := range 50 {
		ids = append(ids, fmt.Sprintf("%s:%d", ownSite, n+1))
	}
	s.list("a", ids...)
	s.Do(&catalog.PutAccount{Account: catalog.User{ID: "ann", Email: "ann@x", Role: catalog.RoleMember, State: catalog.AccountActive}})
	s.Do(&catalog.LinkIdentity{Identity: catalog.Identity{Provider: ownProvider, Subject: "7", Account: "ann"}})
	s.give()
	s.sync = &accountSyncer{log: slog.New(slog.DiscardHandler), openHost: s.open}
	return s
}

// give signs ann in.
func (s *ownWorld) give() {
	s.t.Helper()
	s.Do(&catalog.PutHostToken{Account: "ann", Ask: true, Token: catalog.HostToken{Provider: ownProvider, Subject: "7", Site: ownSite, Sealed: []byte("x")}})
}

func (s *ownWorld) open(_ context.Context, _ *catalog.Identity, _ *catalog.HostToken, _ uint64, anew bool) (host.Own, error) {
	if anew {
		s.anew++
	}
	return s, nil
}

// Who implements host.Own.
func (s *ownWorld) Who(context.Context) (string, error) {
	if s.asked < len(s.answers) && s.answers[s.asked] == "other" {
		return "8", nil
	}
	return "7", nil
}

// Repos implements host.Own.
func (s *ownWorld) Repos(_ context.Context, take func(string)) (string, error) {
	answer := s.answers[min(s.asked, len(s.answers)-1)]
	s.asked++
	switch answer {
	case "401":
		return "", &host.Refusal{Issue: host.Issue{Code: host.TokenRefused, Text: "revoked"}, Status: 401}
	case "blocked":
		return "", &host.Refusal{Issue: host.Issue{Code: host.AccountBlocked, Text: "shut out"}, Status: 403}
	case "502":
		return "", &host.Refusal{Issue: host.Issue{Code: host.Unreachable, Text: "down"}, Status: 502}
	case "404":
		return "", &host.Refusal{Issue: host.Issue{Code: host.InvalidResponse, Text: "no such list"}, Status: 404}
	}
	for _, id := range people(answer) {
		take(ownSite + ":" + id)
	}
	return "", nil
}

// ask runs one attempt.
func (s *ownWorld) ask(answers ...string) error {
	s.t.Helper()
	s.answers, s.asked = answers, 0
	key := catalog.ReaderKey(ownSite, "7")
	s.Do(&catalog.EnqueueJob{Kind: catalog.JobAccountSync, Subject: key, Urgent: true})
	fence := s.Grant(catalog.JobAccountSync, key, "n1")
	err := s.sync.runJob(s.t.Context(), &attempt{job: s.View().Job(catalog.JobAccountSync, key), cluster: s.Node("n1")})
	if err != nil {
		s.Apply(&catalog.ReleaseJob{Kind: catalog.JobAccountSync, Subject: key, Fence: fence})
	}
	return err
}

// sees returns how many repositories ann sees.
func (s *ownWorld) sees() int {
	return int(s.View().Visible(catalog.Viewer{Role: catalog.RoleMember, Account: "ann"}).GetCardinality())
}

// A host's list counts at once if little is lost, and otherwise if it is repeated. A refusal ends
// all access; a failure changes nothing.
func TestAccountSync_lossOfMuchAccessMustBeRepeated(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what    string
		before  string
		says    []string
		after   int
		fails   string // part of the error
		refused string
		anew    int
	}{
		{"the first list", "", []string{"1-3"}, 3, "", "", 0},
		{"some of another service", "", []string{"1-3 900"}, 3, "", "", 0},
		{"one came and one left", "1-3", []string{"2-4"}, 3, "", "", 0},
		{"nothing is left, and that twice", "1-3", []string{"", ""}, 0, "", "", 0},
		{"nothing is left, and then it is back", "1-3", []string{"", "1-3"}, 3, "neither is believed", "", 0},
		{"more than half is lost, and that twice", "1-50", []string{"1-5", "1-5"}, 5, "", "", 0},
		{"more than half is lost, then it is down", "1-50", []string{"1-5", "502"}, 50, "ask again", "", 0},
		{"it is down", "1-3", []string{"502"}, 3, "ask what the person may read", "", 0},
		{"the list is not there", "1-3", []string{"404"}, 3, "ask what the person may read", "", 0},
		{"the token has ended early", "1-3", []string{"401", "1-2"}, 2, "", "", 1},
		{"the token was revoked", "1-3", []string{"401", "401"}, 0, "", "revoked", 1},
		{"the person is shut out", "1-3", []string{"blocked"}, 0, "", "shut out", 0},
		{"the token is somebody else's", "1-3", []string{"other"}, 3, "somebody else", "", 0},
	} {
		s := newOwnWorld(t)
		if c.before != "" {
			if err := s.ask(c.before); err != nil {
				t.Fatal(err)
			}
		}
		err := s.ask(c.says...)
		if (c.fails == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s: the error is %v, want %q", c.what, err, c.fails)
		}
		issue := ""
		if r := s.View().Reader(ownSite, "7"); r != nil {
			issue = r.Issue
		}
		if got := s.sees(); got != c.after || issue != c.refused || s.anew != c.anew {
			t.Errorf("%s: ann sees %d with issue %q and %d new tokens, want %d, %q, %d", c.what, got, issue, s.anew, c.after, c.refused, c.anew)
		}
	}
}

// A host is not asked in the name of a person who no longer allows it.
func TestAccountSync_endsWithThePersonsToken(t *testing.T) {
	t.Parallel()
	s := newOwnWorld(t)
	s.Do(&catalog.SayPermissionSync{Node: "n1", Permissions: catalog.PermissionSyncOff})
	if err := s.ask("1"); !errors.Is(err, errPermanent) || s.asked > 0 {
		t.Errorf("where nothing is synced: %v after %d questions", err, s.asked)
	}
}

func TestJobPlan_schedulesAccountSyncs(t *testing.T) {
	t.Parallel()
	s := newOwnWorld(t)
	tell := func(what, want string) {
		t.Helper()
		var lines []string
		for _, line := range strings.Split(s.plan(), "\n") {
			if strings.Contains(line, "account_permissions") || strings.Contains(line, "\x007") {
				lines = append(lines, strings.ReplaceAll(line, "\x00", " "))
			}
		}
		if got := strings.Join(lines, ", "); got != want {
			t.Errorf("%s: the plan is %q, want %q", what, got, want)
		}
	}
	end := func(c catalog.Command) { s.Do(c) }
	key := catalog.ReaderKey(ownSite, "7")
	fence := func() uint64 { return s.View().Job(catalog.JobAccountSync, key).Fence }

	tell("who has just signed in", "grant account_permissions gitea:h.example 7")
	end(&catalog.FinishReaderAccess{Site: ownSite, Subject: "7", Fence: fence()})
	s.Pass(21 * time.Hour)
	tell("before the time", "")
	s.Pass(6 * time.Hour)
	tell("a day later", "enqueue account_permissions gitea:h.example 7")
	tell("there is a node", "grant account_permissions gitea:h.example 7")
	end(&catalog.FinishJob{Kind: catalog.JobAccountSync, Subject: key, Fence: fence(), Error: "no", Permanent: true})
	s.Pass(72 * time.Hour)
	tell("a list of before three days", "age permissions of gitea:h.example 7, enqueue account_permissions gitea:h.example 7")
	tell("which ends once", "grant account_permissions gitea:h.example 7")
	end(&catalog.RefuseReader{Site: ownSite, Subject: "7", Fence: fence(), Issue: "revoked"})
	s.Pass(200 * time.Hour)
	tell("who was refused has to sign in", "")
	s.give()
	tell("and does", "grant account_permissions gitea:h.example 7")

	// The limit is for the whole cluster, from the present configuration.
	k := s.kinds.kindOf(catalog.JobAccountSync)
	if got := k.perCluster(s.View().File().Settings); got != 8 {
		t.Errorf("%d at once", got)
	}
	settings := s.View().File().Settings
	settings.MaxAccountPermissionSyncJobs = 3
	if got := k.perCluster(settings); got != 3 {
		t.Errorf("%d at once, want 3", got)
	}
}
