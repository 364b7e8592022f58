package tool

import (
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node/browse"
)

// Of several parts of a repository, the release is that of the part which the path belongs to.
func TestFirstRelease_fitsThePath(t *testing.T) {
	t.Parallel()
	mobx := &browse.FirstTag{Name: "mobx-react@7.6.0", Whole: "v4.0.4", Parts: "mobx-react@7.6.0 mobx@6.7.0 mobx-react-lite@3.4.1"}
	for _, tt := range []struct {
		first *browse.FirstTag
		paths string
		want  string
	}{
		{nil, "a.go", ""},
		{&browse.FirstTag{Late: true}, "a.go", "Its first tag was not found within 2 seconds.\n"},
		{&browse.FirstTag{}, "a.go", "No tag has it.\n"},
		{&browse.FirstTag{Name: "v1.2.0"}, "a.go", "First in v1.2.0.\n"},
		{&browse.FirstTag{Name: "v2-rc1", Release: "v2"}, "a.go", "First in v2 (before it v2-rc1).\n"},
		{&browse.FirstTag{Name: "v2-rc1", Late: true}, "a.go", "First in v2-rc1 (a pre-release).\n"},
		{&browse.FirstTag{Name: "nightly"}, "a.go", "First in nightly.\n"},
		{&browse.FirstTag{Name: "glob-1-rc1", Release: "glob-1", Parts: "glob-1 re-3"}, "glob/a.rs re/a.rs", "First in glob-1 (before it glob-1-rc1), re-3.\n"},
		{mobx, "packages/mobx/src/api/when.ts", "First in mobx@6.7.0.\n"},
		{mobx, "packages/mobx", "First in mobx@6.7.0.\n"},
		{mobx, "packages/mobx-react-lite/src/mobx.ts", "First in mobx-react-lite@3.4.1.\n"},
		{mobx, "packages/mobx/a.ts packages/mobx/b.ts packages/mobx-react/c.ts docs/a.md", "First in mobx@6.7.0, mobx-react@7.6.0.\n"},
		{mobx, "docs/api.md", "First in mobx-react@7.6.0 (without a part's name v4.0.4).\n"},
		{&browse.FirstTag{Name: "sdk/store/v0.2", Parts: "sdk/store/v0.2 sdk/v1.1"}, "sdk/store/a.go", "First in sdk/store/v0.2.\n"},
		{&browse.FirstTag{Name: "sdk/store/v0.2", Parts: "sdk/store/v0.2 sdk/v1.1"}, "sdk/other/a.go", "First in sdk/v1.1.\n"},
		{&browse.FirstTag{Name: "parent-2.6.0", Whole: "2.8.2"}, "core/A.java", "First in parent-2.6.0.\n"},
		{&browse.FirstTag{Name: "glob-1-rc1", Release: "glob-1", Whole: "v2", Parts: "glob-1"}, "src/a.rs", "First in glob-1 (before it glob-1-rc1) (without a part's name v2).\n"},
	} {
		if got := firstTagText(tt.first, strings.Fields(tt.paths)); got != tt.want {
			t.Errorf("%+v at %q: %q, want %q", tt.first, tt.paths, got, tt.want)
		}
	}
}
