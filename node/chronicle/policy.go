package chronicle

import (
	"time"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/config"
)

// Environment variables of the audit.
const (
	auditVariable     = "SOURCEBOT_EE_AUDIT_LOGGING_ENABLED"
	auditDaysVariable = "SOURCEBOT_EE_AUDIT_RETENTION_DAYS"
	queriesVariable   = "SHOAL_AUDIT_QUERIES"
	diskVariable      = "SHOAL_AUDIT_DISK_MB"
)

// Variables looks up environment variables.
type Variables interface {
	// Lookup returns the variable in force.
	Lookup(name string) (text string, ok bool)
	// Flag returns a boolean variable.
	Flag(name string) (value, set bool)
}

// Rule returns how changes are audited, from the variables in force.
func Rule(env Variables) cluster.Audit {
	days := inForce(env, auditDaysVariable, config.AuditDays)
	on, set := env.Flag(auditVariable)
	return cluster.Audit{Off: set && !on, Keep: time.Duration(days) * 24 * time.Hour}
}

// Policy is how accesses are audited.
type Policy struct {
	Off     bool
	Keep    time.Duration // older ones are deleted; 0: kept while there is room
	Disk    int64         // limit in bytes on this node
	Queries config.Queries
}

// PolicyOf returns how accesses are audited, from the variables in force.
func PolicyOf(env Variables) Policy {
	rule, disk := Rule(env), inForce(env, diskVariable, config.AuditDisk)
	return Policy{
		Off: rule.Off || disk == 0, Keep: rule.Keep, Disk: int64(disk) << 20,
		Queries: inForce(env, queriesVariable, config.AuditQueries),
	}
}

// inForce parses a variable. An invalid one gives the default.
func inForce[T any](env Variables, name string, read func(string) (T, error)) T {
	text, _ := env.Lookup(name)
	v, _ := read(text)
	return v
}
