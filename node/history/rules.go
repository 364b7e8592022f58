package history

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/glob"
	"github.com/shoalsearch/shoal/shard/change"
)

// included is the bound of a repository that a rule includes where histories are off.
var included = change.Bound{Commits: 200_000}

// rules say how far back the commits of each repository are indexed. They are immutable.
type rules struct {
	usual change.Bound // of a repository that no rule names
	of    []catalog.HistoryRule
	globs []glob.Globs
}

// bound returns how far back the commits of a repository are indexed. The newest rule that fits its
// name decides.
func (r *rules) bound(repo string) change.Bound {
	for i := range r.of {
		switch {
		case !r.globs[i].Match(repo):
		case !r.of[i].Include:
			return change.Bound{}
		case r.usual.Off():
			return included
		default:
			return r.usual
		}
	}
	return r.usual
}

// rules returns the rules of a catalog: the same ones as long as nobody changes them.
func (k *Keeper) rules(v *catalog.View) *rules {
	k.mu.Lock()
	if k.asked == v && k.inForce != nil {
		defer k.mu.Unlock()
		return k.inForce
	}
	k.mu.Unlock()
	var of []catalog.HistoryRule
	for _, r := range v.HistoryRulesInOrder() {
		of = append(of, *r)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked = v
	if k.inForce != nil && slices.Equal(k.inForce.of, of) {
		return k.inForce
	}
	k.inForce = &rules{usual: k.d.Bound, of: of}
	for _, r := range of {
		globs, err := glob.Compile(glob.Fold, r.Glob)
		if err != nil { // it was checked before it became a rule
			k.d.Log.Warn("a rule of the index of changes cannot be read", "glob", r.Glob, "err", err)
		}
		k.inForce.globs = append(k.inForce.globs, globs)
	}
	return k.inForce
}

// forget deletes the changes of a repository that is left out.
func (k *Keeper) forget(e *kept, id catalog.RepoID) error {
	e.log.Close()
	k.mu.Lock()
	delete(k.covered, id)
	k.mu.Unlock()
	if err := os.RemoveAll(filepath.Join(k.d.Dir, strconv.FormatUint(uint64(id), 10))); err != nil {
		return fmt.Errorf("index of changes: %w", err)
	}
	return nil
}
