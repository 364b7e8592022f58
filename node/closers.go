package node

import "log/slog"

// closers lists the open resources of a node in the order of opening. They are closed in reverse
// order: a part never outlives what it uses.
type closers []closer

type closer struct {
	name  string
	close func()
}

func (c *closers) add(name string, close func()) { *c = append(*c, closer{name, close}) }

// close closes every resource once. It logs each name, so that a stop that hangs shows where.
func (c *closers) close(log *slog.Logger) {
	for len(*c) > 0 {
		last := (*c)[len(*c)-1]
		*c = (*c)[:len(*c)-1]
		last.close()
		log.Debug("stopped", "part", last.name)
	}
}
