package git

// A part of a difference is read from the whole, because only the whole list tells which file was
// renamed to which. So git writes all patches up to the last one of the part, and the patches
// before it are skipped. If blanks are ignored it writes all patches, since only a patch shows that
// a file belongs to the changes.

// place returns the index of the present file among the files that count.
func (d *diffReader) place() int { return d.file - len(d.blank) }

// isInPart reports whether the hunks of the present file are requested.
func (d *diffReader) isInPart() bool {
	return d.o.Limit == 0 || d.place() >= d.o.Skip && d.place()-d.o.Skip < d.o.Limit
}

// partIsRead reports whether nothing after the present file is requested.
func (d *diffReader) partIsRead() bool {
	return d.o.Limit > 0 && !d.o.IgnoreBlanks && d.place() >= d.o.Skip && !d.isInPart()
}

// takePart counts the files, and keeps only the requested part.
func (d *diffReader) takePart() {
	// Files that were not read in time may differ only in blanks, and do not count.
	if d.diff.late && d.o.Limit > 0 && d.o.IgnoreBlanks {
		d.diff.Files = d.diff.Files[:min(max(0, d.place()), len(d.diff.Files))]
	}
	d.diff.Total = len(d.diff.Files)
	if d.o.Limit == 0 {
		return
	}

	d.diff.AtLeast = d.diff.AtLeast || d.diff.late
	from := min(d.o.Skip, d.diff.Total)
	d.diff.Files = d.diff.Files[from:min(from+d.o.Limit, d.diff.Total)]

	// Cut says whether the part is complete, whatever is missing elsewhere.
	d.diff.Cut = false
	for i := range d.diff.Files {
		d.diff.Cut = d.diff.Cut || d.diff.Files[i].Cut
	}
}
