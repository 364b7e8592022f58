package main

import (
	"fmt"
	"log/slog"
	"slices"

	"github.com/shoalsearch/shoal/cluster/config"
)

// unreadVariables returns the errors of invalid variables, which would otherwise count as unset.
func unreadVariables(getenv func(string) string) (errs []error) {
	for _, v := range slices.Concat(config.Variables(), config.Refused()) {
		value := getenv(v.Name)
		if err := v.Check(value); err != nil {
			errs = append(errs, fmt.Errorf("%s=%q: %w", v.Name, value, err))
		}
	}
	return errs
}

// warnUnread warns about each variable that is set although no node reads it, and names its
// replacement.
func warnUnread(getenv func(string) string, log *slog.Logger) {
	for _, name := range config.Unread() {
		if getenv(name) != "" {
			log.Warn("a variable of the environment has no effect", "name", name, "why", config.WhyUnread(name))
		}
	}
}
