// Package environ looks up environment variables, with the configuration's overrides, and reads
// secrets by reference. No other package reads secrets.
//
//	{"env": "NAME"}            ── environment of the process
//	{"googleCloudSecret": ...} ── Google Secret Manager, cached for five minutes
//
// Secrets are never logged or proposed to the log.
package environ
