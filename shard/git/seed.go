package git

import "context"

// seed copies packs.
func (m *Mirror) seed(ctx context.Context, remote Remote) {}
