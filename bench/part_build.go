package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// partBuild compares the cost of indexing L.
func partBuild(ctx context.Context, r *run) (*Part, error) {
	p := &Part{Title: "Building the index of L, no symbols", Columns: []string{"engine", "CPU", "wall", "wall / CPU", "peak memory", "on disk", "disk / text"}}
	tree, err := r.corpora.linuxTree(ctx)
	if err != nil {
		return nil, err
	}

	text, err := textBytes(ctx, tree)
	if err != nil {
		return nil, err
	}

	repo, err := r.corpora.largeRepository(ctx)
	if err != nil {
		return nil, err
	}

	if _, _, err := r.cindex(ctx, tree); err != nil { // to fill the page cache
		return nil, err
	}
	peer, index, err := r.cindex(ctx, tree)
	if err != nil {
		return nil, err
	}

	info, err := os.Stat(index)
	if err != nil {
		return nil, err
	}

	// Stop the node of another part, which would slow down the build.
	if r.large != nil {
		r.close()
		r.large = nil
	}

	s, b, err := r.index(ctx, "L", "off", 1, map[string]connection{"L": {"type": "git", "url": "file://" + repo}})
	if err != nil {
		return nil, err
	}

	r.large = s

	cpu := b.own + b.git
	share := func(n int64) ratio { return ratio(float64(n) / float64(text)) }
	p.row("cindex (from the work tree, no content stored)", peer.CPU, peer.Wall, float64(peer.Wall)/float64(peer.CPU), bytesize(peer.PeakBytes), bytesize(info.Size()), share(info.Size()))
	p.row("Shoal (from git, content stored)", cpu, b.wall, float64(b.wall)/float64(cpu), bytesize(b.peak), bytesize(b.disk), share(b.disk))
	p.note("Text: %s in files of at most 2 MiB. Shoal's CPU: %s of the node, %s of git.", cell(bytesize(text)), cell(b.own), cell(b.git))
	p.note("CPU: %.3g × cindex (target 0.75). Wall: %.3g × CPU (target 0.6). Peak: %s (target 400 MB). Disk: %.3g × text (target 0.65).",
		float64(cpu)/float64(peer.CPU), float64(b.wall)/float64(cpu), cell(bytesize(b.peak)), float64(b.disk)/float64(text))

	if isInstalled("zoekt-git-index") {
		dir := filepath.Join(r.Dir, "zoekt")
		z, err := measure(ctx, r.Dir, nil, "zoekt-git-index", "-disable_ctags", "-index", dir, repo)
		if err != nil {
			return nil, err
		}

		p.row("zoekt", z.CPU, z.Wall, float64(z.Wall)/float64(z.CPU), bytesize(z.PeakBytes), "", "")
	}
	return p, nil
}

// partChange measures the time from a push of one changed file until a search finds it.
func partChange(ctx context.Context, r *run) (*Part, error) {
	p := &Part{Title: "One changed file in L, from push to searchable", Columns: []string{"round", "time", "CPU of the node", "CPU of git", "bytes written"}}
	_, s, err := r.treeAndNode(ctx)
	if err != nil {
		return nil, err
	}

	repo, err := r.corpora.largeRepository(ctx)
	if err != nil {
		return nil, err
	}

	var list []struct {
		RepoID int
	}
	if err := s.get(ctx, "/api/repos", &list); err != nil || len(list) == 0 {
		return nil, fmt.Errorf("list repositories: %d, %w", len(list), err)
	}

	// Restore this commit at the end, because other parts search L.
	original, err := gitIn(ctx, repo, nil, nil, "rev-parse", "main")
	if err != nil {
		return nil, err
	}

	for round := range 3 {
		before, err := s.usage()
		if err != nil {
			return nil, err
		}

		took, err := s.findChange(ctx, repo, list[0].RepoID, round)
		if err != nil {
			return nil, err
		}

		after, err := s.usage()
		if err != nil {
			return nil, err
		}

		p.row(round+1, took, after.own-before.own, after.git-before.git, fmt.Sprintf("%d", after.disk-before.disk))
	}

	p.note("Target: at most 2 s, CPU at most 1 s. The searches that wait for the line are in the node's CPU.")
	_, err = gitIn(ctx, repo, nil, nil, "update-ref", "refs/heads/main", original)
	return p, err
}

// spent is what a node has used since its start, and the size of its shards.
type spent struct {
	own, git time.Duration // CPU of the node, and of git below it
	disk     int64         // bytes
}

func (s *server) usage() (now spent, err error) {
	if now.own, now.git, err = procUsage(s.cmd.Process.Pid); err != nil {
		return spent{}, err
	}
	now.disk, err = s.diskBytes("shards")
	return now, err
}

// findChange commits a new line, asks for a re-index, and returns the time from then until a search finds
// the line.
func (s *server) findChange(ctx context.Context, repo string, id, round int) (time.Duration, error) {
	word := fmt.Sprintf("changed_line_%d_%d", time.Now().Unix(), round)
	if err := changeOneFile(ctx, repo, "kernel/fork.c", "/* "+word+" */"); err != nil {
		return 0, err
	}

	start := time.Now()
	if err := s.post(ctx, fmt.Sprintf("/api/repos/%d/reindex", id), []byte("{}"), nil); err != nil {
		return 0, err
	}
	err := poll(ctx, time.Minute, 2*time.Millisecond, "the changed line", func() bool {
		a, _, err := s.search(ctx, Query{Text: word}.body(1, countShown))
		return err == nil && a.Stats.FileCount == 1
	})
	return time.Since(start), err
}

// partStart measures a start with L and M indexed.
func partStart(ctx context.Context, r *run) (*Part, error) {
	p := &Part{Title: "Start with L and M indexed", Columns: []string{"start", "process start to ready", "resident", "not backed by files"}}
	repo, err := r.corpora.largeRepository(ctx)
	if err != nil {
		return nil, err
	}

	root, repos, err := r.corpora.manyRepositories(ctx)
	if err != nil {
		return nil, err
	}

	s, _, err := r.index(ctx, "LM", "off", len(repos)+1, map[string]connection{"L": {"type": "git", "url": "file://" + repo}, "M": {"type": "git", "url": "file://" + root + "/*"}})
	if err != nil {
		return nil, err
	}

	if err := s.waitIdle(ctx); err != nil {
		return nil, err
	}

	for i := range 3 {
		if err := s.stop(); err != nil {
			return nil, err
		}
		if s, err = serve(ctx, r.Shoal, s.dir, filepath.Join(r.Dir, "LM.json"), "off"); err != nil {
			return nil, err
		}

		if a, _, err := s.search(ctx, Query{Text: "mutex_lock_interruptible"}.body(10, countShown)); err != nil || a.Stats.FileCount == 0 {
			return nil, fmt.Errorf("first search after the start: %d files, %w", a.Stats.FileCount, err)
		}
		_, resident, anonymous, err := procMemory(s.cmd.Process.Pid)
		if err != nil {
			return nil, err
		}

		p.row(i+1, s.ready, bytesize(resident), bytesize(anonymous))
	}

	p.note("Target: at most 1 s, at most 150 MB beyond mapped files.")
	return p, s.stop()
}
