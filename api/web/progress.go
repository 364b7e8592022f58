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

// Times of the progress of a search.
const (
	tellAfter = 400 * time.Millisecond
	tellEvery = 250 * time.Millisecond
)

// frameAfter is how long the page waits for an answer before it sends its frame.
const frameAfter = 80 * time.Millisecond

// outcome is the content of a page, or why there is none.
type outcome[T any] struct {
	it    T
	err   error
	panic string // message and stack of a panic
}

// inBackground runs slow work in a goroutine, so that the frame of the page need not wait for it.
func inBackground[T any](work func() (T, error)) <-chan outcome[T] {
	ended := make(chan outcome[T], 1) // buffered, because nobody may receive
	go func() {
		var o outcome[T]
		o.panic = call.Caught(func() { o.it, o.err = work() })
		ended <- o
	}()
	return ended
}

// taken returns the content of an outcome. It repeats a panic, because the server handles panics
// of requests.
func (o outcome[T]) taken() (T, error) {
	if o.panic != "" {
		panic(o.panic)
	}
	return o.it, o.err
}

// inTime waits for the content of a page until its frame is due. A quick page is sent as a whole,
// with its own status.
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

// await waits for the end of a search and writes its progress meanwhile, as lines of which a
// browser shows the last. If the reader disconnects, it does not wait, because the search's
// context ends.
func await(w *bufio.Writer, ended <-chan outcome[*heap], progress *search.Progress, began time.Time, now func() time.Time) (o outcome[*heap], err error) {
	// The search ends soon, because its context has ended.
	if err := w.Flush(); err != nil {
		return o, errors.Join(err, (<-ended).err)
	}

	// The frame has used part of the time since the search began.
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

// doing returns the progress of a search in words.
func doing(d search.Done, took time.Duration) string {
	parts := []string{fmt.Sprintf("Searching for %.1f s", took.Seconds())}
	waiting := d.ShardsAnswered > 0 && d.ShardsAnswered < d.ShardsRequired
	if waiting {
		parts = append(parts, fmt.Sprintf("%s of %s shards", layout.Grouping(int(d.ShardsAnswered)), layout.Grouping(int(d.ShardsRequired))))
	}
	if d.Files > 0 {
		files := layout.Grouping(int(d.FilesDecided))
		// Other nodes report theirs at the end, so what is done here is not all.
		if !waiting || d.FilesDecided < d.Files {
			files += " of " + layout.Grouping(int(d.Files))
		}
		parts = append(parts, files+" files", layout.Size(d.Bytes)+" read", layout.Grouping(int(d.Found))+" found so far")
	}
	return strings.Join(parts, " · ")
}
