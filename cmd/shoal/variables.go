package main

import (
	"fmt"
	"log/slog"
	"slices"

	"github.com/shoalsearch/shoal/cluster/config"
)

// unreadVariables are the errors of the variables that cannot be read: later one
// would count as not given.
func unreadVariables(getenv func(string) string) (errs []error) {
	for _, v := range slices.Concat(config.Variables(), config.Refused()) {
		value := getenv(v.Name)
		if err := v.Check(value); err != nil {
			errs = append(errs, fmt.Errorf("%s=%q: %w", v.Name, value, err))
		}
	}
	return errs
}

// warnUnread says of each variable that is set, and that no node reads, what takes
// its place: somebody expects an effect of it.
func warnUnread(getenv func(string) string, log *slog.Logger) {
	for _, name := range config.Unread() {
		if getenv(name) != "" {
			log.Warn("a variable of the environment has no effect", "name", name, "why", config.WhyUnread(name))
		}
	}
}
