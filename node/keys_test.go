package node_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/nodetest"
)

func TestAKeyWorksUntilItIsRevoked(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	n := nodetest.Start(t, nodetest.Config{})
	made, err := n.CreateKey(ctx, node.Owner(), node.CreateKeyRequest{Name: "ci"})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(made.Key, "shoal_") || len(made.Key) != 70 {
		t.Errorf("the key is %q, want shoal_ and 64 digits", made.Key)
	}
	v, err := n.Authenticate(ctx, made.Key)
	if err != nil || v.Role != node.RoleMember || v.Name != "ci" {
		t.Errorf("the key gives %+v, %v", v, err)
	}
	for _, bad := range []string{"", "shoal_", made.Key[:69] + "x", made.Key + "0", strings.Replace(made.Key, "shoal_", "sbk_", 1)} {
		if _, err := n.Authenticate(ctx, bad); !errors.Is(err, node.ErrUnauthenticated) {
			t.Errorf("key %q gives %v, want not authenticated", bad, err)
		}
	}
	if _, err := n.CreateKey(ctx, node.Owner(), node.CreateKeyRequest{Name: "ci"}); !errors.Is(err, node.ErrExists) {
		t.Errorf("a second key of the name gives %v", err)
	}
	if _, err := n.CreateKey(ctx, v, node.CreateKeyRequest{Name: "other"}); !errors.Is(err, node.ErrForbidden) {
		t.Errorf("a member makes a key: %v", err)
	}
	n.Stop()
	n.Start()
	if _, err := n.Authenticate(ctx, made.Key); err != nil {
		t.Errorf("after a restart: %v", err)
	}
	if _, err := n.RevokeKey(ctx, node.Owner(), node.RevokeKeyRequest{Key: "ci"}); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Authenticate(ctx, made.Key); !errors.Is(err, node.ErrUnauthenticated) {
		t.Errorf("a revoked key gives %v", err)
	}
}

func TestAKeyExpires(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	n := nodetest.Start(t, nodetest.Config{})
	made, err := n.CreateKey(ctx, node.Owner(), node.CreateKeyRequest{Name: "short", Expires: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	n.Wait("the key to expire", func() error {
		if _, err := n.Authenticate(ctx, made.Key); err == nil {
			return errors.New("it is still good")
		}
		return nil
	})
}

// What was confirmed at one node is known to the others when they are asked
// to change it, also to one that was cut off a moment ago.
func TestKeysOfOtherNodesAreKnown(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	f := nodetest.StartFleet(t, 3, nodetest.Config{})
	f.Nodes[0].Wait("three voters", func() error {
		for _, m := range f.Nodes[0].Status().Members {
			if m.Role == "nonvoter" {
				return fmt.Errorf("%s has no vote yet", m.ID)
			}
		}
		return nil
	})
	f.Isolate(2)
	f.Nodes[0].Wait("a key", func() error {
		_, err := f.Nodes[0].CreateKey(ctx, node.Owner(), node.CreateKeyRequest{Name: "ci"})
		return err
	})
	if _, err := f.Nodes[2].Keys(ctx, node.Owner(), node.KeysRequest{Consistent: true}); !errors.Is(err, node.ErrNoLeader) {
		t.Errorf("a node without a leader lists keys as if it knew all: %v", err)
	}
	f.Heal()
	if _, err := f.Nodes[2].RevokeKey(ctx, node.Owner(), node.RevokeKeyRequest{Key: "ci"}); err != nil {
		t.Errorf("a key that was made at another node cannot be revoked: %v", err)
	}
	list, err := f.Nodes[1].Keys(ctx, node.Owner(), node.KeysRequest{Consistent: true})
	if err != nil || len(list.Keys) != 0 {
		t.Errorf("a revoked key is listed: %+v, %v", list, err)
	}
}
