// Package suggest completes what somebody types: the filters of a query and
// their values, repositories, files and symbols, and the path of a file of one
// repository from a few of its letters. What is written already it explains: each
// part of a query with its place and its meaning.
//
//	repo:acme lang:g|        ->  Go, GraphQL, Groovy, ...
//	repo:^acme/app$ rev:ma|  ->  main, maintenance
//	Gree|                    ->  Greeting (function), greet/greet.go
//
// Everything is found by the operations that searches and pages use, for the
// same viewer, so nothing is suggested, and nothing counted, that he may not
// see. An answer is bounded in time and number: a part that takes longer is
// left out.
package suggest
