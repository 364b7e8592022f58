package hold

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/clock"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// CopyBeforePublish makes another node copy the files of a generation that is about to be
// published, and returns that node. So the generation survives if this node dies right after it has
// published. The result is "" if no node copies the files in time: the caller publishes without a
// second copy.
func (t *Transfers) CopyBeforePublish(ctx context.Context, repo catalog.RepoID, names []string) (node string) {
	if t.opt.Replicas < 2 || len(names) == 0 {
		return ""
	}
	view := t.cluster.View()
	call := prefetchCall{Names: names, Repo: repo}
	if old := view.Repo(repo); old != nil {
		call.Generation = old.GenerationAt
	}
	in, err := json.Marshal(call)
	if err != nil {
		return ""
	}

	ctx, cancel := context.WithTimeout(ctx, secondTime)
	defer cancel()
	for _, node := range secondCopyNodes(view, repo, names, t.files.Size) {
		if node == t.cluster.Self() || !t.cluster.Alive(node) {
			continue
		}
		// One node with all files is enough.
		if err = t.askToPrefetch(ctx, node, in); err == nil {
			return node
		}
		t.opt.Log.Warn("a second copy could not be made before publishing", "repo", repo, "node", node, "err", err)
	}
	return ""
}

// askToPrefetch asks a node to copy files, and gives up when the node dies: a dead node would delay the
// publication until the timeout.
func (t *Transfers) askToPrefetch(ctx context.Context, node string, in []byte) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer cancel(nil)

	// The call itself does not notice that the other node has died.
	watch.Go(func() {
		for clock.Wait(ctx, time.Second) {
			if !t.cluster.Alive(node) {
				cancel(errors.New("the node cannot be reached any more"))
			}
		}
	})

	_, err := t.calls.Call(ctx, node, MethodPrefetch, in)
	return err
}

// secondCopyNodes returns the nodes to ask for a second copy: those that should have the repository,
// and those that have some of the files already. Nodes with most of the bytes come first. After a
// push, they have the pack and copy only the small new files.
func secondCopyNodes(view *catalog.View, id catalog.RepoID, names []string, size func(name string) int64) []string {
	ids, held := RepoTargets(view, id), map[string]int64{}
	for _, name := range names {
		file, _, _ := strings.Cut(name, ".")
		for _, node := range view.Holders(catalog.ShardKey(file)) {
			if held[node] == 0 && !slices.Contains(ids, node) && view.Member(node).State == catalog.MemberAlive {
				ids = append(ids, node)
			}
			held[node] += size(name)
		}
	}

	// Sort by bytes, because bytes must be copied.
	slices.SortStableFunc(ids, func(a, b string) int { return cmp.Compare(held[b], held[a]) })
	return ids
}
