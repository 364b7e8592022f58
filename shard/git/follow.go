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

// followTime is how long the history of a file is followed for one page: each commit
// of the repository has to be looked at, since the names before a rename are not known.
const followTime = 5 * time.Second

// Follow lists the commits that changed the file Path, newest first and through its
// renames, with the name that it had in each in Paths. Of the question it takes what
// tells where to look and which page is wanted, and no filter. It goes by one name at a time,
// as git does: of branches on which the file has two names at the same time some
// changes are missed. What takes too long ends with what was found until then,
// AtLeast set, as it is where there are more pages.
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

// followFile is Follow of what is checked.
func (h *logs) followFile(ctx context.Context, revision, path string, skip, limit int) (page LogPage, err error) {
	looked, cancel := context.WithTimeout(ctx, followTime)
	defer cancel()

	// Git would count the commits between those of the file as skipped, so that is done
	// here. One more than the page is asked for, which tells whether there are others.
	c := h.git("log", "-z", "--no-show-signature", "--follow", "--name-status", "--no-ext-diff", "--no-textconv", commitFormat,
		"--max-count="+strconv.Itoa(skip+limit+1), "--end-of-options", revision, "--", path)
	c.Timeout, c.Limit = followTime+time.Second, 4<<30
	err = c.Stream(looked, func(r io.Reader) error {
		in := newRecords(r)
		return readFollowed(in, func(c Commit, name string) error {
			if page.Total++; page.Total > skip+limit {
				page.AtLeast = true
				return run.ErrStop
			}
			if page.Total > skip {
				page.Commits, page.Paths = append(page.Commits, c), append(page.Paths, name)
			} else {
				*in.room = answerTexts // the page does not have it
			}
			return nil
		})
	})

	// The time for looking was up, not the caller's: what was found until then is an answer.
	if looked.Err() != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		page.AtLeast, err = true, nil
	}
	return page, err
}

// readFollowed parses what git log --follow prints: of each commit the fields of
// commitFormat, and what happened to the one file.
//
//	<fields> NEWLINE M NUL name NUL                 or A, D, T
//	<fields> NEWLINE R095 NUL old NUL new NUL       or C
func readFollowed(in *records, use func(c Commit, name string) error) error {
	for {
		c, err := in.commit()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}

		status, err := in.part(maxField)
		if err != nil {
			return err
		}
		if len(status) < 2 || status[0] != '\n' {
			return fmt.Errorf("git log said %.80q", status)
		}

		// Of two names the second is that of the commit; the first is followed from there on.
		name, err := in.text(maxPath)
		if err == nil && strings.IndexByte("RC", status[1]) >= 0 {
			name, err = in.text(maxPath)
		}
		if err != nil {
			return err
		}
		if err := use(c, name); err != nil {
			return err
		}
	}
}
