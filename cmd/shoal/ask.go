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
	return cmd
}

func (f *askFlags) run(cmd *cobra.Command, c *client, args []string) error {
	body := map[string]any{"query": strings.Join(args, " ")}
	if f.repos != nil {
		body["repos"] = f.repos
	}

	// A model without a provider is one of any: the node says so where that is ambiguous.
	if f.model != "" {
		provider, name, ok := strings.Cut(f.model, "/")
		if !ok {
			provider, name = "", f.model
		}
		body["languageModel"] = map[string]string{"provider": provider, "model": name}
	}

	// A question of a thread that is there has an address of its own.
	path := "/api/chat"
	if f.thread != "" {
		path += "/" + url.PathEscape(f.thread) + "/messages"
	}
	if f.public {
		body["visibility"] = "PUBLIC"
	}

	// The answer to the question is its thread; what the model says comes by the events.
	var chat struct {
		ID    string
		After int
	}
	if err := c.call(cmd.Context(), "POST", path, body, &chat); err != nil {
		return err
	}

	// Pieces are written as they come to a terminal only: a file gets the answer alone,
	// without what the model wrote before it.
	p := askPrinter{out: bufio.NewWriter(cmd.OutOrStdout()), doing: cmd.ErrOrStderr(), quiet: f.quiet, live: isTerminal(os.Stdout)}
	err := c.watch(cmd.Context(), chat.ID, chat.After, p.event)
	p.out.Flush()
	if err != nil {
		return err
	}

	// The last line names the thread, also of an answer that failed: it can be asked again there.
	// It is nothing that the model does, and comes with --quiet too.
	fmt.Fprintln(p.doing, "thread: "+chat.ID)
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
}

// watch gives the events of a question, which come after a number, to fn. Where
// the connection breaks it goes on behind the last one, as long as anything
// comes.
func (c *client) watch(ctx context.Context, id string, after int, fn func(*askEvent)) error {
	ended := false
	for !ended {
		before := after
		resp, err := c.send(ctx, http.MethodGet, fmt.Sprintf("/api/chat/%s/events?after=%d", url.PathEscape(id), after), nil)
		if err != nil {
			return err
		}

		// One event may hold a whole answer: the line is as long as that.
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			data, ok := strings.CutPrefix(lines.Text(), "data: ")
			if !ok {
				continue
			}

			var e askEvent
			if err := json.Unmarshal([]byte(data), &e); err != nil {
				// The client bounds every answer by its patience, and a proxy may by its own: an end
				// without the event done is no failure, as long as each connection brings something.
				resp.Body.Close()
				return fmt.Errorf("event: %w", err)
			}

			// The number of the last event is where the next connection goes on.
			after = e.N
			ended = ended || e.Kind == "done"
			fn(&e)
		}

		resp.Body.Close()

		if !ended && after == before {
			return fmt.Errorf("the connection to %s broke off", c.base)
		}
	}
	return nil
}

// askPrinter writes an answer as it comes.
type askPrinter struct {
	out    *bufio.Writer
	doing  io.Writer
	quiet  bool
	live   bool            // pieces are shown as they come, also of what turns out to be no answer
	text   strings.Builder // of this step
	status string
	cited  []string
}

func (p *askPrinter) event(e *askEvent) {
	switch e.Kind {
	case "text":
		p.write(e.Text)
	case "cite":
		p.cite(e)

	// What was written turned out to be no answer: thoughts before a call, or a try
	// that is made again. On a terminal it stays above.
	case "aside", "again":
		if p.live && p.text.Len() > 0 {
			p.out.WriteString("\n\n")
		}
		p.text.Reset()
		p.cited = nil

	// What it does meanwhile is shown beside the answer.
	case "call":
		p.say("· " + e.Text)
	case "result":
		if e.Failed {
			p.say("  failed: " + e.Text)
		}
	case "note":
		p.say("note: " + e.Text)

	case "error":
		fmt.Fprintln(p.doing, "shoal:", e.Text)
	case "done":
		p.end(e.Text)
	}
	p.out.Flush()
}

// cite writes the name of a place; what it links to stands at the end.
func (p *askPrinter) cite(e *askEvent) {
	if e.Cite == nil {
		return
	}

	// The node did not find such lines: a name without a link, so that nobody trusts it.
	if e.Cite.URL == "" {
		p.write("[" + e.Cite.Path + ", " + cmp.Or(e.Cite.State, "unverified") + "]")
		return
	}
	p.cited = append(p.cited, e.Cite.URL)
	p.write(fmt.Sprintf("[%d]", len(p.cited)))
}

func (p *askPrinter) write(text string) {
	p.text.WriteString(text)
	if p.live {
		p.out.WriteString(text)
	}
}

func (p *askPrinter) say(line string) {
	if !p.quiet {
		fmt.Fprintln(p.doing, line)
	}
}

func (p *askPrinter) end(status string) {
	p.status = status

	// Elsewhere than on a terminal only the last text is the answer.
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
