package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/shard/git/run"
)

// followTime is the time limit for one page of a file's history. Git must check each commit, because
// it does not know the names before a rename in advance.
const followTime = 5 * time.Second

// Follow lists the commits that changed the file Path, newest first and through its renames. Paths
// has the name of the file in each commit. Of the query it uses the start and the page, but no
// filter. Like git it follows one name at a time: if branches have the file under two names, it
// misses some changes. When its time is over it returns what it has found, with AtLeast set, as it
// also is if there are more pages.
func (h *logs) Follow(ctx context.Context, q LogQuery) (LogPage, error) {
	revision, err := q.revision()
	if err != nil {
		return LogPage{}, err
	}
	path, err := cleanPath(q.Path)
	if err != nil {
		return LogPage{}, err
	}
	if path == "" {
		return LogPage{}, fmt.Errorf("the root is followed: %w", ErrIsDir)
	}

	s, err := h.refs(ctx)
	if err != nil {
		return LogPage{}, err
	}

	key := fmt.Sprint(h.dir, "\x00follow\x00", revision, "\x00", path, "\x00", q.Skip, q.Limit)
	page, err := h.pages.Do(ctx, h.tasks, key, func(p LogPage) int64 { return p.size() }, func(ctx context.Context) (LogPage, error) {
		return h.followFile(ctx, revision, path, q.Skip, q.Limit)
	})
	if err != nil {
		return LogPage{}, fmt.Errorf("follow a file: %w", err)
	}

	return page.withRefs(s), nil
}

// followFile is Follow after the checks of its arguments.
func (h *logs) followFile(ctx context.Context, revision, path string, skip, limit int) (page LogPage, err error) {
	limited, cancel := context.WithTimeout(ctx, followTime)
	defer cancel()

	// Git would also skip commits that do not change the file, so skip here. Ask for one commit more
	// than the page has, to learn whether there are older ones.
	c := h.git("log", "-z", "--no-show-signature", "--follow", "--name-status", "--no-ext-diff", "--no-textconv", commitFormat,
		"--max-count="+strconv.Itoa(skip+limit+1), "--end-of-options", revision, "--", path)
	c.Timeout, c.Limit = followTime+time.Second, 4<<30
	err = c.Stream(limited, func(r io.Reader) error {
		in := newRecords(r)
		return readFollowed(in, func(c Commit, name string) error {
			if page.Total++; page.Total > skip+limit {
				page.AtLeast = true
				return run.ErrStop
			}
			if page.Total > skip {
				page.Commits, page.Paths = append(page.Commits, c), append(page.Paths, name)
			} else {
				*in.room = answerTexts // the page does not have this commit
			}
			return nil
		})
	})

	// If followTime is over, but not the time of the caller, return what was found.
	if limited.Err() != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		page.AtLeast, err = true, nil
	}
	return page, err
}

// readFollowed parses the output of git log --follow: for each commit the fields of commitFormat,
// and what happened to the file.
//
//	<fields> NEWLINE M NUL name NUL                 or A, D, T
//	<fields> NEWLINE R095 NUL old NUL new NUL       or C
func readFollowed(in *records, use func(c Commit, name string) error) error {
	for {
		c, err := in.readCommit()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}

		status, err := in.readInnerField(maxField)
		if err != nil {
			return err
		}
		if len(status) < 2 || status[0] != '\n' {
			return fmt.Errorf("git log said %.80q", status)
		}

		// The second name of a rename is the one in the commit. Before it, git follows the first.
		name, err := in.readText(maxPath)
		if err == nil && strings.IndexByte("RC", status[1]) >= 0 {
			name, err = in.readText(maxPath)
		}
		if err != nil {
			return err
		}
		if err := use(c, name); err != nil {
			return err
		}
	}
}
