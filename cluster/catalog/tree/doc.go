// Package tree keeps ordered maps that are frozen at no cost: a frozen one shares its nodes
// with the live one until that changes. A table is one of records, and adds up their hashes
// as they come and go. What the records are, and how they are saved, is package catalog's.
package tree
