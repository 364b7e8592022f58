package chronicle

import (
	"errors"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/node/environ"
)

// The variables of the audit.
const (
	AuditVariable     = "SOURCEBOT_EE_AUDIT_LOGGING_ENABLED"
	AuditDaysVariable = "SOURCEBOT_EE_AUDIT_RETENTION_DAYS"
	QueriesVariable   = "SHOAL_AUDIT_QUERIES"
	DiskVariable      = "SHOAL_AUDIT_DISK_MB"
)

const (
	usualAuditDays = 180
	mostAuditDays  = 36500 // which no duration overflows by
	usualDisk      = 4096  // MB
	mostDisk       = 1 << 30
)

// ParseAuditDays reads AuditDaysVariable: for how many days the audit is kept, 0
// for as long as there is room; "" is 180.
func ParseAuditDays(text string) (days int, err error) {
	return environ.Days(text, usualAuditDays, 0, mostAuditDays)
}

// ParseDisk reads DiskVariable: how many megabytes the accesses of a node may
// take, 0 for none; "" is 4096.
func ParseDisk(text string) (megabytes int, err error) {
	return environ.Number(text, "megabytes", usualDisk, 0, mostDisk)
}

// Queries is how much of what people look for is kept.
type Queries string

// What may be kept of queries.
const (
	NoQueries     Queries = "off"
	HashedQueries Queries = "hash" // equal ones can be told, the text cannot
	WholeQueries  Queries = "full"
)

// ParseQueries reads QueriesVariable; "" is off.
func ParseQueries(text string) (Queries, error) {
	switch q := Queries(strings.ToLower(strings.TrimSpace(text))); q {
	case "":
		return NoQueries, nil
	case NoQueries, HashedQueries, WholeQueries:
		return q, nil
	}
	return "", errors.New("want off, hash or full")
}

// Variables is where the audit's variables are looked up.
type Variables interface {
	// Lookup is a variable as it is in force.
	Lookup(name string) (text string, ok bool)
	// Flag is a variable that says true or false.
	Flag(name string) (value, set bool)
}

// Rule is how changes are audited by the variables in force.
func Rule(env Variables) cluster.Audit {
	days := inForce(env, AuditDaysVariable, ParseAuditDays, usualAuditDays)
	on, set := env.Flag(AuditVariable)
	return cluster.Audit{Off: set && !on, Keep: time.Duration(days) * 24 * time.Hour}
}

// Policy is how accesses are audited.
type Policy struct {
	Off     bool
	Keep    time.Duration // older ones go; 0: as long as there is room
	Disk    int64         // bytes that they may take on this node
	Queries Queries
}

// PolicyOf is how accesses are audited by the variables in force.
func PolicyOf(env Variables) Policy {
	rule, disk := Rule(env), inForce(env, DiskVariable, ParseDisk, usualDisk)
	return Policy{
		Off: rule.Off || disk == 0, Keep: rule.Keep, Disk: int64(disk) << 20,
		Queries: inForce(env, QueriesVariable, ParseQueries, NoQueries),
	}
}

// inForce is a variable as it is read; one that cannot be read counts as the usual.
func inForce[T any](env Variables, name string, parse func(string) (T, error), usual T) T {
	text, _ := env.Lookup(name)
	v, err := parse(text)
	if err != nil {
		return usual
	}
	return v
}
