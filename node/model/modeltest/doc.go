// Package modeltest is a language model for tests: an HTTP server that speaks
// the five wires of package model and plays a script. It refuses what the real
// services refuse, with their sentences, so that a wrong conversation fails a
// test and not a user.
package modeltest
