package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

type askFlags struct {
	repos  []string
	model  string
	thread string
	public bool
	quiet  bool
	asJSON *bool
}

func newAsk(getenv func(string) string) *cobra.Command {
	var f askFlags
	cmd := clientCommand(getenv, naming{}, &cobra.Command{
		Use:   "ask QUESTION",
		Short: "Ask a question about code; a language model searches, reads and answers",
		Long: `Ask a question about code. A language model of the configuration searches and reads the
repositories and answers with citations that were checked. The answer goes to standard output, to a terminal
while it is written; what the model does goes to standard error. The last line there names the thread: with it
a further question is asked that remembers the ones before.
Exit status: 0 with an answer, 1 when there is none, 2 on an error.

  shoal ask 'How is a write replicated?'
  shoal ask --thread 5b0c7a4e9d1f2a3b4c5d6e7f80912a3b 'And when does it fail?'
  shoal ask --repo acme/app --model anthropic/claude-sonnet-4-5 'Where is the configuration read?'`,
		Args: cobra.MinimumNArgs(1),
	}, f.run)

	fs := cmd.Flags()
	fs.StringSliceVarP(&f.repos, "repo", "r", nil, "only look at this repository, a full name or its ending; may be repeated")
	fs.StringVarP(&f.model, "model", "m", "", "provider/model, or model (default that of the thread, or the first of the configuration)")
	fs.StringVarP(&f.thread, "thread", "t", "", "go on with this thread of yours, which has the id of an earlier question")
	fs.BoolVar(&f.public, "public", false, "let everybody read the new thread who has its link")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "say nothing of what the model does; only the thread is named")
	f.asJSON = fs.Bool("json", false, "the thread, then each event of the answer as it comes, on a line")
	return cmd
}

// run asks the question, prints the answer, and names the thread. It returns exit code 1 if there is no
// answer.
func (f *askFlags) run(cmd *cobra.Command, c *client, args []string) error {
	body := map[string]any{"query": strings.Join(args, " ")}
	if f.repos != nil {
		body["repos"] = f.repos
	}

	// A name without a provider means the model of any provider. The node refuses it if several have
	// that model.
	if f.model != "" {
		provider, name, ok := strings.Cut(f.model, "/")
		if !ok {
			provider, name = "", f.model
		}
		body["languageModel"] = map[string]string{"provider": provider, "model": name}
	}

	// A further question goes to the route of its thread.
	path := "/api/chat"
	if f.thread != "" {
		path += "/" + url.PathEscape(f.thread) + "/messages"
	}
	if f.public {
		body["visibility"] = "PUBLIC"
	}

	// The response has only the thread and the number before its first event.
	var chat struct {
		ID    string
		After int
	}
	if err := c.call(cmd.Context(), "POST", path, body, &chat); err != nil {
		return err
	}

	// A terminal shows the text piece by piece. A file or pipe gets the final answer only, without what
	// the model wrote before it.
	p := askPrinter{out: bufio.NewWriter(cmd.OutOrStdout()), progress: cmd.ErrOrStderr(), quiet: f.quiet, live: isTerminal(os.Stdout)}
	if *f.asJSON {
		if err := printJSON(cmd.OutOrStdout(), map[string]string{"thread": chat.ID}); err != nil {
			return err
		}
		p.out, p.progress, p.events = bufio.NewWriter(io.Discard), io.Discard, cmd.OutOrStdout()
	}
	err := c.followEvents(cmd.Context(), chat.ID, chat.After, p.handleEvent)
	p.out.Flush()
	if err != nil {
		return err
	}

	// Name the thread last, also after a failure and with --quiet, so that the user can ask again there.
	fmt.Fprintln(p.progress, "thread: "+chat.ID)
	if p.status != "done" {
		return exitCode(1)
	}
	return nil
}

// askEvent is an event of a question.
type askEvent struct {
	N          int
	Kind, Text string
	Step       int
	Failed     bool
	Cite       *struct{ Path, URL, State string }

	raw string // as the API sent it
}

// followEvents calls fn with each event of a thread whose number is greater than after, until the answer
// ends. If a connection ends earlier, it connects again and continues after the last event. It fails if
// a connection brings no event.
func (c *client) followEvents(ctx context.Context, id string, after int, fn func(*askEvent)) error {
	ended := false
	for !ended {
		before := after
		resp, err := c.send(ctx, http.MethodGet, fmt.Sprintf("/api/chat/%s/events?after=%d", url.PathEscape(id), after), nil)
		if err != nil {
			return err
		}

		events := eventsOf(resp.Body)
		for data, ok := events.next(); ok; data, ok = events.next() {
			var e askEvent
			if err := json.Unmarshal([]byte(data), &e); err != nil {
				resp.Body.Close()
				return fmt.Errorf("event: %w", err)
			}

			e.raw = data
			after = e.N
			ended = ended || e.Kind == "done"
			fn(&e)
		}

		resp.Body.Close()

		// A response may end early, because this client and proxies limit its time.
		if !ended && after == before {
			return fmt.Errorf("the connection to %s broke off", c.base)
		}
	}
	return nil
}

// askPrinter prints an answer as it arrives.
type askPrinter struct {
	out      *bufio.Writer
	progress io.Writer
	quiet    bool
	live     bool            // print text at once, although the model may still discard it
	events   io.Writer       // gets each event as the API sent it; nil for none
	text     strings.Builder // text of the current step
	status   string          // how the answer ended
	cited    []string        // URLs of the citations in text
}

// handleEvent prints an event of a question.
func (p *askPrinter) handleEvent(e *askEvent) {
	if p.events != nil {
		fmt.Fprintln(p.events, e.raw)
	}
	switch e.Kind {
	case "text":
		p.writeText(e.Text)
	case "cite":
		p.printCitation(e)

	// The text so far was no answer, because the model calls tools or starts over: discard it. On a
	// terminal it stays visible.
	case "aside", "again":
		if p.live && p.text.Len() > 0 {
			p.out.WriteString("\n\n")
		}
		p.text.Reset()
		p.cited = nil

	case "call":
		p.printLine("· " + e.Text)
	case "result":
		if e.Failed {
			p.printLine("  failed: " + e.Text)
		}
	case "note":
		p.printLine("note: " + e.Text)

	case "error":
		fmt.Fprintln(p.progress, "shoal:", e.Text)
	case "done":
		p.printEnd(e.Text)
	}
	p.out.Flush()
}

// printCitation prints a citation as a number; printEnd prints the link of each number. A citation
// without a link it prints as a path and a state.
func (p *askPrinter) printCitation(e *askEvent) {
	if e.Cite == nil {
		return
	}

	if e.Cite.URL == "" {
		p.writeText("[" + e.Cite.Path + ", " + cmp.Or(e.Cite.State, "unverified") + "]")
		return
	}
	p.cited = append(p.cited, e.Cite.URL)
	p.writeText(fmt.Sprintf("[%d]", len(p.cited)))
}

func (p *askPrinter) writeText(text string) {
	p.text.WriteString(text)
	if p.live {
		p.out.WriteString(text)
	}
}

func (p *askPrinter) printLine(line string) {
	if !p.quiet {
		fmt.Fprintln(p.progress, line)
	}
}

// printEnd prints the part of the answer that is not printed yet, and the links of its citations.
func (p *askPrinter) printEnd(status string) {
	p.status = status

	// A terminal shows the text already. Elsewhere the text of the last step is the answer.
	if !p.live {
		p.out.WriteString(p.text.String())
	}
	if p.text.Len() > 0 {
		p.out.WriteString("\n")
	}
	for i, u := range p.cited {
		fmt.Fprintf(p.out, "[%d] %s\n", i+1, u)
	}
}
