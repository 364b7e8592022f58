package git

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// Log follows a file through its renames, and shows its name in each commit. Each page except the
// last says that there are more.
func TestLog_findsCommitsBeforeARename(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	text := strings.Repeat("a line that stays\n", 20)
	h := &stream{}
	h.commit("refs/heads/main", 1, "Ann", "begin\n\nwith a body\n", "old name", text)
	h.commit("refs/heads/main", 2, "Bob", "elsewhere", "other", "x\n")
	h.commit("refs/heads/main", 3, "Bob", "change", "old name", text+"more\n")
	h.commit("refs/heads/main", 4, "Cleo", "rename", "old name", "D", "sub/new\n\xffname", text+"more\nand more\n")
	h.commit("refs/heads/main", 5, "Bob", "elsewhere", "other", "y\n")
	h.commit("refs/heads/main", 6, "Ann", "end", "sub/new\n\xffname", text)
	r.load(h)
	m := fetched(t, r.url())
	head := r.git("rev-parse", "main")
	for _, tt := range []struct {
		path        string
		skip, limit int
		want        string
	}{
		{"sub/new\n\xffname", 0, 50, "end in \"sub/new\\n\\xffname\", rename in \"sub/new\\n\\xffname\", change in \"old name\", begin in \"old name\": 4 false"},
		{"sub/new\n\xffname", 0, 4, "end in \"sub/new\\n\\xffname\", rename in \"sub/new\\n\\xffname\", change in \"old name\", begin in \"old name\": 4 false"},
		{"sub/new\n\xffname", 1, 2, "rename in \"sub/new\\n\\xffname\", change in \"old name\": 4 true"},
		{"sub/new\n\xffname", 3, 2, "begin in \"old name\": 4 false"},
		{"sub/new\n\xffname", 9, 2, ": 4 false"},
		{"old name", 0, 50, "rename in \"old name\", change in \"old name\", begin in \"old name\": 3 false"},
		{"other", 0, 1, "elsewhere in \"other\": 2 true"},
		{"nothing", 0, 50, ": 0 false"},
		{":(glob)**", 0, 50, ": 0 false"},
	} {
		for range 2 { // from git, then from the cache
			page, err := m.Follow(within(t), LogQuery{Commit: head, Path: tt.path, Skip: tt.skip, Limit: tt.limit})
			var got []string
			for i, c := range page.Commits {
				got = append(got, fmt.Sprintf("%s in %q", c.Subject, page.Paths[i]))
			}
			if s := fmt.Sprintf("%s: %d %t", strings.Join(got, ", "), page.Total, page.AtLeast); err != nil || s != tt.want {
				t.Errorf("%q from %d: %v\ngot  %s\nwant %s", tt.path, tt.skip, err, s, tt.want)
			}
		}
	}

	page, err := m.Follow(within(t), LogQuery{Commit: head, Path: "old name", Limit: 50})
	if last := page.Commits[2]; err != nil || last.Body != "with a body" || last.AuthorName != "Ann" || len(last.Parents) != 0 {
		t.Errorf("%+v, %v", last, err)
	}
	if page, err = m.Follow(within(t), LogQuery{Commit: head, Path: "other", Limit: 1}); err != nil || page.Commits[0].Head {
		t.Errorf("%+v, %v", page, err)
	}
	for _, path := range []string{"", "/", "../x", "a\x00b"} {
		if _, err := m.Follow(within(t), LogQuery{Commit: head, Path: path, Limit: 50}); err == nil {
			t.Errorf("%q is followed", path)
		}
	}
	if _, err := m.Follow(within(t), LogQuery{Commit: "HEAD", Path: "other", Limit: 50}); !errors.Is(err, ErrBadRef) {
		t.Errorf("no id of a commit: %v", err)
	}
}
