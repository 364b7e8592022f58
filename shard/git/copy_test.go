package git

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// stateOf returns all references of a mirror and its HEAD.
func stateOf(t *testing.T, m *Mirror) string {
	t.Helper()
	refs := runGit(t, m.Dir(), nil, "for-each-ref", "--format=%(refname)=%(objectname)")
	head, err := os.ReadFile(filepath.Join(m.Dir(), "HEAD"))
	if err != nil {
		t.Fatal(err)
	}
	return refs + "\n" + string(head)
}

func TestMirrorCopy_equalsItsMirrorAfterEachSync(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"sha1", "sha256"} {
		ctx := within(t)
		r := newRepo(t, "--object-format="+format)
		from, to := newMirror(t), newMirror(t)
		sync := func(mostBytes int) {
			t.Helper()
			if _, err := from.Fetch(ctx, Remote{URL: r.url()}, FetchOptions{}); err != nil {
				t.Fatal(err)
			}
			have, err := to.Tips(ctx)
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			if err := from.Export(ctx, append(have, strings.Repeat("ab", 20), "--all", "x"), &b); err != nil {
				t.Fatal(err)
			}
			if b.Len() > mostBytes {
				t.Errorf("%d bytes travel, expected at most %d", b.Len(), mostBytes)
			}
			if err := to.Import(ctx, &b); err != nil {
				t.Fatal(err)
			}
			if got, want := stateOf(t, to), stateOf(t, from); got != want {
				t.Fatalf("the copy has\n%s\nwant\n%s", got, want)
			}
			runGit(t, to.Dir(), nil, "fsck", "--connectivity-only", "--no-dangling")
		}
		sync(1000) // empty
		h := &stream{}
		for i := range 50 {
			h.commit("refs/heads/main", i, "Ann", fmt.Sprint("commit ", i), fmt.Sprintf("f%d", i), strings.Repeat(fmt.Sprint(i), 500))
		}
		h.commit("refs/heads/a", 60, "Bob", "a", "x", "x")
		r.load(h)
		r.git("tag", "-a", "-m", "t", "v1", "main~3")
		sync(1 << 20)
		sync(1000) // nothing new
		h.Reset()
		h.commit("refs/heads/a/b", 70, "Bob", "where a file was", "y", "y")
		r.git("update-ref", "-d", "refs/heads/a")
		r.load(h)
		r.git("tag", "-f", "-a", "-m", "t", "v1", "main~1")
		r.git("update-ref", "refs/heads/main", "refs/heads/main~10")
		r.git("symbolic-ref", "HEAD", "refs/heads/a/b")
		sync(2500)
		revs, _, err := to.Revisions(ctx, globs{"**"}, globs{"**"})
		if err != nil || len(revs) != 4 {
			t.Errorf("%s, %v", names(revs), err)
		}
		r.git("update-ref", "--no-deref", "HEAD", r.git("rev-parse", "main~2"))
		sync(2000)
	}
}

func TestMirrorCopy_refusesABrokenTransferUnchanged(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	_, from := story(t)
	to := newMirror(t)
	var whole bytes.Buffer
	if err := from.Export(ctx, nil, &whole); err != nil {
		t.Fatal(err)
	}
	if err := to.Import(ctx, bytes.NewReader(whole.Bytes())); err != nil {
		t.Fatal(err)
	}
	before := stateOf(t, to)
	// The sender assumes that the receiver has objects which it lacks.
	var thin bytes.Buffer
	head, _ := from.Resolve(ctx, "main")
	if err := from.Export(ctx, []string{head}, &thin); err != nil {
		t.Fatal(err)
	}
	if err := newMirror(t).Import(ctx, bytes.NewReader(thin.Bytes())); err == nil {
		t.Error("a copy without its objects is taken")
	}
	text := whole.Bytes()
	for n := 0; n < len(text); n += 1 + len(text)/20 {
		if err := to.Import(ctx, bytes.NewReader(text[:n])); err == nil {
			t.Errorf("the first %d of %d bytes are taken", n, len(text))
		}
	}
	for name, bad := range map[string][]byte{
		"another magic": append([]byte("x"), text...),
		"a bad name":    bytes.Replace(text, []byte("refs/heads/dev"), []byte("refs/notes/dev"), 1),
		"a bad HEAD":    bytes.Replace(text, []byte("ref: refs/heads/main"), []byte("ref: ../../../../main"), 1),
		"changed bytes": append(slices.Clone(text[:len(text)-30]), make([]byte, 30)...),
	} {
		if err := to.Import(ctx, bytes.NewReader(bad)); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	if after := stateOf(t, to); after != before {
		t.Errorf("the mirror changed:\n%s\nwas\n%s", after, before)
	}
	if err := newMirror(t).Export(ctx, nil, &thin); !errors.Is(err, ErrEmpty) {
		t.Errorf("export of no mirror: %v", err)
	}
}
