// Package configure brings configurations into the catalog. There are two ways,
// and what the catalog has counts:
//
//	File        the file of a node, watched; proposed when somebody has changed it
//	Configurer  ApplyConfig, for an owner who sends a file to any node
//
// A Configurer tells also what is in force, what each property of it does, which
// nodes have another file, and which search contexts there are. What a
// configuration may say, and its language of globs, is for package
// cluster/config.
package configure
