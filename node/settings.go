package node

import (
	"slices"
	"strconv"
	"strings"

	"github.com/shoalsearch/shoal/glob"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/search"
)

// alwaysPatterns returns ALWAYS_INDEX_FILE_PATTERNS: globs of paths that are indexed whatever
// their size and number of trigrams.
func (n *Node) alwaysPatterns() []string {
	text, _ := n.env.Lookup("ALWAYS_INDEX_FILE_PATTERNS")
	return slices.DeleteFunc(glob.Split(text), func(p string) bool { return p == "" })
}

// defaultMatches returns the match limit of a search that sets none.
func (n *Node) defaultMatches() int {
	text, _ := n.env.Lookup("DEFAULT_MAX_MATCH_COUNT")
	if m, err := strconv.Atoi(strings.TrimSpace(text)); err == nil && m >= 1 {
		return m
	}
	return search.DefaultMatches
}

// OperatorBySocket reports whether a caller on the socket in the data directory counts as the
// operator. SHOAL_OPERATOR_SOCKET=false turns that off once an owner can sign in without the
// socket.
func (n *Node) OperatorBySocket() bool {
	on, set := n.env.Flag(account.OperatorVariable)
	return on || !set || !account.HasOwner(n.cluster.View(), n.opt.Now())
}

// AnonymousAccess reports whether requests without a credential are served.
// FORCE_ENABLE_ANONYMOUS_ACCESS decides; if unset, the deprecated settings.enablePublicAccess
// does.
func (n *Node) AnonymousAccess() bool {
	if value, set := n.env.Flag("FORCE_ENABLE_ANONYMOUS_ACCESS"); set {
		return value
	}
	return n.cluster.View().File().Settings.EnablePublicAccess
}
