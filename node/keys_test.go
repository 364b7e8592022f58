package node_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/nodetest"
)

func TestAPIKey_isAcceptedUntilRevoked(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	n := nodetest.Start(t, nodetest.Config{})
	made, err := n.Keys.CreateKey(ctx, account.Operator(), account.CreateKeyRequest{Name: "ci"})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(made.Key, "shoal_") || len(made.Key) != 70 {
		t.Errorf("the key is %q, want shoal_ and 64 digits", made.Key)
	}
	v, err := n.Keys.Authenticate(ctx, made.Key)
	if err != nil || v.Role != catalog.RoleMember || v.Name != "ci" {
		t.Errorf("the key gives %+v, %v", v, err)
	}
	for _, bad := range []string{"", "shoal_", made.Key[:69] + "x", made.Key + "0", strings.Replace(made.Key, "shoal_", "sbk_", 1)} {
		if _, err := n.Keys.Authenticate(ctx, bad); !errors.Is(err, call.ErrUnauthenticated) {
			t.Errorf("key %q gives %v, want not authenticated", bad, err)
		}
	}
	if _, err := n.Keys.CreateKey(ctx, account.Operator(), account.CreateKeyRequest{Name: "ci"}); !errors.Is(err, call.ErrExists) {
		t.Errorf("a second key of the name gives %v", err)
	}
	if _, err := account.AsOwner(v); !errors.Is(err, call.ErrForbidden) {
		t.Errorf("a member may make keys: %v", err)
	}
	n.Stop()
	n.Start()
	if _, err := n.Keys.Authenticate(ctx, made.Key); err != nil {
		t.Errorf("after a restart: %v", err)
	}
	if _, err := n.Keys.RevokeKey(ctx, account.Operator(), "ci"); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Keys.Authenticate(ctx, made.Key); !errors.Is(err, call.ErrUnauthenticated) {
		t.Errorf("a revoked key gives %v", err)
	}
}

// Behind a load balancer, any node may get the request with a new key or with a revoked one.
func TestAPIKey_isKnownAndRevokedAtEveryNode(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	f := nodetest.StartFleet(t, 3, nodetest.Config{})
	f.Nodes[0].Wait("three voters", threeVoters(f.Nodes[0]))
	for round := range 12 {
		at := f.Nodes[round%3]
		var made *account.CreateKeyResponse
		at.Wait("a key", func() (err error) {
			made, err = at.Keys.CreateKey(ctx, account.Operator(), account.CreateKeyRequest{Name: rand.Text()})
			return err
		})
		for _, n := range f.Nodes {
			n.Wait("an answer about the new key", func() error { return viewerIs(t, n, made, true) })
		}
		at.Wait("the end of the key", func() error {
			_, err := at.Keys.RevokeKey(ctx, account.Operator(), made.Info.ID)
			if errors.Is(err, call.ErrNotFound) {
				return nil // the answer to the last try was lost
			}
			return err
		})
		for _, n := range f.Nodes {
			n.Wait("an answer about the revoked key", func() error { return viewerIs(t, n, made, false) })
		}
	}
}

// viewerIs checks whether a node accepts a key. On a slow machine the cluster may have no leader;
// then it returns an error.
func viewerIs(t *testing.T, n *nodetest.Node, made *account.CreateKeyResponse, want bool) error {
	t.Helper()
	v, err := n.Keys.Authenticate(context.Background(), made.Key)
	if errors.Is(err, call.ErrNoLeader) {
		return err
	}
	if good := err == nil && v.Name == made.Info.Name; good != want || !want && !errors.Is(err, call.ErrUnauthenticated) {
		t.Errorf("%s takes the key: %t (%v), want %t", n.ID(), good, err, want)
	}
	return nil
}

// threeVoters returns the condition that all three nodes vote.
func threeVoters(n *nodetest.Node) func() error {
	return func() error {
		if voters := n.LiveVoters(); voters != 3 {
			return fmt.Errorf("%d voters", voters)
		}
		return nil
	}
}

func TestAPIKey_isRefusedAfterItsExpiry(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	n := nodetest.Start(t, nodetest.Config{})
	made, err := n.Keys.CreateKey(ctx, account.Operator(), account.CreateKeyRequest{Name: "short", Expires: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	n.Wait("the key to expire", func() error {
		if _, err := n.Keys.Authenticate(ctx, made.Key); err == nil {
			return errors.New("it is still good")
		}
		return nil
	})
}

// A change of a key at another node works although that node may not have heard of the key, even
// if it was cut off a moment ago.
func TestAPIKey_canBeChangedAtAnyNode(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	f := nodetest.StartFleet(t, 3, nodetest.Config{Edit: func(o *node.Options) { o.Hold = 0 }}) // one write must be refused
	f.Nodes[0].Wait("three voters", threeVoters(f.Nodes[0]))
	f.Isolate(2)
	f.Nodes[0].Wait("a key", func() error {
		_, err := f.Nodes[0].Keys.CreateKey(ctx, account.Operator(), account.CreateKeyRequest{Name: "ci"})
		if errors.Is(err, call.ErrExists) {
			return nil // the answer to the last try was lost
		}
		return err
	})
	if _, err := f.Nodes[2].Keys.Keys(ctx, account.Operator(), true); !errors.Is(err, call.ErrNoLeader) {
		t.Errorf("a node without a leader lists keys as if it knew all: %v", err)
	}
	f.Heal()

	// A slow machine may need longer to find its leader than a write waits, or lose the answer to
	// a successful write.
	tries := 0
	f.Nodes[2].Wait("the key to be revoked", func() error {
		_, err := f.Nodes[2].Keys.RevokeKey(ctx, account.Operator(), "ci")
		if tries++; tries > 1 && errors.Is(err, call.ErrNotFound) {
			return nil
		}
		if err != nil && !errors.Is(err, call.ErrNoLeader) && !errors.Is(err, call.ErrTimeout) {
			t.Fatalf("a key that was made at another node cannot be revoked: %v", err)
		}
		return err
	})
	f.Nodes[1].Wait("the list of keys", func() error {
		list, err := f.Nodes[1].Keys.Keys(ctx, account.Operator(), true)
		if err == nil && len(list) != 0 {
			t.Fatalf("a revoked key is listed: %+v", list)
		}
		return err
	})
}
