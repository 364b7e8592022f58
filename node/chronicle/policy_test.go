package chronicle

import (
	"strconv"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/config"
)

// variables implements Variables.
type variables map[string]string

func (v variables) Lookup(name string) (string, bool) {
	text, ok := v[name]
	return text, ok
}

func (v variables) Flag(name string) (value, set bool) {
	value, err := strconv.ParseBool(v[name])
	return value, err == nil
}

func TestAuditPolicy_isReadFromVariables(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	usual := Policy{Keep: 180 * day, Disk: 4096 << 20, Queries: config.NoQueries}
	with := func(edit func(*Policy)) Policy {
		p := usual
		edit(&p)
		return p
	}
	for _, tt := range []struct {
		vars    variables
		want    Policy
		changes bool // whether changes are audited
	}{
		{nil, usual, true},
		{variables{"SOURCEBOT_EE_AUDIT_LOGGING_ENABLED": "true"}, usual, true},
		{variables{"SOURCEBOT_EE_AUDIT_LOGGING_ENABLED": "false"}, with(func(p *Policy) { p.Off = true }), false},
		{variables{"SOURCEBOT_EE_AUDIT_RETENTION_DAYS": "7"}, with(func(p *Policy) { p.Keep = 7 * day }), true},
		{variables{"SOURCEBOT_EE_AUDIT_RETENTION_DAYS": "0"}, with(func(p *Policy) { p.Keep = 0 }), true},
		{variables{"SHOAL_AUDIT_QUERIES": "full"}, with(func(p *Policy) { p.Queries = config.WholeQueries }), true},
		{variables{"SHOAL_AUDIT_QUERIES": "some"}, usual, true},
		{variables{"SHOAL_AUDIT_DISK_MB": "10"}, with(func(p *Policy) { p.Disk = 10 << 20 }), true},
		{variables{"SHOAL_AUDIT_DISK_MB": "0"}, with(func(p *Policy) { p.Disk, p.Off = 0, true }), true},
	} {
		if got := PolicyOf(tt.vars); got != tt.want {
			t.Errorf("%v: accesses %+v, want %+v", tt.vars, got, tt.want)
		}
		if got := Rule(tt.vars); got.Off == tt.changes || got.Keep != tt.want.Keep {
			t.Errorf("%v: changes %+v", tt.vars, got)
		}
	}
}
