package file

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Formats has the versions that a program reads and writes, by kind of file.
type Formats [KindChanges + 1]Format

// Format is the range of versions of one kind of file. A release also reads the version of the
// release before, so such files can be searched until they are rebuilt.
type Format struct {
	Oldest, Newest uint32 // versions that the program reads
	Level          uint64 // level of the catalog from which on Newest is written; below it the version before is written
}

// Release has the formats of this program. CONTRIBUTING says how to change one.
var Release = Formats{
	KindShard:   {3, 3, 1},
	KindDead:    {2, 2, 1},
	KindSymbols: {7, 8, 1},
	KindChanges: {1, 1, 1},
}

// Versions is a version for each kind of file.
type Versions [KindChanges + 1]uint32

// String returns the versions in the form "3.2.7".
func (v Versions) String() string {
	return fmt.Sprintf("%d.%d.%d", v[KindShard], v[KindDead], v[KindSymbols])
}

// Written returns the versions to write at a level of the catalog. The level ensures that no node
// writes a file that another member cannot read.
func (f *Formats) Written(level uint64) (v Versions) {
	for kind, row := range f {
		if v[kind] = row.Newest; level < row.Level {
			v[kind] = max(row.Oldest, row.Newest-1)
		}
	}
	return v
}

// The two kinds of a *VersionError. Neither means damage: the bytes are those that were written.
var (
	ErrOlder = errors.New("an older format than this version of shoal reads")
	ErrNewer = errors.New("written by a newer version of shoal")
)

// VersionError says that the program cannot read the format of a file.
type VersionError struct {
	File    string
	Version uint32 // version of the file
	Format  Format // versions that the program knows
}

func (e *VersionError) Error() string {
	if e.Version > e.Format.Newest {
		return fmt.Sprintf("%s has format %d, and this program reads up to %d: %v. Start that version or a later one on this data directory", e.File, e.Version, e.Format.Newest, ErrNewer)
	}
	return fmt.Sprintf("%s has format %d, and this program reads from %d on: %v. It is made anew", e.File, e.Version, e.Format.Oldest, ErrOlder)
}

// Is makes the error match ErrNewer or ErrOlder.
func (e *VersionError) Is(kind error) bool {
	return kind == ErrNewer && e.Version > e.Format.Newest || kind == ErrOlder && e.Version < e.Format.Oldest
}

// Check returns an error if the program does not read the version of a file, by the first HeadBytes
// bytes. It accepts bytes that are no head.
func (f *Formats) Check(name string, head []byte, kind Kind) error {
	if len(head) < HeadBytes || string(head[:8]) != magicHead {
		return nil
	}
	version := binary.LittleEndian.Uint32(head[8:])
	if row := f[kind]; version < row.Oldest || version > row.Newest {
		return &VersionError{name, version, row}
	}
	return nil
}
