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

// The times of telling how far a search has come.
const (
	tellAfter = 400 * time.Millisecond
	tellEvery = 250 * time.Millisecond
)

// frameAfter is how long a reader sees nothing: then the frame of the page comes.
const frameAfter = 80 * time.Millisecond

// outcome is what a page is made of, or why there is none.
type outcome[T any] struct {
	it    T
	err   error
	panic string // what making it panicked with, and where
}

// inBackground makes what takes long in a goroutine, so that the frame of the page need
// not wait for it.
func inBackground[T any](work func() (T, error)) <-chan outcome[T] {
	ended := make(chan outcome[T], 1) // nobody may be there who takes it
	go func() {
		var o outcome[T]
		o.panic = call.Caught(func() { o.it, o.err = work() })
		ended <- o
	}()
	return ended
}

// taken is an outcome for who makes the page. It panics as the making of it did:
// whoever serves the request knows what to do then.
func (o outcome[T]) taken() (T, error) {
	if o.panic != "" {
		panic(o.panic)
	}
	return o.it, o.err
}

// inTime waits for what a page is made of until its frame is due. What is quick
// is a page as any other, with its own status.
func inTime[T any](ended <-chan outcome[T]) (o outcome[T], quick bool) {
	frame := time.NewTimer(frameAfter)
	defer frame.Stop()
	select {
	case o := <-ended:
		return o, true
	case <-frame.C:
		return o, false
	}
}

// await waits for the end of a search, and writes meanwhile how far it has come:
// lines of which a browser shows the last, until something follows it. Where the
// reader has left the search is not waited for: its context ends.
func await(w *bufio.Writer, ended <-chan outcome[*heap], progress *search.Progress, began time.Time, now func() time.Time) (o outcome[*heap], err error) {
	// Its context has ended with the reader, so that the search is about to end as well.
	if err := w.Flush(); err != nil {
		return o, errors.Join(err, (<-ended).err)
	}

	// Counted from the beginning of the search: the frame has used up a part of it.
	timer := time.NewTimer(tellAfter - frameAfter)
	defer timer.Stop()
	for {
		select {
		case o := <-ended:
			return o, nil
		case <-timer.C:
		}

		if _, err := w.WriteString(`<p class="doing">` + doing(progress.Now(), now().Sub(began)) + "</p>\n"); err != nil {
			return o, errors.Join(err, (<-ended).err)
		}
		if err := w.Flush(); err != nil {
			return o, errors.Join(err, (<-ended).err)
		}
		timer.Reset(tellEvery)
	}
}

// doing is how far a search has come, in words.
func doing(d search.Done, took time.Duration) string {
	parts := []string{fmt.Sprintf("Searching for %.1f s", took.Seconds())}
	waiting := d.ShardsAnswered > 0 && d.ShardsAnswered < d.ShardsRequired
	if waiting {
		parts = append(parts, fmt.Sprintf("%s of %s shards", layout.Grouping(int(d.ShardsAnswered)), layout.Grouping(int(d.ShardsRequired))))
	}
	if d.Files > 0 {
		files := layout.Grouping(int(d.FilesDecided))
		// Other nodes tell of theirs when they have ended: what is done here is not all.
		if !waiting || d.FilesDecided < d.Files {
			files += " of " + layout.Grouping(int(d.Files))
		}
		parts = append(parts, files+" files", layout.Size(d.Bytes)+" read", layout.Grouping(int(d.Found))+" found so far")
	}
	return strings.Join(parts, " · ")
}
