package config

import (
	"strings"
	"testing"
)

// Selection describes what a connection will list, without asking its host.
func TestSelection_describesWhatAConnectionLists(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ connection, lists, leavesOut string }{
		{`{"type": "github", "orgs": ["acme", "beta"], "repos": ["x/y"], "topics": ["go"], "exclude": {"forks": true, "archived": true, "repos": ["*-old"]}}`,
			"organisations acme, beta; repositories x/y; of these, with topics go", "archived; forks; repos *-old"},
		{`{"type": "github", "users": ["ann"], "exclude": {"forks": false, "size": {"min": 10, "max": 5000000}}}`, "users ann", "size below 10 bytes and above 5000000 bytes"},
		{`{"type": "github"}`, "", ""},
		{`{"type": "gitlab", "all": true, "groups": ["a/b"]}`, "groups with their subgroups a/b", ""},
		{`{"type": "gitlab", "url": "https://gitlab.example.com", "all": true, "token": {"env": "T"}}`, "everything there", ""},
		{`{"type": "gerrit", "url": "https://g.example.com", "exclude": {"readOnly": true}}`, "all projects", "readOnly"},
		{`{"type": "git", "url": "https://ann:hush@git.example.com/a/b"}`, "https://git.example.com/a/b", ""},
		{`{"type": "github", "repos": ["o/1", "o/2", "o/3", "o/4", "o/5", "o/6", "o/7", "o/8", "o/9", "o/10", "o/11", "o/12"]}`,
			"repositories o/1, o/2, o/3, o/4, o/5, o/6, o/7, o/8, o/9, o/10 and 2 more", ""},
	} {
		f, err := Parse([]byte(`{"connections": {"a": ` + c.connection + `}}`))
		if err != nil {
			t.Errorf("%s: %v", c.connection, err)
			continue
		}
		lists, leavesOut := Selection(f.Connections[0])
		if got := strings.Join(lists, "; "); got != c.lists {
			t.Errorf("%s\nlists      %s\nwant       %s", c.connection, got, c.lists)
		}
		if got := strings.Join(leavesOut, "; "); got != c.leavesOut {
			t.Errorf("%s\nleaves out %s\nwant       %s", c.connection, got, c.leavesOut)
		}
	}
}
