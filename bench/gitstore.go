package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// gitIn runs git in a repository with the input in (nil for none), and returns its output without blanks
// at both ends.
func gitIn(ctx context.Context, dir string, env []string, in io.Reader, args ...string) (string, error) {
	// Set a name and an address, because git may have none on this machine.
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=bench", "GIT_AUTHOR_EMAIL=bench@localhost", "GIT_COMMITTER_NAME=bench", "GIT_COMMITTER_EMAIL=bench@localhost")
	cmd.Env = append(cmd.Env, env...)

	cmd.Stdin = in
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(errs.String()))
	}
	return strings.TrimSpace(string(out)), nil
}

func fastImport(ctx context.Context, dir string, stream io.Reader) error {
	_, err := gitIn(ctx, dir, nil, stream, "fast-import", "--quiet")
	return err
}

// commitEntries makes main a commit of tree entries in the format of `git ls-tree -z`. index is the path
// of a temporary index, because the bare repository has none.
func commitEntries(ctx context.Context, dir, index string, entries io.Reader) error {
	env := []string{"GIT_INDEX_FILE=" + index}
	if _, err := gitIn(ctx, dir, env, entries, "update-index", "-z", "--index-info"); err != nil {
		return err
	}

	tree, err := gitIn(ctx, dir, env, nil, "write-tree")
	if err != nil {
		return err
	}

	commit, err := gitIn(ctx, dir, nil, strings.NewReader("corpus\n"), "commit-tree", tree)
	if err != nil {
		return err
	}

	_, err = gitIn(ctx, dir, nil, nil, "update-ref", "refs/heads/main", commit)
	return err
}

// changeOneFile commits a new line at the end of a file of a bare repository.
func changeOneFile(ctx context.Context, dir, path, line string) error {
	head, err := gitIn(ctx, dir, nil, nil, "rev-parse", "HEAD")
	if err != nil {
		return err
	}

	old, err := gitIn(ctx, dir, nil, nil, "cat-file", "blob", "HEAD:"+path)
	if err != nil {
		return err
	}

	// With a fixed time the commit is the same on every machine.
	text := old + "\n" + line + "\n"
	stream := fmt.Sprintf("commit refs/heads/main\ncommitter bench <bench@localhost> 1700000100 +0000\ndata 6\nchange\nfrom %s\nM 100644 inline %s\ndata %d\n%s\n", head, path, len(text), text)
	return fastImport(ctx, dir, strings.NewReader(stream))
}
