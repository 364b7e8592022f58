package chronicle

import (
	"time"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/config"
)

// The variables of the audit.
const (
	auditVariable     = "SOURCEBOT_EE_AUDIT_LOGGING_ENABLED"
	auditDaysVariable = "SOURCEBOT_EE_AUDIT_RETENTION_DAYS"
	queriesVariable   = "SHOAL_AUDIT_QUERIES"
	diskVariable      = "SHOAL_AUDIT_DISK_MB"
)

// Variables is where the audit's variables are looked up.
type Variables interface {
	// Lookup is a variable as it is in force.
	Lookup(name string) (text string, ok bool)
	// Flag is a variable that says true or false.
	Flag(name string) (value, set bool)
}

// Rule is how changes are audited by the variables in force.
func Rule(env Variables) cluster.Audit {
	days := inForce(env, auditDaysVariable, config.AuditDays)
	on, set := env.Flag(auditVariable)
	return cluster.Audit{Off: set && !on, Keep: time.Duration(days) * 24 * time.Hour}
}

// Policy is how accesses are audited.
type Policy struct {
	Off     bool
	Keep    time.Duration // older ones go; 0: as long as there is room
	Disk    int64         // bytes that they may take on this node
	Queries config.Queries
}

// PolicyOf is how accesses are audited by the variables in force.
func PolicyOf(env Variables) Policy {
	rule, disk := Rule(env), inForce(env, diskVariable, config.AuditDisk)
	return Policy{
		Off: rule.Off || disk == 0, Keep: rule.Keep, Disk: int64(disk) << 20,
		Queries: inForce(env, queriesVariable, config.AuditQueries),
	}
}

// inForce is a variable as it is read; one that cannot be read is the usual one.
func inForce[T any](env Variables, name string, read func(string) (T, error)) T {
	text, _ := env.Lookup(name)
	v, _ := read(text)
	return v
}
