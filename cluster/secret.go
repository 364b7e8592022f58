package cluster

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/wire"
)

// secretSize is the size of a secret of the cluster, in bytes.
const secretSize = 32

// Secret is a secret that all nodes share: 32 random bytes, made when the
// name is first asked for and the same for ever. It lies in the catalog
// sealed by the cluster key. ErrNoLeader is returned when it has yet to be
// made and there is no leader.
func (c *Cluster) Secret(ctx context.Context, name string) ([]byte, error) {
	if s := c.View().Secret(name); s != nil {
		return unseal(c.validKeys(), name, s.Sealed)
	}
	fresh := make([]byte, secretSize)
	rand.Read(fresh)
	sealed, err := seal(c.validKeys()[0], name, fresh)
	if err != nil {
		return nil, err
	}
	if _, err := c.Propose(ctx, &catalog.SetSecret{Name: name, Sealed: sealed, IfAbsent: true}); err != nil {
		return nil, fmt.Errorf("cluster: make secret %s: %w", name, err)
	}
	// Another node may have been first.
	s := c.View().Secret(name)
	if s == nil {
		return nil, fmt.Errorf("cluster: secret %s is gone", name)
	}
	return unseal(c.validKeys(), name, s.Sealed)
}

func sealer(k wire.Key) (cipher.AEAD, error) {
	block, err := aes.NewCipher(k.Derive("catalog secrets", 32))
	if err != nil {
		return nil, fmt.Errorf("cluster: seal: %w", err)
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// seal encrypts a secret; its name is part of what is authenticated.
func seal(k wire.Key, name string, plain []byte) ([]byte, error) {
	a, err := sealer(k)
	if err != nil {
		return nil, err
	}
	return a.Seal(nil, nil, plain, []byte(name)), nil
}

func unseal(keys wire.Keys, name string, sealed []byte) ([]byte, error) {
	for _, k := range keys {
		a, err := sealer(k)
		if err != nil {
			return nil, err
		}
		if plain, err := a.Open(nil, nil, sealed, []byte(name)); err == nil {
			return plain, nil
		}
	}
	return nil, errors.New("cluster: secret " + name + " was sealed with a cluster key that this node does not have: add the old key to the key file")
}
