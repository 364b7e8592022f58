package api

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// params reads query parameters and collects errors, so that one answer names every mistake.
type params struct {
	c       *call
	missing bool // a required parameter is missing
	errs    []string
}

func (c *call) params() *params { return &params{c: c} }

// err returns one failure that names every mistake; nil if there is none.
func (p *params) err() error {
	if len(p.errs) == 0 {
		return nil
	}
	f := invalidParams("%s", strings.Join(p.errs, "; "))
	if p.missing {
		f.Code = codeMissingParam
	}
	return f
}

func (p *params) wrong(name, format string, args ...any) {
	p.errs = append(p.errs, name+": "+fmt.Sprintf(format, args...))
}

// required returns a parameter, and reports it as an error if it is missing or empty.
func (p *params) required(name string) string {
	before := len(p.errs)
	s := p.text(name)
	if s == "" && len(p.errs) == before {
		p.missing = true
		p.wrong(name, "required")
	}
	return s
}

// text returns a parameter; "" if it is missing. It may contain any bytes except NUL, because
// paths and names in git need not be UTF-8.
func (p *params) text(name string) string {
	s, _ := p.c.arg(name)
	if strings.IndexByte(s, 0) >= 0 {
		p.wrong(name, "must not contain a NUL byte")
		return ""
	}
	return s
}

// integer returns a parameter that must be a whole number from lo to hi; fallback if it is missing
// or invalid.
func (p *params) integer(name string, fallback, lo, hi int) int {
	// Refuse a number out of bounds. If the bound took its place, the answer would look like the
	// requested page.
	s, ok := p.c.arg(name)
	if !ok {
		return fallback
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		p.wrong(name, "expected a whole number")
		return fallback
	}

	if n < lo || n > hi {
		p.wrong(name, "must be between %d and %d", lo, hi)
		return fallback
	}
	return n
}

// choice returns a parameter that must be one of the words; the first word if it is missing or
// invalid.
func (p *params) choice(name string, words ...string) string {
	s, ok := p.c.arg(name)
	if !ok {
		return words[0]
	}
	if !slices.Contains(words, s) {
		p.wrong(name, "expected one of %s", strings.Join(words, ", "))
		return words[0]
	}
	return s
}

// flag returns a parameter that must be true or false; fallback if it is missing or invalid.
func (p *params) flag(name string, fallback bool) bool {
	s, ok := p.c.arg(name)
	if !ok {
		return fallback
	}

	// A parameter without a value, such as ?accept, means true.
	switch s {
	case "true", "1", "":
		return true
	case "false", "0":
		return false
	}
	p.wrong(name, "expected true or false")
	return fallback
}
