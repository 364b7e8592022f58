package main

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/cluster/config"
)

// checkVariables returns an error for each variable with an invalid value.
func checkVariables(getenv func(string) string) (errs []error) {
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

// warnMisspelt warns about variables whose name begins with SHOAL_ and is similar to that of one that a
// node reads. Kubernetes sets others, for a service named shoal: about these it does not warn.
func warnMisspelt(environ []string, log *slog.Logger) {
	known := []string{"SHOAL_API_KEY", "SHOAL_URL", "SHOAL_CA_FILE"} // variables of other commands
	for name := range flagsOfVariables() {
		known = append(known, name)
	}
	for _, v := range slices.Concat(config.Variables(), config.Refused()) {
		known = append(known, v.Name)
	}
	slices.Sort(known)

	for _, pair := range environ {
		name, _, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, "SHOAL_") || slices.Contains(known, name) {
			continue
		}
		if near := config.Nearest(name, known); near != "" {
			log.Warn("no node reads this variable of the environment", "name", name, "did you mean", near)
		}
	}
}
