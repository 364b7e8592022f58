package git

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Values of files for readPatches.
const (
	headsOnly = false
	withFiles = true
)

// manyCommits is the number of commits from which readPatches first asks which merges need no search
// for renamed files. For fewer, the search costs less than the processes.
const manyCommits = 50

// readPatches reads commits and passes them to to, in order. With withFiles it also passes the files
// that they changed.
//
// The search for renamed files compares all files that a merge adds to each parent, which costs most
// of the time. So one git process reads the merges that need no search, while another reads all other
// commits.
func (h *traces) readPatches(ctx context.Context, ids []string, to PatchReader, files bool) error {
	options, direct := []string{patchFormat, "-s"}, map[string]bool(nil)
	if files {
		options = []string{patchFormat, "-c", "--combined-all-paths", "--raw", "-p", "--unified=0", "--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/"}
	}
	if files && len(ids) >= manyCommits {
		var err error
		if direct, err = h.mergesWithoutRenames(ctx, ids); err != nil {
			return fmt.Errorf("read patches: %w", err)
		}
	}
	var merges, others []string
	for _, id := range ids {
		if direct[id] {
			merges = append(merges, id)
		} else {
			others = append(others, id)
		}
	}

	read := 0
	err := h.diffTree(ctx, merges, append(slices.Clone(options), "--no-renames"), func(r io.Reader) error {
		fromMerges := &patchParser{in: newRecords(r), to: to}
		err := h.diffTree(ctx, others, append(slices.Clone(options), "-M"), func(r io.Reader) error {
			fromOthers := &patchParser{in: newRecords(r), to: to}
			for ; read < len(ids); read++ {
				p := fromOthers
				if direct[ids[read]] {
					p = fromMerges
				}
				err := p.readCommit()
				if err == io.EOF && p == fromOthers {
					return nil // the process says why it ended early
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
		return ignoreEOF(err) // so does the one that reads merges
	})
	if err == nil && read < len(ids) {
		err = fmt.Errorf("git diff-tree left out %d of %d commits", len(ids)-read, len(ids))
	}
	if err != nil {
		return fmt.Errorf("read patches: %w", err)
	}
	return nil
}

// mergesWithoutRenames returns the merges among commits for which the search for renamed files cannot
// change the patch: each file that differs from all parents stands in all of them under the same path.
func (h *traces) mergesWithoutRenames(ctx context.Context, ids []string) (direct map[string]bool, err error) {
	c := h.git("rev-list", "--no-walk=unsorted", "--merges", "--stdin")
	c.Stdin = strings.NewReader(strings.Join(ids, "\n") + "\n")
	list, err := c.Output(ctx)
	if err != nil {
		return nil, err
	}

	direct = map[string]bool{}
	err = h.diffTree(ctx, strings.Fields(string(list)), []string{"--format=%H", "-c", "--raw", "--no-renames"}, func(r io.Reader) error {
		in, id := bufio.NewReaderSize(r, 64<<10), ""
		for {
			line, err := readLine(in)
			if err != nil {
				return ignoreEOF(err)
			}
			// "::<modes> <oids> MM<tab>path" has a colon and a letter for each parent.
			fields, _, file := strings.Cut(line, "\t")
			switch {
			case file && strings.Trim(fields[strings.LastIndexByte(fields, ' ')+1:], "M") != "":
				delete(direct, id)
			case !file && line != "":
				id = line
				direct[id] = true
			}
		}
	})
	return direct, err
}

// diffTree passes to read what git diff-tree prints for commits. It starts no process for no commits.
func (h *traces) diffTree(ctx context.Context, ids, options []string, read func(io.Reader) error) error {
	if len(ids) == 0 {
		return read(strings.NewReader(""))
	}
	c := h.git("diff-tree", "--stdin", "--always", "--root", "-r", "--no-color")
	c.Args = append(c.Args, options...)
	c.Stdin = strings.NewReader(strings.Join(ids, "\n") + "\n")
	c.Timeout, c.Limit = patchTime, patchBytes
	return c.Stream(ctx, read)
}
