package auth

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/wire"
	"github.com/shoalsearch/shoal/node"
)

// keyring knows one member's key.
type keyring struct {
	key       string
	anonymous bool
}

func (k keyring) Authenticate(_ context.Context, key string) (node.Viewer, error) {
	if key != k.key {
		return node.Viewer{}, refused("unknown")
	}
	return node.Viewer{Role: node.RoleMember, Name: "ci"}, nil
}

func (k keyring) AnonymousAccess() bool { return k.anonymous }

func TestViewer(t *testing.T) {
	t.Parallel()
	good, operator, unknown := Prefix+strings.Repeat("a", 64), Prefix+strings.Repeat("b", 64), Prefix+strings.Repeat("c", 64)
	for _, c := range []struct {
		what, authorization, apiKey string
		anonymous                   bool
		want                        string // name of the viewer; "" where it is refused
	}{
		{"a member's key", "Bearer " + good, "", false, "ci"},
		{"the scheme in any case, blanks around the key", "bearer  " + good + " ", "", false, "ci"},
		{"the other header", "", good, false, "ci"},
		{"Authorization goes before the other header", "Bearer " + unknown, good, false, ""},
		{"the operator's key", "Bearer " + operator, "", false, node.Owner().Name},
		{"no credential", "", "", false, ""},
		{"no credential where anonymous access is on", "", "", true, node.Guest().Name},
		{"a bad key where anonymous access is on", "Bearer " + unknown, "", true, ""},
		{"another scheme where anonymous access is on", "Basic " + good, "", true, ""},
		{"a key of another form", "Bearer " + good[:40], "", false, ""},
		{"a key with upper-case digits", "Bearer " + Prefix + strings.Repeat("A", 64), "", false, ""},
		{"an empty bearer", "Bearer ", "", true, ""},
	} {
		a := New(keyring{good, c.anonymous}, func(key string) bool { return key == operator })
		v, err := a.Viewer(context.Background(), c.authorization, c.apiKey)
		switch {
		case c.want == "" && !errors.Is(err, node.ErrUnauthenticated):
			t.Errorf("%s: viewer %q, error %v; want a refusal", c.what, v.Name, err)
		case c.want != "" && (err != nil || v.Name != c.want):
			t.Errorf("%s: viewer %q, error %v; want %q", c.what, v.Name, err, c.want)
		}
	}
}

func TestOperatorFollowsTheKeyFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "cluster.key")
	clock := time.Unix(1700000000, 0)
	o := NewOperator(file, func() time.Time { return clock })
	if o.Is("") || o.Is(Prefix+strings.Repeat("a", 64)) {
		t.Error("somebody is the operator where there is no key file")
	}
	write := func(keys ...wire.Key) {
		t.Helper()
		var text strings.Builder
		for _, k := range keys {
			text.WriteString(k.Text() + "\n")
		}
		if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		clock = clock.Add(time.Minute)
	}
	first, second := wire.NewKey(), wire.NewKey()
	write(first)
	old, err := OperatorKey(file)
	if err != nil || !WellFormed(old) || !o.Is(old) {
		t.Fatalf("key %q, error %v, recognised %t", old, err, o.Is(old))
	}
	write(second, first) // being rotated: both are good
	fresh, err := OperatorKey(file)
	if err != nil || fresh == old || !o.Is(old) || !o.Is(fresh) {
		t.Errorf("while the key is rotated: error %v, old %t, new %t", err, o.Is(old), o.Is(fresh))
	}
	write(second)
	if o.Is(old) || !o.Is(fresh) {
		t.Errorf("after the rotation: old %t, new %t", o.Is(old), o.Is(fresh))
	}
}
