package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/ask"
	"github.com/shoalsearch/shoal/node/chronicle"
	"github.com/shoalsearch/shoal/node/oauth"
)

// checkedVariables are the variables that a node reads when it needs them. One
// whose value cannot be read stops the start: later it would count as not given.
var checkedVariables = append(config.VariablesOfPeople(),
	config.CheckedVariable{Name: oauth.GraceVariable, Check: readBy(oauth.ParseGrace)},
	config.CheckedVariable{Name: ask.RetentionVariable, Check: readBy(ask.ParseRetention)},
	config.CheckedVariable{Name: chronicle.AuditDaysVariable, Check: readBy(chronicle.ParseAuditDays)},
	config.CheckedVariable{Name: chronicle.AuditVariable, Check: wantBool},
	config.CheckedVariable{Name: chronicle.QueriesVariable, Check: readBy(chronicle.ParseQueries)},
	config.CheckedVariable{Name: chronicle.DiskVariable, Check: readBy(chronicle.ParseDisk)},
	config.CheckedVariable{Name: account.OperatorVariable, Check: wantBool},
	config.CheckedVariable{Name: account.AgeVariable, Check: readBy(account.ParseAge)},
)

// readBy refuses what the reader of a variable refuses.
func readBy[T any](parse func(text string) (T, error)) func(string) error {
	return func(text string) error {
		_, err := parse(text)
		return err
	}
}

func wantBool(text string) error {
	if _, err := strconv.ParseBool(strings.TrimSpace(text)); text != "" && err != nil {
		return errors.New("want true or false")
	}
	return nil
}

// unreadVariables are the errors of the variables that cannot be read.
func unreadVariables(getenv func(string) string) (errs []error) {
	for _, v := range checkedVariables {
		value := getenv(v.Name)
		if err := v.Check(value); err != nil {
			errs = append(errs, fmt.Errorf("%s=%q: %w", v.Name, value, err))
		}
	}
	return errs
}
