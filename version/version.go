// Package version has the number of this release, in one place: the command
// prints it, packages are named by it, and the catalog names its level by it.
package version

// Number is the release that this source becomes or is.
const Number = "0.1.0"
