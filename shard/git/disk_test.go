package git

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// Remotes that send without end fill only a part of the disk, in any number, and whenever they
// begin and end.
func TestDiskRoom_concurrentFetchesLeaveFreeSpace(t *testing.T) {
	t.Parallel()
	const disk = 1 << 40
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		var shared diskRoom
		free := int64(disk)
		grants, wrote, done := map[string]int64{}, map[string]int64{}, map[string]func(){}

		for step := range 100 {
			dir := fmt.Sprint("mirror", r.IntN(12))
			switch _, runs := grants[dir]; {
			case !runs:
				grants[dir], done[dir] = shared.grant(dir, free, func(dir string) int64 { return wrote[dir] })
			case r.IntN(4) == 0: // the fetch ends, and its files are removed
				done[dir]()
				free += wrote[dir]
				delete(grants, dir)
				delete(wrote, dir)
			default:
				more := r.Int64N(grants[dir] - wrote[dir] + 1)
				if r.IntN(2) == 0 {
					more = grants[dir] - wrote[dir]
				}
				wrote[dir] += more
				free -= more
			}
			if free < disk/100 {
				t.Fatalf("seed %d, step %d: %d fetches left %d MB of %d", seed, step, len(grants), free>>20, disk>>20)
			}
		}
	}
}

func TestDiskRoom_grantsAQuarterOfTheFreeSpaceToEachFetch(t *testing.T) {
	t.Parallel()
	var shared diskRoom
	none := func(string) int64 { return 0 }
	first, done := shared.grant("a", 64<<20, none)
	second, _ := shared.grant("b", 64<<20, none)
	if first != 16<<20 || second != 12<<20 {
		t.Errorf("grants of 64 MB are %d and %d MB, want 16 and 12", first>>20, second>>20)
	}

	done()
	if again, _ := shared.grant("c", 64<<20, none); again != 13<<20 {
		t.Errorf("after the end of a fetch %d MB are granted, want 13", again>>20)
	}
	if least, _ := shared.grant("d", 1, none); least != minGrant {
		t.Errorf("on a disk that is almost full %d bytes are granted, want %d", least, minGrant)
	}
}
