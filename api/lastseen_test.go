package api

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	nodecall "github.com/shoalsearch/shoal/node/call"
)

// missed is an error body with the last commit that had a path.
type missed struct {
	ErrorCode string
	LastSeen  *lastSeenJSON
	IsWhole   *bool `json:"isHistoryExhaustive"`
}

// For a missing path, the answer has the last commit that had it, on request: for a file and a
// directory. A page links to it.
func TestMissingPath_answerNamesTheLastCommitThatHadIt(t *testing.T) {
	t.Parallel()
	s, r := changing(t)
	last, removed := r.Git("rev-parse", "blanks"), r.Git("rev-parse", "main")
	miss := func(method, target, body string) (m missed) {
		t.Helper()
		resp, text := askAs(t, s, "", method, target, body)
		if err := json.Unmarshal(text, &m); err != nil || resp.StatusCode != 404 {
			t.Fatalf("%s: %d %s", target, resp.StatusCode, text)
		}
		return m
	}

	for what, m := range map[string]missed{
		"a file":      miss("GET", "/api/source?repo=local/app&path=old.txt&lastSeen=true", ""),
		"a directory": miss("POST", "/api/tree", `{"repoName":"local/app","paths":["a.go","old.txt"],"lastSeen":true}`),
	} {
		if m.LastSeen == nil || m.IsWhole == nil || !*m.IsWhole || m.LastSeen.Commit != last || m.LastSeen.Removed.Hash != removed ||
			m.LastSeen.Type != "blob" || m.LastSeen.Renamed != "new.txt" || m.ErrorCode != codeFileNotFound {
			t.Errorf("%s: %+v", what, m)
		}
	}

	// Without the parameter nothing is added, nor for a path that never existed or is of another
	// kind.
	if m := miss("GET", "/api/source?repo=local/app&path=old.txt", ""); m.LastSeen != nil || m.IsWhole != nil {
		t.Errorf("not asked: %+v", m)
	}
	if m := miss("GET", "/api/source?repo=local/app&path=never&lastSeen=true", ""); m.LastSeen != nil || m.IsWhole == nil || !*m.IsWhole {
		t.Errorf("never there: %+v", m)
	}
	if m := miss("GET", "/api/source?repo=none&path=old.txt&lastSeen=true", ""); m.IsWhole != nil || m.ErrorCode != codeRepoNotFound {
		t.Errorf("no such repository: %+v", m)
	}

	// The page asks by itself, and keeps its status.
	for kind, now := range map[string]string{"blob": "blob", "tree": "blob", "blame": "blame"} {
		resp, page := askAs(t, s, "", "GET", "/browse/local/app/-/"+kind+"/old.txt", "")
		for _, want := range []string{"It was there last", "/browse/local/app@" + last + "/-/blob/old.txt", "/browse/local/app/-/commit/" + removed, "/browse/local/app/-/" + now + "/new.txt"} {
			if resp.StatusCode != 404 || !strings.Contains(string(page), want) {
				t.Errorf("%s: %d without %q: %s", kind, resp.StatusCode, want, page)
			}
		}
	}
	if resp, page := askAs(t, s, "", "GET", "/browse/local/app/-/blob/never", ""); resp.StatusCode != 404 || strings.Contains(string(page), "It was there last") {
		t.Errorf("never there: %d %s", resp.StatusCode, page)
	}
}

// unseen is a node that cannot read history.
type unseen struct {
	browse.Reader
	err error
}

func (u unseen) LastSeen(context.Context, catalog.Viewer, browse.LastSeenRequest) (*browse.LastSeenResponse, error) {
	return nil, u.err
}

// If history cannot be read, the answer says that it is unknown. If the repository was deleted
// meanwhile, it is not found.
func TestMissingPath_lastCommitIsUnknownIfHistoryIsUnreadable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want string
	}{
		{nodecall.Fail(nodecall.ErrOverloaded, "too many"), `{"statusCode":404,"errorCode":"FILE_NOT_FOUND","message":"File \"gone.go\" not found","isHistoryExhaustive":false}`},
		{nodecall.Fail(nodecall.ErrRepoNotFound, "none"), `{"statusCode":404,"errorCode":"REPOSITORY_NOT_FOUND","message":"none"}`},
	} {
		p := (&fake{}).parts()
		p.browse = unseen{p.browse, c.err}
		if _, body := ask(t, start(t, p), "GET", "/api/source?repo=r&path="+gonePath+"&lastSeen=true", ""); string(body) != c.want {
			t.Errorf("%v: %s", c.err, body)
		}
	}
}
