package ask

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/model"
	"github.com/shoalsearch/shoal/node/tool"
)

// The limits of a turn. At four fifths of the steps, tokens or time, the model is told to answer
// with what it has. At the limit, the turn ends.
const (
	usualSteps  = 100
	maxInput    = 1_000_000 // tokens, including cached ones
	atOnce      = 8         // tool calls at the same time
	maxResult   = 24 << 10  // bytes of one result
	maxRound    = 96 << 10  // bytes of all results in a step
	stuckCall   = 5         // repetitions of the same call that end the calls
	emptyRounds = 4         // rounds in a row without a new result
	refusals    = 3         // rounds of calls after calls were forbidden
	maxOutput   = 16_000    // tokens of one step
	maxAnswer   = 256 << 10 // bytes of the model's text in one step
)

// loop runs one turn: it alternates between the model and its tool calls. Only one goroutine uses
// it.
type loop struct {
	t      *Turn
	ledger *ledger
	tools  *tool.Set
	check  *checker
	req    model.Request
	steps  int // limit
	fence  string

	results   map[string]bool   // keys of calls whose result is in the conversation
	keys      map[string]string // keys of calls by call id
	times     map[string]int    // number of calls by key
	empty     int               // rounds in a row without a new result
	refused   int               // rounds of calls after calls were forbidden
	perToken  float64           // measured bytes of conversation for each token
	why       string            // why calls are forbidden; "" while they are allowed
	repaired  bool
	warned    bool // the model knows that half of a budget is used
	compacted bool // the conversation was compacted after TooLong
}

// runToEnd runs the turn. Its last event is done.
func (t *Turn) runToEnd(ctx context.Context) {
	l := newLoop(t)
	err := func() (err error) {
		defer func() {
			// A panic fails this turn only; other turns continue.
			if p := recover(); p != nil {
				err = fmt.Errorf("panic: %v", p)
			}
		}()
		return l.runSteps(ctx)
	}()
	t.emitEnd(ctx, err)
}

// emitEnd sets the final status and emits the last event.
func (t *Turn) emitEnd(ctx context.Context, err error) {
	reads, searches := t.loop.ledger.filesAndSearches()
	message, status := "", Done
	var known *model.Error
	var failure *call.Error

	switch {
	case err == nil: // the status stays Done
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		status, message = Failed, fmt.Sprintf("The question was given up after %v.", turnTime)
	case errors.Is(context.Cause(ctx), errNodeStops):
		status, message = Failed, "The node that answered was stopped. Ask again."
	case ctx.Err() != nil:
		status, message = Stopped, "The question was stopped."
	case errors.As(err, &known):
		status, message = Failed, known.Error()
	case errors.As(err, &failure):
		status, message = Failed, failure.Message
	default:
		status, message = Failed, "The question failed for a reason that is in the node's log."
		t.kit.log.Error("a question failed", "model", t.Model, "err", err)
	}

	t.mu.Lock()
	t.Report.Status, t.Report.Error = status, message
	t.Report.Reads, t.Report.Searches = reads, searches
	t.Report.Took = t.kit.now().Sub(t.began)
	t.mu.Unlock()

	if message != "" {
		t.emit(Event{Kind: KindError, Text: message})
	}
	t.emit(Event{Kind: KindDone, Text: string(status)})
}

func newLoop(t *Turn) *loop {
	ledger := newLedger(t.kit.sources, t.question.Earlier)
	l := &loop{
		t:        t,
		ledger:   ledger,
		results:  map[string]bool{},
		keys:     map[string]string{},
		times:    map[string]int{},
		perToken: 3.2,
		steps:    t.kit.mostSteps(),
		fence:    newID()[:8],
	}

	// Use a set of tools that goes through the ledger. Leave out the list of models: it says
	// nothing about code, and each tool costs tokens in every step.
	l.tools = tool.New(tool.Parts{Search: ledger, Browse: ledger, Log: t.kit.log}).Without("list_language_models")
	l.check = &checker{gate: t.kit.gate, viewer: t.viewer, ledger: ledger, left: maxChecks, patience: t.kit.pace.scale(checkPatience)}
	t.loop = l

	// Put the parts that all turns share first, so that providers can cache them.
	l.req = model.Request{System: []string{static, t.prompt()}, CacheKey: t.ID, MaxOutput: min(t.limit.Output, maxOutput)}
	for _, row := range l.tools.Tools() {
		l.req.Tools = append(l.req.Tools, model.Tool{Name: row.Name, About: row.About, Schema: row.Schema()})
	}

	// Add the earlier turns: each question, and its answer with the citations.
	for _, r := range t.question.Earlier {
		question := model.Message{Role: model.User, Parts: []model.Part{{Text: r.Query}}}
		answer := model.Message{Role: model.Assistant, Parts: []model.Part{{Text: plainAnswer(r)}}}
		l.req.Messages = append(l.req.Messages, question, answer)
	}
	l.addMessage(t.Query)
	return l
}

// plainAnswer returns an earlier answer as the model would have written it.
func plainAnswer(r *Report) string {
	var b strings.Builder
	for _, p := range r.Answer {
		if p.Cite == nil {
			b.WriteString(p.Text)
		} else if p.Cite.Found() { // leave out citations of places that do not exist
			fmt.Fprintf(&b, "@file:{%s::%s}", p.Cite.Repo, p.Cite.Label())
		}
	}

	// Providers refuse an empty message.
	if b.Len() == 0 {
		return "(no answer)"
	}
	return b.String()
}

// addMessage adds a message of the user.
func (l *loop) addMessage(text string) {
	l.req.Messages = append(l.req.Messages, model.Message{Role: model.User, Parts: []model.Part{{Text: text}}})
}

// runSteps runs steps until the model has answered.
func (l *loop) runSteps(ctx context.Context) error {
	var pieces []Piece
	for step := 1; ; step++ {
		// Check access before each step: the turn ends if the key is revoked or the account
		// suspended.
		if err := l.t.kit.gate.Still(l.t.asker); err != nil {
			return err
		}

		// Check the budgets before asking the model, so that it can still answer within the rest.
		l.enforceBudget(step)
		l.compact(0.6, 0.3)
		if l.budgetExceeded(step) {
			return l.noAnswer(pieces)
		}
		l.t.emit(Event{Kind: KindStep, Step: step})

		var answer *model.Answer
		var err error
		answer, pieces, err = l.askModel(ctx, step)

		// If the model finds the conversation too long, the measure of tokens was wrong: compact
		// it, once in a row.
		var failure *model.Error
		if errors.As(err, &failure) && failure.Kind == model.TooLong && !l.compacted {
			l.compacted = true
			l.compact(0, 0.4)
			continue
		}
		if err != nil {
			l.storeAnswer(pieces)
			return err
		}

		l.compacted = false
		l.countUsage(answer)
		l.readCalls(answer)
		l.req.Messages = append(l.req.Messages, answer.Message)
		calls := answer.Message.Calls()

		switch {
		case len(calls) > 0 && l.why == "":
			l.t.emit(Event{Kind: KindAside, Step: step})
			l.runCalls(ctx, calls)
		case len(calls) > 0:
			// The model makes a call although it must not. Some models must be told more than once.
			if l.refused++; l.refused >= refusals {
				return l.noAnswer(pieces)
			}
			l.refuseCalls(calls)
		case strings.TrimSpace(answer.Message.Text()) == "":
			if l.repaired {
				return l.noAnswer(pieces)
			}
			l.repaired = true
			l.stopCalls("the model had said nothing")
			l.req.Messages = l.req.Messages[:len(l.req.Messages)-1] // providers refuse an empty message
			l.addMessage("Answer the question now, with what you have.")
		case l.lacksCitation(pieces):
			l.repaired = true
			l.t.emit(Event{Kind: KindAgain, Step: step})
			l.addMessage("Your answer has no citation that could be verified. Give the answer again: cite each statement as @file:{repository::path:first-last} with lines that a tool has shown you, or leave it out.")
		default:
			l.conclude(answer, pieces)
			return nil
		}

		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// conclude stores the answer, and notes if the model or its provider cut it short.
func (l *loop) conclude(answer *model.Answer, pieces []Piece) {
	switch answer.Finish {
	case model.Length:
		l.t.addLimit("The answer was cut at the model's limit of output.")
	case model.Blocked:
		l.t.addLimit("The model, or a filter of its provider, stopped the answer.")
	}
	l.storeAnswer(pieces)
	l.noteSupport(pieces)
}

// askModel asks the model once, and streams what it says to the watchers.
func (l *loop) askModel(ctx context.Context, step int) (*model.Answer, []Piece, error) {
	t := l.t
	spoken := &speech{t: t, step: step}
	check := func(mark, sentence string) *Citation { return l.check.checkCitation(ctx, mark, sentence) }

	c := &citer{give: spoken.addPiece, check: check}
	// The end of a step that is cut must not end the checks of its citations.
	limited, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	bytes := 0
	answer, err := t.client.Answer(limited, &l.req, func(e model.Event) {
		// Stop a model that never ends; its text so far is the answer.
		bytesLeft := max(maxAnswer-bytes, 0)
		if bytes += len(e.Text) + len(e.Reasoning); bytes > maxAnswer {
			cut(errTooLong)
			c.addText(strings.ToValidUTF8(e.Text[:min(bytesLeft, len(e.Text))], ""))
			return
		}

		// The client repeats the request: discard what came before.
		if e.Again {
			spoken.pieces = nil
			c = &citer{give: spoken.addPiece, check: check}
			t.emit(Event{Kind: KindAgain, Step: step})
		}
		if e.Note != "" {
			t.emit(Event{Kind: KindNote, Step: step, Text: e.Note})
		}
		if e.Reasoning != "" {
			t.emit(Event{Kind: KindReasoning, Step: step, Text: removeInvisible(e.Reasoning)})
		}
		c.addText(e.Text)
	})

	c.emitRest()
	if errors.Is(context.Cause(limited), errTooLong) {
		text := plainAnswer(&Report{Answer: spoken.pieces})
		spoken := model.Message{Role: model.Assistant, Parts: []model.Part{{Text: text}}}
		answer, err = &model.Answer{Message: spoken, Finish: model.Length}, nil
	}
	return answer, spoken.pieces, err
}

// errTooLong cancels a step whose text exceeds maxAnswer.
var errTooLong = errors.New("the answer is too long")

// speech collects what the model says in a step, and emits it.
type speech struct {
	t      *Turn
	step   int
	pieces []Piece
}

// addPiece adds a piece. It joins consecutive texts.
func (s *speech) addPiece(p Piece) {
	if p.Cite != nil {
		s.t.emit(Event{Kind: KindCite, Step: s.step, Cite: p.Cite})
		s.pieces = append(s.pieces, p)
		return
	}

	s.t.emit(Event{Kind: KindText, Step: s.step, Text: p.Text})
	if n := len(s.pieces); n > 0 && s.pieces[n-1].Cite == nil {
		s.pieces[n-1].Text += p.Text
		return
	}
	s.pieces = append(s.pieces, p)
}

// storeAnswer stores the pieces as the answer.
func (l *loop) storeAnswer(pieces []Piece) {
	l.t.mu.Lock()
	l.t.Answer = pieces
	l.t.mu.Unlock()
}

// noAnswer returns the error of a turn in which the model gave no answer. The error lists the files
// that the model had read.
func (l *loop) noAnswer(pieces []Piece) error {
	l.storeAnswer(pieces)
	var b strings.Builder
	b.WriteString("The model gave no answer.")
	reads, _ := l.ledger.filesAndSearches()
	if len(reads) > 0 {
		b.WriteString(" It had read:")
		for _, r := range reads[:min(len(reads), 20)] {
			fmt.Fprintf(&b, " %s %s;", r.Repo, r.Path)
		}
	}
	return call.Fail(call.ErrUnavailable, "%s", strings.TrimSuffix(b.String(), ";"))
}

// countUsage adds the usage of a step, and measures the bytes for each token.
func (l *loop) countUsage(answer *model.Answer) {
	size := l.conversationBytes()
	// In a short conversation, text that the provider adds would distort the measure.
	if answer.Usage.Input > 500 && size > 0 {
		l.perToken = max(1, float64(size)/float64(answer.Usage.Input))
	}
	l.t.mu.Lock()
	l.t.Steps++
	l.t.Usage.Add(answer.Usage)
	l.t.mu.Unlock()
}

// enforceBudget forbids calls once four fifths of a budget are used.
func (l *loop) enforceBudget(step int) {
	if l.why != "" {
		return
	}
	l.t.mu.Lock()
	used := l.t.Usage.Input
	l.t.mu.Unlock()

	switch {
	// Always allow calls in the first step.
	case step > 1 && step > l.steps*4/5:
		l.stopCalls(fmt.Sprintf("its budget of %d steps was nearly used", l.steps))
	case used > maxInput*4/5:
		l.stopCalls("its budget of tokens was nearly used")
	case clock.Since(l.t.began) > turnTime*4/5:
		l.stopCalls("its time was nearly used")
	case !l.warned && (step > l.steps/2 || used > maxInput/2 || clock.Since(l.t.began) > turnTime/2):
		l.warned = true
		l.addMessage(fmt.Sprintf("Half of what you may use is used, with step %d of %d. Look only for what the answer still lacks.", step, l.steps))
		return
	default:
		return
	}

	// Say it in the conversation too, because some models ignore the flag.
	l.addMessage("Answer now with what you have found. No more tools can be called.")
}

// budgetExceeded reports whether another step would exceed a budget.
func (l *loop) budgetExceeded(step int) bool {
	l.t.mu.Lock()
	used := l.t.Usage.Input
	l.t.mu.Unlock()

	// Always allow two steps: one to search, one to answer.
	if step <= 2 {
		return false
	}
	next := int(float64(l.conversationBytes()) / l.perToken)
	return step > l.steps || used+next > maxInput
}

// stopCalls forbids further calls.
func (l *loop) stopCalls(why string) {
	l.why, l.req.NoCalls = why, true
	l.t.addLimit("The search was ended because " + why + ".")
}

// refuseCalls answers calls that are forbidden.
func (l *loop) refuseCalls(calls []*model.Call) {
	var parts []model.Part
	for _, c := range calls {
		parts = append(parts, model.Part{Result: &model.Result{
			ID:     c.ID,
			Name:   c.Name,
			Text:   "No more tools can be called. Answer now with what you have found.",
			Failed: true,
		}})
	}
	l.req.Messages = append(l.req.Messages, model.Message{Role: model.User, Parts: parts})
}

// conversationBytes returns the bytes of the conversation.
func (l *loop) conversationBytes() int {
	n := 0
	for _, s := range l.req.System {
		n += len(s)
	}
	for _, t := range l.req.Tools {
		n += len(t.Name) + len(t.About) + len(t.Schema)
	}
	for i := range l.req.Messages {
		n += sizeOf(&l.req.Messages[i])
	}
	return n
}

// sizeOf returns the bytes of a message. A message in the provider's own format is sent in that
// format.
func sizeOf(m *model.Message) (n int) {
	if m.Native != nil {
		return len(m.Native.JSON)
	}

	// In JSON, names and brackets add about forty bytes.
	for _, p := range m.Parts {
		n += len(p.Text)
		if p.Call != nil {
			n += len(p.Call.Arguments) + 40
		}
		if p.Result != nil {
			n += len(p.Result.Text) + 40
		}
	}
	return n
}

// dropped replaces a result that was removed to make room.
const dropped = "(left out to make room; call again if it is needed) "

// compact shortens the conversation if it fills more of the model's window than the fraction above.
// It replaces the oldest results by one line each, until the conversation fills less than the
// fraction below. It does so at once, because each change invalidates the provider's cache.
func (l *loop) compact(above, below float64) {
	window := float64(l.t.limit.Window) * l.perToken
	if float64(l.conversationBytes()) <= above*window {
		return
	}

	for i := range l.req.Messages {
		// Keep the last message: the model is working on it.
		if i >= len(l.req.Messages)-1 {
			return
		}

		for _, r := range l.req.Messages[i].Results() {
			if strings.HasPrefix(r.Text, dropped) || len(r.Text) < 200 {
				continue
			}

			// The first line is the fence around the data. The second one says most.
			lines := strings.SplitN(r.Text, "\n", 3)
			head := lines[min(1, len(lines)-1)]
			r.Text = dropped + cutText(head, 160)
			// The model may repeat the call, since the result is gone.
			delete(l.results, l.keys[r.ID])
		}

		if float64(l.conversationBytes()) <= below*window {
			return
		}
	}
}

// place matches a file name in prose, with or without a line.
var place = regexp.MustCompile(`\b[\w/-]+\.[A-Za-z]\w{0,4}(?::\d+| line \d+|\b)`)

// lacksCitation reports whether an answer names code but cites no existing place. The model then gets
// one more try.
func (l *loop) lacksCitation(pieces []Piece) bool {
	// Only once: a model that cannot cite would be asked forever.
	if l.repaired {
		return false
	}

	// An answer that names no code needs no citation.
	code := false
	for _, p := range pieces {
		// A citation that could not be checked may be right, and asking again would not help.
		if p.Cite != nil && p.Cite.State != Unverified {
			return false
		}
		code = code || p.Cite != nil || len(quotedNames(p.Text)) > 0 || place.MatchString(p.Text)
	}
	return code
}

// noteSupport notes how well the citations support an answer.
func (l *loop) noteSupport(pieces []Piece) {
	states, unseen := map[CiteState]int{}, 0
	for _, p := range pieces {
		switch {
		case p.Cite == nil:
		case p.Cite.isUnseen():
			unseen++
		default:
			states[p.Cite.State]++
		}
	}

	reads, searches := l.ledger.filesAndSearches()
	switch {
	case states[Cited]+states[Moved]+states[Unchecked] > 0:
		// Something supports the answer.
	case len(l.times) == 0 && len(l.t.question.Earlier) == 0:
		l.t.addLimit("The model looked at no code: the answer has no source.")
	case len(reads)+searches > 0 && unseen == 0:
		l.t.addLimit("The answer cites no source.")
	}

	if unseen > 0 {
		l.t.addLimit(citations(unseen) + " could not be checked: no tool has shown the lines.")
	}
	if n := states[Unverified]; n > 0 {
		l.t.addLimit(citations(n) + " could not be verified.")
	}
	if n := states[Unchecked]; n > 0 {
		l.t.addLimit(citations(n) + " could not be checked: the nodes that have the code did not answer.")
	}
}

func citations(n int) string {
	if n == 1 {
		return "1 citation"
	}
	return fmt.Sprintf("%d citations", n)
}
