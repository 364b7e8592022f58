// Package bench measures Shoal and similar engines side by side in one run.
//
// It measures whole processes: `shoal serve` over its HTTP API, and the other engines as users
// start them. Compare ratios of one run, not times of different machines.
//
//	corpus   made of Debian's linux-source package: L one repository,
//	         M one repository for each directory with files,
//	         R a repository with history and 64 tags
//	part     one question, answered by rows and columns
//	report   the parts of one run, as a text
//
// cmd/shoal-bench runs this package; the product does not import it.
package bench
