// Package tree provides ordered maps with cheap frozen copies: a copy shares its nodes with the
// live map until that changes. A Table is a map of records that also sums their hashes. Package
// catalog defines the records and saves them.
package tree
