package git

// DiffOptions.Skip and Limit select a part of a difference. Git must compare all files to find
// renames, so diffReader skips the patches before the part, and stops after it. If blanks are
// ignored it reads all patches, because only the patch of a file shows whether the file has
// changes.

// indexInPart returns the index of the current file among the files that do not differ only in
// blanks.
func (d *diffReader) indexInPart() int { return d.file - len(d.blank) }

// isInPart reports whether the current file is in the requested part.
func (d *diffReader) isInPart() bool {
	return d.o.Limit == 0 || d.indexInPart() >= d.o.Skip && d.indexInPart()-d.o.Skip < d.o.Limit
}

// isPastPart reports whether the current file is after the requested part, so that reading can
// stop.
func (d *diffReader) isPastPart() bool {
	return d.o.Limit > 0 && !d.o.IgnoreBlanks && d.indexInPart() >= d.o.Skip && !d.isInPart()
}

// takePart counts the files, and removes those that are not in the requested part.
func (d *diffReader) takePart() {
	// Do not count files that were not read in time, because they may differ only in blanks.
	if d.diff.late && d.o.Limit > 0 && d.o.IgnoreBlanks {
		d.diff.Files = d.diff.Files[:min(max(0, d.indexInPart()), len(d.diff.Files))]
	}
	d.diff.Total = len(d.diff.Files)
	if d.o.Limit == 0 {
		return
	}

	d.diff.AtLeast = d.diff.AtLeast || d.diff.late
	from := min(d.o.Skip, d.diff.Total)
	d.diff.Files = d.diff.Files[from:min(from+d.o.Limit, d.diff.Total)]

	// Cut must say whether the part is complete.
	d.diff.Cut = false
	for i := range d.diff.Files {
		d.diff.Cut = d.diff.Cut || d.diff.Files[i].Cut
	}
}
