package main

import (
	"fmt"

	"github.com/shoalsearch/shoal/cluster/config"
)

// unreadVariables are the errors of the variables that cannot be read: later one
// would count as not given.
func unreadVariables(getenv func(string) string) (errs []error) {
	for _, v := range config.Variables() {
		value := getenv(v.Name)
		if err := v.Check(value); err != nil {
			errs = append(errs, fmt.Errorf("%s=%q: %w", v.Name, value, err))
		}
	}
	return errs
}
