// Package browser holds the tests of the pages in a real browser, Debian's
// Chromium, on a real node with real repositories, of which one is hostile.
//
//	make test-web           all of it
//	go test -short ...      the same in two of the looks
//
// SHOAL_TEST_CHROMIUM names the browser and SHOAL_TEST_AXE the file of axe-core;
// without them the tests are left out, with a line that says so. Whatever a page
// writes into the console, throws, or has reported by its policy fails the test
// that opened it.
//
// A page tells when it is drawn: the root has data-keys once keys are heard,
// data-booted once all of its scripts run, and data-ready, "<page>:<number>",
// after each part that a script put in.
package browser
