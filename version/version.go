// Package version has the number of this release, in one place: the command
// prints it, packages are named by it, and the catalog names its level by it.
package version

import "fmt"

// Number is the release that this source becomes or is.
const Number = "0.1.0"

// Neighbours reports whether nodes of two versions may be in one cluster: of one release or of two
// adjacent ones, such as 0.2.1 and 0.3.0, or 0.9.4 and 1.0.0. A version that is not the number of a
// release may be with all.
func Neighbours(a, b string) bool {
	major, minor, ok := numbers(a, b)
	if !ok {
		return true
	}
	if major[0] > major[1] {
		major[0], major[1], minor[0], minor[1] = major[1], major[0], minor[1], minor[0]
	}
	return major[0] == major[1] && max(minor[0], minor[1])-min(minor[0], minor[1]) <= 1 ||
		major[0]+1 == major[1] && minor[1] == 0
}

// Later reports whether release a is later than b. It is false if one of them is not the number of
// a release.
func Later(a, b string) bool {
	major, minor, ok := numbers(a, b)
	return ok && (major[0] > major[1] || major[0] == major[1] && minor[0] > minor[1])
}

// numbers returns the major and minor numbers of two releases.
func numbers(a, b string) (major, minor [2]int, ok bool) {
	for i, v := range []string{a, b} {
		if n, _ := fmt.Sscanf(v, "%d.%d.", &major[i], &minor[i]); n < 2 {
			return major, minor, false
		}
	}
	return major, minor, true
}
