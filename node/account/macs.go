package account

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"sync"
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
	fmt.Fprintf(h, "%s\x00%s", label, text)
	return h.Sum(nil), nil
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
