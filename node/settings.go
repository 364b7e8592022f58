package node

import (
	"slices"
	"strconv"
	"strings"

	"github.com/shoalsearch/shoal/glob"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/search"
)

// alwaysPatterns is ALWAYS_INDEX_FILE_PATTERNS: globs of paths that the
// limits of size and trigrams do not concern.
func (n *Node) alwaysPatterns() []string {
	text, _ := n.env.Lookup("ALWAYS_INDEX_FILE_PATTERNS")
	return slices.DeleteFunc(glob.Split(text), func(p string) bool { return p == "" })
}

// defaultMatches is the bound of a search that names none.
func (n *Node) defaultMatches() int {
	text, _ := n.env.Lookup("DEFAULT_MAX_MATCH_COUNT")
	if m, err := strconv.Atoi(strings.TrimSpace(text)); err == nil && m >= 1 {
		return m
	}
	return search.DefaultMatches
}

// OperatorBySocket reports whether who may open the socket in the data
// directory is the operator. SHOAL_OPERATOR_SOCKET turns that off, from when on
// an owner can come in without it.
func (n *Node) OperatorBySocket() bool {
	on, set := n.env.Flag(account.OperatorVariable)
	return on || !set || !account.HasOwner(n.cluster.View(), n.opt.Now())
}

// AnonymousAccess reports whether a request without a credential is served:
// FORCE_ENABLE_ANONYMOUS_ACCESS decides, without it the deprecated
// settings.enablePublicAccess.
func (n *Node) AnonymousAccess() bool {
	if value, set := n.env.Flag("FORCE_ENABLE_ANONYMOUS_ACCESS"); set {
		return value
	}
	return n.cluster.View().File().Settings.EnablePublicAccess
}
