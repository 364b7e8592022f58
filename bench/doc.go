// Package bench measures Shoal against its peers, side by side in one run.
//
// Every figure comes from a whole process: the node that `shoal serve` runs,
// asked over its HTTP API, and the peers as their users start them. Times of
// different machines are not compared, ratios of one run are.
//
//	corpus   made of Debian's linux-source package: L one repository,
//	         M one repository for each directory with files,
//	         R a repository with history and 64 tags
//	part     one question, answered by rows and columns
//	report   the parts of one run, as a text
//
// Nothing of the product imports this package: cmd/shoal-bench runs it.
package bench
