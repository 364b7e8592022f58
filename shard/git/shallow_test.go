package git

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// A copy of a shallow repository has the same commits and the same boundary. The receiver may have
// had less of the history, more of it, all of it, or the same.
func TestMirrorCopy_ofAShallowRepositoryHasTheSameBoundary(t *testing.T) {
	t.Parallel()
	full := newRepo(t)
	h := &stream{}
	for i := range 12 {
		h.commit("refs/heads/main", i, "Ann", fmt.Sprint("commit ", i), "f", fmt.Sprint(i), fmt.Sprintf("d/%d", i), strings.Repeat(fmt.Sprint("line ", i*i, "\n"), 300))
		if i == 5 {
			h.WriteString("reset refs/heads/side\nfrom refs/heads/main\n\n")
		}
	}
	h.commit("refs/heads/side", 20, "Bob", "aside", "s", "s")
	full.load(h)
	full.git("tag", "-a", "-m", "t", "v1", "main~2")

	// cut returns a mirror of a clone with a part of the history.
	cut := func(args ...string) *Mirror {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "cut.git")
		runGit(t, "", nil, append(append([]string{"clone", "--quiet", "--bare", "--no-single-branch"}, args...), full.url(), dir)...)
		return fetched(t, "file://"+dir)
	}
	to := newMirror(t)
	size := func(from *Mirror) int {
		t.Helper()
		have, err := to.Tips(within(t))
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := from.Export(within(t), have, &b); err != nil {
			t.Fatal(err)
		}
		sent := b.Len()
		if err := to.Import(within(t), &b); err != nil {
			t.Fatal(err)
		}
		return sent
	}
	commits := func(m *Mirror) string {
		return runGit(t, m.Dir(), nil, "rev-list", "--all", "--objects") + stateOf(t, m)
	}

	one := cut("--depth=1")
	for _, step := range []struct {
		name string
		from *Mirror
		most int // limit on the bytes that are sent; 0 means no limit
	}{
		{"shallow, to nothing", one, 0},
		{"the same", one, 600},
		{"deeper", cut("--depth=4"), 0},
		{"less deep", cut("--depth=2"), 0},
		{"all of it", cut(), 0},
		{"shallow, to all of it", one, 0},
	} {
		sent := size(step.from)
		if step.most > 0 && sent > step.most {
			t.Errorf("%s: %d bytes travel, want at most %d", step.name, sent, step.most)
		}
		if got, want := commits(to), commits(step.from); got != want {
			t.Errorf("%s: the copy has\n%s\nwant\n%s", step.name, got, want)
		}
		was, err1 := step.from.Shallow()
		is, err2 := to.Shallow()
		if is != was || err1 != nil || err2 != nil {
			t.Errorf("%s: shallow: %t, want %t (%v, %v)", step.name, is, was, err1, err2)
		}
	}

	// Copying fails for a boundary that does not fit the objects, and for one that is invalid.
	var whole bytes.Buffer
	if err := one.Export(within(t), nil, &whole); err != nil {
		t.Fatal(err)
	}
	header, rest, _ := strings.Cut(whole.String(), "PACK")
	lines := strings.SplitAfterN(header, "\n", 5)
	refs := onlyRefs(lines[4])
	for name, bad := range map[string]string{
		"no boundary":          "shoal mirror 1\n" + strings.Join(lines[1:4], "") + refs,
		"a boundary of none":   strings.Join(lines[:4], "") + refs + "0\n",
		"fewer than announced": strings.Join(lines[:4], "") + refs + "90\n",
		"more than there are":  strings.Join(lines[:4], "") + refs + "90000000\n",
		"no id":                strings.Join(lines[:4], "") + refs + "1\n../x\n",
	} {
		if err := newMirror(t).Import(within(t), strings.NewReader(bad+"PACK"+rest)); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// onlyRefs returns the references in the header before a pack.
func onlyRefs(header string) (out string) {
	for line := range strings.Lines(header) {
		if strings.Contains(line, " refs/") {
			out += line
		}
	}
	return out
}
