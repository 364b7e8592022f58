package account

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"sync"

	"github.com/shoalsearch/shoal/node/call"
)

// macs computes the HMACs by which credentials are stored, under a secret of the cluster. So a copy
// of the catalog opens nothing. It is safe for concurrent use.
type macs struct {
	catalog Catalog
	name    string // of the secret

	mu     sync.Mutex // guards secret
	secret []byte     // nil before the first use
}

func newMACs(c Catalog, name string) *macs { return &macs{catalog: c, name: name} }

// macOf returns the stored form of a text, its HMAC. Texts of different labels have different ones.
func (m *macs) macOf(ctx context.Context, label, text string) ([]byte, error) {
	// Do not hold the lock while asking the leader. Concurrent callers get the same secret.
	m.mu.Lock()
	secret := m.secret
	m.mu.Unlock()

	if secret == nil {
		var err error
		if secret, err = m.catalog.Secret(ctx, m.name); err != nil {
			return nil, err
		}
		m.mu.Lock()
		m.secret = secret
		m.mu.Unlock()
	}

	h := hmac.New(sha256.New, secret)
	// Labels contain no zero byte, so two pairs never collide.
	fmt.Fprintf(h, "%s\x00%s", label, text)
	return h.Sum(nil), nil
}

// sumOfClientText returns the stored form of a text that a client sent. It returns nil if no text
// of its kind was ever created. It never creates the secret, since strangers must not write to the
// catalog. A node without the secret asks the leader, as for an unknown key.
func (m *macs) sumOfClientText(ctx context.Context, unknown *unknownKeys, label, text string) ([]byte, error) {
	// Check again after asking: this node has caught up then.
	if !m.hasSecret() {
		if err := unknown.askLeader(ctx, sha256.Sum256([]byte(text))); err != nil {
			return nil, err
		}
		if !m.hasSecret() {
			return nil, nil
		}
	}
	sum, err := m.macOf(ctx, label, text)
	if err != nil {
		return nil, call.WriteError(err)
	}
	return sum, nil
}

// hasSecret reports whether the secret exists, as far as this node knows.
func (m *macs) hasSecret() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.secret != nil || m.catalog.View().Secret(m.name) != nil
}

// usedIDs collects ids of used things. It is safe for concurrent use.
type usedIDs struct {
	mu  sync.Mutex
	ids map[string]bool
}

func newUsedIDs() *usedIDs { return &usedIDs{ids: map[string]bool{}} }

func (m *usedIDs) add(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ids[id] = true
}

// takeAll returns the ids and clears them.
func (m *usedIDs) takeAll() (ids []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id := range m.ids {
		ids = append(ids, id)
	}
	clear(m.ids)
	return ids
}
