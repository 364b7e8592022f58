// Package environ is the environment of the process with the overrides of the
// configuration over it, and the one place where references to tokens become
// secrets.
//
//	{"env": "NAME"}            ── environment of the process
//	{"googleCloudSecret": ...} ── Google Secret Manager, kept for five minutes
//
// Nothing of a secret is ever logged or proposed.
package environ
