// Package configure brings configurations into the catalog, whose configuration is in force. There
// are two ways:
//
//	File        watches the file of a node and proposes its changes
//	Configurer  ApplyConfig, for an owner who sends a file to any node
//
// A Configurer also describes the configuration in force, the effect of each property, the nodes
// with another file, and the search contexts. Package cluster/config defines the syntax of
// configurations and globs.
package configure
