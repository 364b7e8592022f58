package node

import "log/slog"

// closers is what has been opened, in that order. It is closed in reverse, so
// that nothing is closed under what stands on it.
type closers []closer

type closer struct {
	name  string
	close func()
}

func (c *closers) add(name string, close func()) { *c = append(*c, closer{name, close}) }

// close closes everything once, and says what, so that a stop that hangs shows
// where.
func (c *closers) close(log *slog.Logger) {
	for len(*c) > 0 {
		last := (*c)[len(*c)-1]
		*c = (*c)[:len(*c)-1]
		last.close()
		log.Debug("stopped", "part", last.name)
	}
}
