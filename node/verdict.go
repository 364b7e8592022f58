package node

import (
	"fmt"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// Verdict says in one sentence which failures the cluster survives now.
type Verdict struct {
	State    VerdictState `json:"state"`
	Sentence string       `json:"sentence"`
}

// VerdictState is a verdict as one word, for scripts.
type VerdictState string

const (
	VerdictGood    VerdictState = "good"    // at least one node may fail
	VerdictSmall   VerdictState = "small"   // no node may fail, and a cluster of this size could not do better
	VerdictWeak    VerdictState = "weak"    // no node may fail, because copies or voters are missing
	VerdictFailing VerdictState = "failing" // changes wait, or searches are incomplete

	VerdictUpgrading VerdictState = "upgrading" // as good or small, but nodes of two versions run
)

// NeedsCare reports whether an operator should look at the cluster.
func (s VerdictState) NeedsCare() bool {
	return s == VerdictWeak || s == VerdictFailing || s == VerdictUpgrading
}

// verdictOf says which failures the cluster survives. It uses only status fields that the viewer
// sees. The faults are those of this node that separate it from the others.
func verdictOf(s *StatusResponse, replicas int, faults ...string) Verdict {
	t := s.Tolerates
	switch {
	case t.Writes < 0 && len(faults) > 0:
		return Verdict{VerdictFailing, "Reads work, changes wait: " + strings.Join(faults, "; ") + "."}
	case len(s.Members) == 0:
		return Verdict{VerdictFailing, "This node is not part of a cluster yet; its log says what it waits for."}
	case t.Writes < 0:
		return Verdict{VerdictFailing, "Reads work, changes wait: most voters do not answer. `shoal recover` brings back a cluster that lost them for good."}
	case t.Searches != Untold && t.Searches < 0:
		return Verdict{VerdictFailing, catalog.Counted(s.Placement.NoLiveCopy, "repository has", "repositories have") +
			" no live copy: searches lack them until a node comes back or they are indexed again."}
	}

	// Voters only help from three nodes on, copies from two.
	size := len(s.Members)
	stops, lacks := t.Writes == 0, t.Searches == 0
	if missing := missingParts(s, stops && size >= 3, lacks && min(replicas, size) > 1); len(missing) > 0 {
		return Verdict{VerdictWeak, failureEffect(t, stops, lacks) + ": " + strings.Join(missing, "; ") + "."}
	}

	switch {
	case size <= 1:
		return Verdict{VerdictSmall, "One node: it must not fail."}
	case stops || lacks:
		return Verdict{VerdictSmall, failureEffect(t, stops, lacks) + "; " + smallClusterAdvice(stops && size < 3, lacks) + "."}
	}
	return Verdict{VerdictGood, failureEffect(t, false, false) + "."}
}

// With adds problems to a verdict, unless its state already says more important things.
func (v Verdict) With(care ...string) Verdict {
	if len(care) == 0 || v.State == VerdictWeak || v.State == VerdictFailing {
		return v
	}
	return Verdict{VerdictWeak, strings.TrimSuffix(v.Sentence, ".") + "; " + strings.Join(care, "; ") + "."}
}

// upgrading adds to a verdict that nodes of several versions run; "" adds nothing. No node is missing
// then, so the upgrade may go on.
func (v Verdict) upgrading(versions string) Verdict {
	if versions == "" || v.State.NeedsCare() {
		return v
	}
	return Verdict{VerdictUpgrading, strings.TrimSuffix(v.Sentence, ".") + "; " + versions + "."}
}

// missingParts names what the cluster lacks now. fewVoters and fewCopies report that no further
// node may fail for lack of them.
func missingParts(s *StatusResponse, fewVoters, fewCopies bool) (out []string) {
	voters, dead, away := 0, 0, 0
	for _, m := range s.Members {
		silent := m.Health != "alive"
		if silent {
			away++
		}
		if m.Role != "nonvoter" {
			voters++
			if silent {
				dead++
			}
		}
	}

	// Report a dead voter even while enough other voters live.
	switch {
	case dead > 0 && len(s.Members) >= 3:
		out = append(out, fmt.Sprintf("%d of %d voters %s", dead, voters, silentNodesText(dead)))
	case fewVoters:
		out = append(out, fmt.Sprintf("%s of %d nodes", catalog.Counted(voters, "voter", "voters"), len(s.Members)))
	}

	switch few := s.Placement.UnderReplicated; {
	case few > 0:
		out = append(out, catalog.Counted(few, "repository has", "repositories have")+" fewer copies than wanted")
	case fewCopies && away > 0:
		out = append(out, fmt.Sprintf("%d of %d nodes %s", away, len(s.Members), silentNodesText(away)))
	case fewCopies:
		out = append(out, "not everything has a second copy")
	}
	return out
}

func silentNodesText(n int) string {
	if n == 1 {
		return "does not answer"
	}
	return "do not answer"
}

// failureEffect returns a sentence that says how many nodes may fail, or what the failure of one
// would break. stops says that changes would wait, lacks that searches would be incomplete.
func failureEffect(t Tolerance, stops, lacks bool) string {
	switch {
	case stops && lacks:
		return "The failure of a node would make changes wait and searches incomplete"
	case stops && t.Searches != Untold:
		return fmt.Sprintf("Any %s may fail now and searches stay complete, but changes would wait for it", countedNodes(int(t.Searches)))
	case stops:
		return "The failure of a node would make changes wait"
	case lacks:
		return "The failure of a node would make searches incomplete"
	case t.Searches == Untold:
		return fmt.Sprintf("Any %s may fail now; changes go on", countedNodes(t.Writes))
	}
	// The sentence promises both, so the smaller number counts.
	return fmt.Sprintf("Any %s may fail now; searches stay complete", countedNodes(min(int(t.Searches), t.Writes)))
}

// smallClusterAdvice says how many nodes or copies a cluster needs to survive the failure of one
// node.
func smallClusterAdvice(fewNodes, lacks bool) string {
	var out []string
	if fewNodes {
		out = append(out, "changes survive one with three nodes")
	}
	if lacks {
		out = append(out, "searches survive one with two copies of everything")
	}
	return strings.Join(out, ", ")
}

func countedNodes(n int) string { return catalog.Counted(n, "node", "nodes") }
