package git

// A part of the files of a difference is read out of the whole: only the whole list
// tells which file was renamed to which. So git writes all patches up to the last of the
// part, of which those before it are passed over. Where blanks do not count it writes
// all of them, since only a patch tells that a file is in the list of changes.

// place is where the file whose patch is read stands among those that are told of.
func (d *diffReader) place() int { return d.file - len(d.blank) }

// isInPart reports whether the hunks of the file that is read are asked for.
func (d *diffReader) isInPart() bool {
	return d.o.Limit == 0 || d.place() >= d.o.Skip && d.place()-d.o.Skip < d.o.Limit
}

// partIsRead reports whether nothing that follows is asked for.
func (d *diffReader) partIsRead() bool {
	return d.o.Limit > 0 && !d.o.IgnoreBlanks && d.place() >= d.o.Skip && !d.isInPart()
}

// takePart counts the files, and leaves of them the part that is asked for.
func (d *diffReader) takePart() {
	// What was not read in time may differ in blanks alone, and does not count.
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

	// Whether the part is whole, whatever was left out elsewhere.
	d.diff.Cut = false
	for i := range d.diff.Files {
		d.diff.Cut = d.diff.Cut || d.diff.Files[i].Cut
	}
}
