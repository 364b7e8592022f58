// Package browser has the tests of the pages in a real browser, Debian's Chromium, on a real node
// with real repositories. One of these is hostile.
//
//	make test-web           all of it
//	go test -short ...      the same in two of the looks
//
// SHOAL_TEST_CHROMIUM names the browser and SHOAL_TEST_AXE the file of axe-core; without them the
// tests are skipped. A test fails if the page writes to the console, throws an error, or violates
// its policy.
//
// A page says when it is ready: its root element has data-keys once keys work, data-booted once all
// of its scripts run, and data-ready, "<page>:<number>", after each part that a script has
// inserted.
package browser
