package paths

// longestDistance is the greatest length of names that are compared letter by letter, in bytes.
const longestDistance = 200

// Near returns the [Distance] if it is at most limit, and otherwise any greater number.
func Near(a, b string, limit int) int {
	if d := len(a) - len(b); d > limit || -d > limit || len(a) > longestDistance || len(b) > longestDistance {
		return limit + 1
	}
	return Distance(a, b)
}

// Distance returns how many letters must be changed, inserted, removed or exchanged with their
// neighbour to turn a into b. Names too long to compare differ by the length of the longer one.
func Distance(a, b string) int {
	if len(a) > longestDistance || len(b) > longestDistance {
		return max(len(a), len(b))
	}

	// Keep three rows of the table of edits: for a up to two letters ago, up to one letter ago, and
	// up to the present letter.
	var table [3][longestDistance + 1]int
	for k := range len(b) + 1 {
		table[0][k] = k
	}

	for i := 1; i <= len(a); i++ {
		before, last, row := &table[(i+1)%3], &table[(i+2)%3], &table[i%3]
		row[0] = i
		for k := 1; k <= len(b); k++ {
			change := last[k-1]
			if a[i-1] != b[k-1] {
				change++
			}
			row[k] = min(change, last[k]+1, row[k-1]+1)

			// Exchanging two neighbouring letters is one change.
			if i > 1 && k > 1 && a[i-1] == b[k-2] && a[i-2] == b[k-1] {
				row[k] = min(row[k], before[k-2]+1)
			}
		}
	}
	return table[len(a)%3][len(b)]
}
