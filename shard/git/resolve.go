package git

import (
	"context"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/shoalsearch/shoal/shard/git/pack"
)

// refSuffixes matches the suffixes of a ref: parents and ancestors. Suffixes that search or read
// reflogs do not match.
var refSuffixes = regexp.MustCompile(`(?:[~^][0-9]{0,6})+$`)

// Resolve returns the commit id of a ref: HEAD, a branch or tag by short or full name, a full
// commit id, or a prefix of one with at least 4 digits. Suffixes such as ~3 and ^2 may follow. As
// in git, a tag wins over a branch of the same name. An empty ref means HEAD. Git never reads the
// text as an option, and only commits of the mirror are found.
func (b *base) Resolve(ctx context.Context, ref string) (commit string, err error) {
	s, err := b.refs(ctx)
	if err != nil {
		return "", err
	}

	suffix := refSuffixes.FindString(ref)
	base := strings.TrimSuffix(ref, suffix)
	commit = s.commitOf(base)
	if commit != "" && suffix == "" {
		return commit, nil
	}

	// If it names no branch or tag, it must be the beginning of an id.
	if commit == "" {
		if err := checkRef(ref); err != nil {
			return "", err
		}
		if base == "" || base == "HEAD" {
			return "", ErrEmpty
		}
		if len(base) < 4 || len(base) > 64 || countHexDigits(base) != len(base) {
			return "", fmt.Errorf("%q: %w", ref, ErrNoRef)
		}
		commit = base
	}

	// Git gets only an id with the suffixes, never a name.
	name := commit + suffix + "^{commit}"
	commit = ""
	err = b.with(ctx, func(c reader) error {
		// A full id that is in a pack needs no process.
		if suffix == "" && pack.IsID(base) {
			if id, err := hex.DecodeString(base); err == nil {
				if info, ok := c.Packs.Info(id); ok && info.Kind == "commit" {
					commit = strings.ToLower(base)
					return nil
				}
			}
		}

		info, err := c.Info(name)
		if info.Kind == "commit" {
			commit = info.OID
		}
		return err
	})

	if err == nil && commit == "" {
		err = ErrNoRef
	}

	if err != nil {
		return "", fmt.Errorf("%q: %w", ref, err)
	}
	return commit, nil
}

// FullName returns the full name of the branch or tag that a ref names; empty if the ref names a
// commit in another way. For HEAD it is the default branch.
func (b *base) FullName(ctx context.Context, ref string) (string, error) {
	s, err := b.refs(ctx)
	if err != nil {
		return "", err
	}
	return s.fullName(ref), nil
}

// commitOf returns the commit of a branch or tag, by any of its names; empty if there is none.
func (s *refState) commitOf(name string) string {
	switch name {
	case "", "HEAD", "@":
		return s.head
	}
	return s.byName[s.fullName(name)]
}

// fullName returns the full name of a branch or tag, by any of its names; empty if there is none.
func (s *refState) fullName(name string) string {
	switch name {
	case "", "HEAD", "@":
		return s.symref
	}

	// Try the names in git's order.
	for _, full := range []string{name, "refs/" + name, "refs/tags/" + name, "refs/heads/" + name} {
		if s.byName[full] != "" {
			return full
		}
	}
	return ""
}

// checkRef returns an error for a text that git does not allow as the name of a reference, or that
// its revision syntax would take for more than a name.
func checkRef(ref string) error {
	bad := len(ref) > 1024 || strings.HasPrefix(ref, "-") || strings.Contains(ref, "..") || strings.Contains(ref, "@{") ||
		strings.ContainsAny(ref, " :?*[\\\x7f") || strings.Contains(ref, "^{") || !utf8.ValidString(ref)
	for i := range len(ref) {
		bad = bad || ref[i] < ' '
	}
	if bad {
		return fmt.Errorf("%.80q: %w", ref, ErrBadRef)
	}
	return nil
}
