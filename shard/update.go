package shard

import (
	"cmp"
	"context"
	"fmt"
	"math/bits"
	"slices"
)

// Update writes the next generation of the index of src, which has one repository, from old, the
// parts of the current generation. It writes a new shard, the delta, with the blobs that old does
// not have at the same path. For occurrences that are gone it writes .dead files. If many parts are
// small or have many dead documents, it rewrites them: their documents go into the delta, too.
// Documents of parts that are missing or damaged are read again.
//
// For the first generation of a copy of another repository, old has the parts of that repository, as
// [Part.AsCopy] returns them. So a copy costs what it does not have in common.
//
// The returned parts replace all of old; their files are in the set.
//
//	current   s1 {a b c d e}     s2 {f}         a push changes the files b and f
//	next      s1, .dead {b}      s3 {b f}       all documents of s2 are dead, so it is dropped
func (s *Set) Update(ctx context.Context, old []Part, src Source, opt BuildOptions) ([]Built, error) {
	opt = opt.withDefaults()
	repos := src.Repositories()
	if len(repos) != 1 {
		return nil, fmt.Errorf("update shards: %d repositories, want 1", len(repos))
	}

	v, _ := s.Acquire(old)
	defer v.Release()

	u := &update{repo: repos[0], src: src, blobs: src.Blobs(), opt: opt}
	for _, m := range v.members {
		if err := m.ready(); err != nil {
			s.report(m, err)
			continue
		}

		if p := newPrior(m, u.repo.ID); p != nil {
			u.prior = append(u.prior, p)
		}
	}

	// Large parts come first, so that an occurrence in several parts stays in the largest.
	slices.SortStableFunc(u.prior, func(a, b *prior) int { return cmp.Compare(b.text, a.text) })

	// Dropping a part moves its occurrences to other parts or to the delta, after which another
	// part may have to be dropped.
	u.assignOccurrences()
	for u.dropParts() {
		u.assignOccurrences()
	}

	built, err := u.keepParts(s)
	if err != nil {
		return nil, err
	}

	fresh, err := s.Build(ctx, u.deltaSource(), opt)
	if err != nil {
		return nil, err
	}

	built = append(built, fresh...)

	for _, b := range built {
		if err := s.Add(b.Files()...); err != nil {
			return nil, err
		}
	}
	return built, nil
}

// update is one running call of Update.
type update struct {
	repo  Repository
	src   Source
	blobs []Blob
	opt   BuildOptions
	prior []*prior       // the parts that stay
	fresh [][]Occurrence // by blob: the occurrences that no part in prior has
	delta int64          // bytes of the blobs in fresh
}

// prior is a part of the current generation, with the masks of its occurrences in the next one.
type prior struct {
	m           *member
	part        Part
	index       int      // index of the repository in the shard
	next        []uint64 // by occurrence of the shard: its mask in the next generation; 0 means dead
	occurrences int      // number of the repository's occurrences
	alive       int      // number of those that stay alive
	share                // the share of the repository in the file
}

// newPrior returns the part of a repository in a member; nil if there is none.
func newPrior(m *member, repo uint32) *prior {
	for _, p := range m.parts {
		if p.Repo != repo {
			continue
		}
		i, ok := m.sh.repoIndex(p.ownerInShard())
		if !ok || m.repos[i] == nil {
			return nil
		}
		return &prior{m: m, part: p, index: i, share: m.sh.shareOf(i)}
	}
	return nil
}

// occurrenceKey identifies an occurrence of a repository in all generations: a blob at a path.
type occurrenceKey struct {
	path string
	oid  string
}

// assignOccurrences assigns each occurrence of the next generation to the part that already has it,
// otherwise to the delta.
func (u *update) assignOccurrences() {
	holders := u.findHolders()

	u.fresh, u.delta = make([][]Occurrence, len(u.blobs)), 0
	for i, b := range u.blobs {
		for _, o := range b.Occurrences {
			s, ok := holders[occurrenceKey{o.Path, b.OID}]

			if !ok {
				u.fresh[i] = append(u.fresh[i], o)
				continue
			}

			if s.p.next[s.occ] == 0 {
				s.p.alive++
			}
			s.p.next[s.occ] |= o.Mask
		}
		if u.fresh[i] != nil {
			u.delta += b.Size
		}
	}
}

// holder is an occurrence in a part of the current generation.
type holder struct {
	p   *prior
	occ int
}

// findHolders maps each occurrence of the current generation to the first part that has it. It also
// resets want, occurrences and alive of all parts.
func (u *update) findHolders() map[occurrenceKey]holder {
	holders := map[occurrenceKey]holder{}
	for _, p := range u.prior {
		sh := p.m.sh

		p.next, p.occurrences, p.alive = make([]uint64, sh.m.occurs), 0, 0
		for d := range sh.m.documents {
			for o := int(sh.docOccur.At(d)); o < int(sh.docOccur.At(d+1)); o++ {
				if int(sh.occRepo.At(o)) != p.index {
					continue
				}

				p.occurrences++
				key := occurrenceKey{string(sh.path(int(sh.occPath.At(o)))), sh.oid(d)}
				if _, taken := holders[key]; !taken {
					holders[key] = holder{p, o}
				}
			}
		}
	}
	return holders
}

// dropParts drops parts from u.prior, so that their documents go into the delta, and reports
// whether it dropped any. It drops a part with too many dead occurrences, or the smallest parts if
// the repository has too many parts. The parts dropped before a part and the delta have at least a
// quarter of its size, so Update rewrites each byte a logarithmic number of times.
func (u *update) dropParts() bool {
	for i, p := range u.prior {
		if dead := p.occurrences - p.alive; float64(dead) > u.opt.DeadLimit*float64(p.occurrences) {
			u.prior = slices.Delete(u.prior, i, i+1)
			return true
		}
	}

	whole := 0 // parts about as large as a slice, which stay
	for whole < len(u.prior) && u.prior[whole].text >= u.opt.SliceBytes/4 {
		whole++
	}
	if len(u.prior)-whole < u.opt.DeltaLimit {
		return false
	}

	// Drop parts, the smallest first, until few enough are left and the next is more than four
	// times as large as the dropped ones together.
	sum, keep := u.delta, len(u.prior)
	for keep > whole {
		size := u.prior[keep-1].text
		if size > 4*sum && keep-whole <= u.opt.DeltaLimit/2 {
			break
		}
		sum += size
		keep--
	}

	dropped := keep < len(u.prior)
	u.prior = u.prior[:keep]
	return dropped
}

// keepParts writes the .dead files of the parts that stay, and returns these parts. It leaves out a
// part without a live occurrence.
func (u *update) keepParts(s *Set) ([]Built, error) {
	var built []Built
	for _, p := range u.prior {
		if p.alive == 0 {
			continue
		}

		part, err := p.nextPart(s, u.repo)
		if err != nil {
			return nil, err
		}

		// Of another repository's shard count only what this repository has too: the size must not
		// tell of the other one.
		if part.BuiltFor != 0 {
			p.share = p.m.sh.shareWith(func(o int) bool { return p.next[o] != 0 })
		}
		b := p.share.describe(part, p.m.entry.size, p.m.sh.m)
		b.Occurrences = p.alive
		built = append(built, b)
	}
	return built, nil
}

// nextPart returns the part of the next generation. If its masks or revisions differ from those in
// the shard, it writes a .dead file with the bits of sourceBits and the masks of the occurrences
// for which these are wrong.
func (p *prior) nextPart(s *Set, repo Repository) (part Part, err error) {
	part, sh := p.part, p.m.sh

	c := change{shard: sh.f.Name(), repo: repo, from: p.sourceBits()}
	same := true // every mask is the one in the shard
	for o, want := range p.next {
		if int(sh.occRepo.At(o)) != p.index {
			continue
		}

		base := sh.masks.At(int(sh.occMask.At(o)))
		same = same && base == want
		if mapBits(c.from, base) != want {
			c.occurs = append(c.occurs, uint32(o))
			c.masks = append(c.masks, want)
		}
	}

	if same && part.BuiltFor == 0 && slices.EqualFunc(repo.Revisions, sh.m.repos[p.index].Revisions, isSameRevision) {
		part.Dead = FileID{}
		return part, nil
	}

	part.Dead, _, err = c.write(s.dir, s.versions())
	return part, err
}

// isSameRevision reports whether two revisions have the same name, commit and bit.
func isSameRevision(a, b Revision) bool {
	return a.Name == b.Name && a.Commit == b.Commit && a.Bit == b.Bit
}

// sourceBits chooses for each bit of the next generation the bit of the shard that equals it for
// most occurrences. If HEAD was bit 0 of the shard and is bit 1 now, and only three files changed,
// from[1] is 0: three exceptions instead of a mask for every file. noBit means that no occurrence
// has the bit.
func (p *prior) sourceBits() []uint8 {
	sh := p.m.sh

	// Distinct pairs of masks are few: count the occurrences of each.
	type pair struct{ base, want uint64 }
	count := map[pair]int{}
	var bases, wants uint64 // unions of the masks
	for o, want := range p.next {
		if int(sh.occRepo.At(o)) == p.index {
			base := sh.masks.At(int(sh.occMask.At(o)))
			count[pair{base, want}]++
			bases |= base
			wants |= want
		}
	}

	from := make([]uint8, maxRevisions)
	for j := range from {
		from[j] = noBit
		if wants>>j&1 == 0 {
			continue
		}

		// Begin with noBit, which is right for the occurrences that do not have the bit.
		best := 0
		for pr, n := range count {
			if pr.want>>j&1 == 0 {
				best += n
			}
		}

		for b := bases; b != 0; b &= b - 1 {
			i, correct := bits.TrailingZeros64(b), 0
			for pr, n := range count {
				if pr.want>>j&1 == pr.base>>i&1 {
					correct += n
				}
			}

			if correct > best {
				best, from[j] = correct, uint8(i)
			}
		}
	}
	return from
}

// deltaSource returns a source with the occurrences in u.fresh, from which the delta is built.
func (u *update) deltaSource() Source {
	r := &someBlobs{u: u}
	for i, occurrences := range u.fresh {
		if occurrences != nil {
			b := u.blobs[i]
			b.Occurrences = occurrences
			r.blobs = append(r.blobs, b)
			r.index = append(r.index, i)
		}
	}
	return r
}

// someBlobs is a source with some blobs of the source of an update.
type someBlobs struct {
	u     *update
	blobs []Blob
	index []int // by blob: its index in u.blobs
}

func (r *someBlobs) Repositories() []Repository { return []Repository{r.u.repo} }
func (r *someBlobs) Blobs() []Blob              { return r.blobs }

// Read implements Source. r has only some blobs of the source, so their indexes are translated.
func (r *someBlobs) Read(ctx context.Context, want []int, use func(i int, content []byte) error) error {
	all := make([]int, len(want))
	back := make(map[int]int, len(want))
	for k, i := range want {
		all[k] = r.index[i]
		back[r.index[i]] = i
	}
	return r.u.src.Read(ctx, all, func(i int, content []byte) error { return use(back[i], content) })
}
