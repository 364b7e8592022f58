package tool

import (
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node/browse"
)

// TestListBranches_tellsOfRefsNotReachedInTime: what time did not suffice for is not counted, and the
// next page is still named.
func TestListBranches_tellsOfRefsNotReachedInTime(t *testing.T) {
	t.Parallel()
	a := asked("list_branches", "repo", "r", "kind", "tags", "contains", "0123456789")
	a.values["page"], a.values["perPage"] = 1, 2
	tags := &browse.RefsResponse{Repo: "r", Contains: "0123456789abcdef", Late: true, Total: 2, Refs: []browse.RefInfo{{Name: "v1"}, {Name: "v2"}}}

	text := refsText(a, nil, tags)
	if !strings.HasPrefix(text, "At least 2 tags of r with 0123456789ab in the history, newest first\nv1 ") || !strings.HasSuffix(text, "\nNot searched: what was not reached within 2 seconds.") {
		t.Errorf("%s", text)
	}

	tags.Total = 5
	if text := refsText(a, nil, tags); !strings.HasSuffix(text, "\"page\":2}. Not searched: what was not reached within 2 seconds.") {
		t.Errorf("%s", text)
	}
}
