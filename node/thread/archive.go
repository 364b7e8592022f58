package thread

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// endEntry is the last entry of an archive. Its text is how many files no node could give.
const endEntry = "missing"

// ErrArchive says that a file is not what Archive writes, or not all of it.
var ErrArchive = errors.New("this is no whole archive of chats")

// Archive writes the sealed files of all threads as a tar, which Unpack reads.
func (s *Store) Archive(ctx context.Context, w io.Writer) error {
	out, written, missing := tar.NewWriter(w), map[string]bool{}, 0
	for h := range s.d.View().Threads() {
		for _, turn := range filesOf(h) {
			// A fork shares files with the thread that it came from.
			if written[turn.File] {
				continue
			}
			written[turn.File] = true

			sealed, err := s.readSealed(ctx, h.ID, turn.File)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				missing++
				continue
			}
			if err := writeEntry(out, turn.File, sealed); err != nil {
				return err
			}
		}
	}
	return errors.Join(writeEntry(out, endEntry, []byte(strconv.Itoa(missing))), out.Close())
}

func writeEntry(out *tar.Writer, name string, text []byte) error {
	err := out.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(text))})
	if err == nil {
		_, err = out.Write(text)
	}
	return err
}

// Unpack writes the files of an archive where the Store of dir looks for them. It returns how many
// there are, and how many were missing when the archive was made. Without a dir it only checks.
func Unpack(r io.Reader, dir string) (files, missing int, err error) {
	in, store := tar.NewReader(r), &Store{d: Deps{Dir: dir}}
	for {
		head, err := in.Next()
		if err != nil {
			return files, 0, fmt.Errorf("%w: %w", ErrArchive, err)
		}
		text, err := io.ReadAll(io.LimitReader(in, maxFile+1))
		if err != nil {
			return files, 0, fmt.Errorf("%w: %w", ErrArchive, err)
		}

		if head.Name == endEntry {
			missing, err := strconv.Atoi(string(bytes.TrimSpace(text)))
			if err != nil {
				return files, 0, fmt.Errorf("%w: %w", ErrArchive, err)
			}
			return files, missing, nil
		}

		// The name is the hash of the bytes, so it leads to no other place.
		if nameOf(text) != head.Name {
			return files, 0, fmt.Errorf("%w: %q is damaged", ErrArchive, head.Name)
		}
		if dir != "" {
			if err := store.writeFile(head.Name, text); err != nil {
				return files, 0, err
			}
		}
		files++
	}
}
