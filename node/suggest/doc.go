// Package suggest completes queries and paths, finds what a pasted text names, and explains
// a query part by part.
//
//	repo:acme lang:g|        ->  Go, GraphQL, Groovy, ...
//	repo:^acme/app$ rev:ma|  ->  main, maintenance
//	Gree|                    ->  Greeting (function), greet/greet.go
//
// It uses the operations of searches and pages for the same viewer, so it never suggests or
// counts what the viewer may not see. Time and number of results are limited; slow parts are
// left out.
package suggest
