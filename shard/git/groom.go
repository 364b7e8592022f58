package git

import "context"

// Groom makes the mirror quick to read: packed references, few packs, a
// commit graph with changed-path filters. It is called after a fetch that
// changed something, and may run while the mirror is read.
func (m *Mirror) Groom(ctx context.Context) error {
	release, err := m.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	return nil
}
