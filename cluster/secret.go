package cluster

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/wire"
)

// secretSize is the size of a secret of the cluster, in bytes.
const secretSize = 32

// get implements [Cluster.Secret].
func (s *secrets) get(ctx context.Context, name string) ([]byte, error) {
	if x := s.replica.view().Secret(name); x != nil {
		return s.keys.unseal(name, x.Sealed)
	}

	fresh := make([]byte, secretSize)
	rand.Read(fresh)
	sealed, err := seal(s.keys.valid()[0], name, fresh)
	if err != nil {
		return nil, err
	}
	if _, err := s.proposer.propose(ctx, &catalog.SetSecret{Name: name, Sealed: sealed, IfAbsent: true}); err != nil {
		return nil, fmt.Errorf("cluster: make secret %s: %w", name, err)
	}

	// Another node may have created it first.
	x := s.replica.view().Secret(name)
	if x == nil {
		return nil, fmt.Errorf("cluster: secret %s is gone", name)
	}
	return s.keys.unseal(name, x.Sealed)
}

// known implements [Cluster.KnownSecret].
func (s *secrets) known(name string) ([]byte, bool, error) {
	x := s.replica.view().Secret(name)
	if x == nil {
		return nil, false, nil
	}
	plain, err := s.keys.unseal(name, x.Sealed)
	return plain, err == nil, err
}

// set implements [Cluster.SetSecret].
func (s *secrets) set(ctx context.Context, name string, plain []byte) error {
	sealed, err := seal(s.keys.valid()[0], name, plain)
	if err != nil {
		return err
	}
	if _, err := s.proposer.propose(ctx, &catalog.SetSecret{Name: name, Sealed: sealed}); err != nil {
		return fmt.Errorf("cluster: set secret %s: %w", name, err)
	}
	return nil
}

// sealedConfig is the name under which configurations are sealed.
const sealedConfig = "configuration"

// sealConfigs seals the configurations in commands, because they hold passwords and tokens.
func (k *keyring) sealConfigs(cmds []catalog.Command) ([]catalog.Command, error) {
	out := slices.Clone(cmds)
	for i, cmd := range cmds {
		set, ok := cmd.(*catalog.SetConfig)
		if !ok {
			continue
		}

		raw, err := sealConfig(k.valid()[0], set.Raw)
		if err != nil {
			return nil, err
		}

		// Do not change the caller's command.
		sealed := *set
		sealed.Raw = raw
		out[i] = &sealed
	}
	return out, nil
}

// sealConfig encrypts a configuration file, in the form that the catalog stores.
func sealConfig(k wire.Key, file []byte) ([]byte, error) {
	box, err := seal(k, sealedConfig, file)
	if err != nil {
		return nil, err
	}
	return catalog.SealedConfig(box), nil
}

// resealConfig seals the configuration in force under the first key, unless it is already.
func (s *secrets) resealConfig(ctx context.Context, keys wire.Keys) error {
	now := s.replica.view().Config()
	if now.Index == 0 {
		return nil
	}

	plain := now.Raw
	if box, sealed := now.Sealed(); sealed {
		if _, err := unseal(keys[:1], sealedConfig, box); err == nil {
			return nil
		}
		var err error
		if plain, err = unseal(keys, sealedConfig, box); err != nil {
			return err
		}
	}

	// The command names the hash: if another configuration comes first, it does nothing.
	raw, err := sealConfig(keys[0], plain)
	if err != nil {
		return err
	}

	if _, err := s.proposer.propose(ctx, &catalog.SealConfig{Hash: now.Hash, Raw: raw}); err != nil {
		return fmt.Errorf("seal the configuration anew: %w", err)
	}
	s.log.Info("configuration sealed anew", "key", keys[0].Fingerprint())
	return nil
}

// sealedBoxes iterates over everything sealed in a catalog, by name.
func sealedBoxes(v *catalog.View) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		if box, sealed := v.Config().Sealed(); sealed && !yield(sealedConfig, box) {
			return
		}
		for s := range v.Secrets() {
			if !yield(s.Name, s.Sealed) {
				return
			}
		}
	}
}

// sealer returns the cipher for secrets, with a key derived from a cluster key.
func sealer(k wire.Key) (cipher.AEAD, error) {
	block, err := aes.NewCipher(k.Derive("catalog secrets", 32))
	if err != nil {
		return nil, fmt.Errorf("cluster: seal: %w", err)
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// seal encrypts a secret. Its name is authenticated, too.
func seal(k wire.Key, name string, plain []byte) ([]byte, error) {
	a, err := sealer(k)
	if err != nil {
		return nil, err
	}
	return a.Seal(nil, nil, plain, []byte(name)), nil
}

// unseal decrypts what seal encrypted, with any of the keys.
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
