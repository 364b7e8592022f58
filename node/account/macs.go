package account

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"sync"

	"github.com/shoalsearch/shoal/node/call"
)

// macs makes the HMACs in which credentials are kept, under a secret of the
// cluster: a copy of the catalog opens nothing. It is safe for concurrent use.
type macs struct {
	catalog Catalog
	name    string // of the secret

	mu     sync.Mutex // guards secret
	secret []byte     // nil before the first use
}

func newMACs(c Catalog, name string) *macs { return &macs{catalog: c, name: name} }

// sum is the form in which a text is kept. The label keeps texts of different
// kinds apart.
func (m *macs) sum(ctx context.Context, label, text string) ([]byte, error) {
	// The lock is not held while the leader is asked; two who ask at once get the same secret.
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
	// A zero byte is in no label, so that no two pairs are written alike.
	fmt.Fprintf(h, "%s\x00%s", label, text)
	return h.Sum(nil), nil
}

// sumOfShown is sum of a text that a client sends, nil where nothing of its kind was ever
// made. It never makes the secret: strangers send texts too, and must not write to
// the catalog. A node that has no secret yet asks the leader, as about a text that
// it does not know.
func (m *macs) sumOfShown(ctx context.Context, unknown *unknownKeys, label, text string) ([]byte, error) {
	// Twice, around the question: between them the node catches up.
	if !m.hasSecret() {
		if err := unknown.ask(ctx, sha256.Sum256([]byte(text))); err != nil {
			return nil, err
		}
		if !m.hasSecret() {
			return nil, nil
		}
	}
	sum, err := m.sum(ctx, label, text)
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

// marks are ids of what was used since they were last taken. They are safe
// for concurrent use.
type marks struct {
	mu  sync.Mutex
	ids map[string]bool
}

func newMarks() *marks { return &marks{ids: map[string]bool{}} }

func (m *marks) add(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ids[id] = true
}

// take returns the ids, and begins anew.
func (m *marks) take() (ids []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id := range m.ids {
		ids = append(ids, id)
	}
	clear(m.ids)
	return ids
}
