package web

import (
	"bufio"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/search"
)

// When a page of results shows the progress of its search.
const (
	progressAfter = 400 * time.Millisecond // first, after the search has begun
	progressEvery = 250 * time.Millisecond // then
)

// frameAfter is how long a page waits for its content before it sends its frame without it.
const frameAfter = 80 * time.Millisecond

// outcome is what slow work for a page ended with: a result, an error, or a panic.
type outcome[T any] struct {
	result T
	err    error
	panic  string // message and stack; "" without a panic
}

// inBackground runs work in a goroutine, and returns a channel that gets its outcome.
func inBackground[T any](work func() (T, error)) <-chan outcome[T] {
	ended := make(chan outcome[T], 1) // with room for the outcome, because nobody may receive it
	go func() {
		var o outcome[T]
		o.panic = call.Caught(func() { o.result, o.err = work() })
		ended <- o
	}()
	return ended
}

// get returns the result and the error of an outcome. If the work panicked, get panics, because the
// server handles panics in the goroutine of a request.
func (o outcome[T]) get() (T, error) {
	if o.panic != "" {
		panic(o.panic)
	}
	return o.result, o.err
}

// waitBriefly waits for the outcome of work for up to frameAfter, and reports whether it has come. If it
// has, the page can be sent whole, with the status that the outcome demands.
func waitBriefly[T any](ended <-chan outcome[T]) (o outcome[T], ok bool) {
	timer := time.NewTimer(frameAfter)
	defer timer.Stop()
	select {
	case o := <-ended:
		return o, true
	case <-timer.C:
		return o, false
	}
}

// await waits for the outcome of a search that began at began. Meanwhile it writes lines with the
// progress; a browser shows the last line. If the reader has left, it returns an error.
func await(w *bufio.Writer, ended <-chan outcome[*heap], progress *search.Progress, began time.Time, now func() time.Time) (o outcome[*heap], err error) {
	// After a failed write the reader has left, so the search ends soon: its context has ended.
	if err := w.Flush(); err != nil {
		return o, errors.Join(err, (<-ended).err)
	}

	timer := time.NewTimer(progressAfter - frameAfter)
	defer timer.Stop()
	for {
		select {
		case o := <-ended:
			return o, nil
		case <-timer.C:
		}

		if _, err := w.WriteString(`<p class="doing">` + describeProgress(progress.Now(), now().Sub(began)) + "</p>\n"); err != nil {
			return o, errors.Join(err, (<-ended).err)
		}
		if err := w.Flush(); err != nil {
			return o, errors.Join(err, (<-ended).err)
		}
		timer.Reset(progressEvery)
	}
}

// describeProgress returns the progress of a search in words.
func describeProgress(d search.Done, took time.Duration) string {
	parts := []string{fmt.Sprintf("Searching for %.1f s", took.Seconds())}
	waiting := d.ShardsAnswered > 0 && d.ShardsAnswered < d.ShardsRequired
	if waiting {
		parts = append(parts, fmt.Sprintf("%s of %s shards", layout.Grouping(int(d.ShardsAnswered)), layout.Grouping(int(d.ShardsRequired))))
	}
	if d.Files > 0 {
		files := layout.Grouping(int(d.FilesDecided))
		// Other nodes report their files at the end. Until then the total is not known.
		if !waiting || d.FilesDecided < d.Files {
			files += " of " + layout.Grouping(int(d.Files))
		}
		parts = append(parts, files+" files", layout.Size(d.Bytes)+" read", layout.Grouping(int(d.Found))+" found so far")
	}
	return strings.Join(parts, " · ")
}
