package watch

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/origin"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/mail"
)

// ReceiversVariable says which receivers webhooks may have: public ones, or any.
const ReceiversVariable = "SHOAL_WATCH_RECEIVERS"

const (
	sendTime     = 10 * time.Second // of one request to a receiver
	sendAgain    = 10 * time.Second // after a failure; each further one doubles it
	sendAgainMax = time.Hour
	giveUpAfter  = 24 * time.Hour // a notice so old is given up while its receiver fails
	sendsAtOnce  = 8              // watches
	sendsInARow  = 10             // notices of one watch
)

// receiver is how far the sending of one watch is. Only Send uses it.
type receiver struct {
	next  time.Time // no attempt before then
	fails int
	hook  string // id of the notice that the webhook took, while the mail still fails
}

// Send sends notices to webhooks and by mail, on the leader, until ctx ends.
func (w *Watches) Send(ctx context.Context) error {
	for clock.Wait(ctx, lookEvery) {
		if w.d.Cluster.Leading() {
			w.sendRound(ctx)
		} else {
			clear(w.receivers)
			w.quiet = nil
		}
	}
	return nil
}

// sendRound sends what is due, and stores how far it came. A node that dies between the two sends
// the same notices again, with the same ids.
func (w *Watches) sendRound(ctx context.Context) {
	view := w.d.Cluster.View()
	if w.quiet != nil && view.SameNotices(w.quiet) {
		return
	}
	w.quiet = nil
	var due []*catalog.Watch
	waits := false
	for x := range view.Watches() {
		if !x.Sends() || nextNotice(view, x, x.Delivered) == nil {
			continue
		}
		if r := w.receivers[x.ID]; r != nil && w.d.Now().Before(r.next) {
			waits = true
			continue
		}
		due = append(due, x)
	}
	if len(due) == 0 {
		if !waits {
			w.quiet = view
		}
		return
	}

	out := make([]catalog.Delivery, len(due))
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(sendsAtOnce)
	for i, x := range due {
		r := w.receivers[x.ID]
		if r == nil {
			r = &receiver{}
			w.receivers[x.ID] = r
		}
		group.Go(func() error {
			out[i] = w.sendWatch(gctx, view, x, r)
			return nil
		})
	}
	_ = group.Wait() // no task returns an error
	if ctx.Err() != nil {
		return
	}
	if _, err := w.d.Cluster.Propose(ctx, &catalog.NoteDeliveries{Deliveries: out}); err != nil {
		w.d.Log.Warn("it was not stored what watches have sent: it is sent again", "err", err)
	}
}

// nextNotice returns the oldest notice of a watch after a number; nil if there is none.
func nextNotice(view *catalog.View, x *catalog.Watch, after uint64) *catalog.Notice {
	for _, n := range view.NoticesOf(x.ID) {
		if n.Number > after {
			return n
		}
	}
	return nil
}

// sendWatch sends the next notices of a watch, in order, until one fails.
func (w *Watches) sendWatch(ctx context.Context, view *catalog.View, x *catalog.Watch, r *receiver) catalog.Delivery {
	d := catalog.Delivery{Watch: x.ID}
	at := x.Delivered
	for range sendsInARow {
		n := nextNotice(view, x, at)
		if n == nil {
			break
		}
		err := w.sendNotice(ctx, x, n, r)
		if err != nil && w.d.Now().Sub(n.At) < giveUpAfter {
			r.next = w.d.Now().Add(min(sendAgain<<min(r.fails, 12), sendAgainMax))
			r.fails++
			w.count(func(c *Counts) { c.SendFailed++ })
			d.Number, d.Problem, d.Failing = at, cut(err.Error(), textAtMost), x.Failing
			if d.Failing.IsZero() {
				d.Failing = w.d.Now()
			}
			return d
		}
		if err != nil {
			d.Missed++
		}
		at = n.Number
	}
	if d.Number = at; d.Missed == 0 {
		r.fails, r.next = 0, time.Time{}
		return d
	}
	d.Failing, d.Problem = x.Failing, x.Problem
	return d
}

// sendNotice sends a notice to each receiver of a watch. A notice of a repository that the owner may
// not see at this moment is passed over, as if it had never been.
func (w *Watches) sendNotice(ctx context.Context, x *catalog.Watch, n *catalog.Notice, r *receiver) error {
	if err := w.d.Current(); err != nil {
		return err
	}
	v, ok := w.d.Gate.WorksFor(x.Account)
	if !ok {
		return nil
	}
	visible, err := w.d.Gate.Repos(v)
	if err != nil {
		return err
	}
	repo, err := visible.ByID(n.Repo)
	if err != nil {
		return nil
	}

	found := w.foundIn(repo, n)
	if x.URL != "" && r.hook != n.ID {
		if err := w.sendHook(ctx, x, &found); err != nil {
			return err
		}
		w.count(func(c *Counts) { c.Sent++ })
		r.hook = n.ID
	}
	if a := visible.View.Account(x.Account); x.Mail && w.d.Mail != nil && a != nil && !a.Unproven {
		if err := w.d.Mail(ctx, w.letter(a.Email, x, &found)); err != nil {
			return fmt.Errorf("mail: %w", err)
		}
		w.count(func(c *Counts) { c.Sent++ })
	}
	return nil
}

// delivery is the body of a request to a webhook.
type delivery struct {
	Found
	Watch struct {
		ID    string `json:"id"`
		Name  string `json:"name"`
		Query string `json:"query"`
		URL   string `json:"webUrl"`
	} `json:"watch"`
}

// sendHook posts a notice to the webhook of a watch, signed.
func (w *Watches) sendHook(ctx context.Context, x *catalog.Watch, f *Found) error {
	secret, err := w.box.Open(ctx, x.Secret, x.ID)
	if err != nil {
		return err
	}
	out := delivery{Found: *f}
	out.Watch.ID, out.Watch.Name, out.Watch.Query, out.Watch.URL = x.ID, x.Name, x.Query, w.pageOf(x)
	body, err := json.Marshal(&out)
	if err != nil {
		return err
	}

	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, x.URL, bytes.NewReader(body))
	if err != nil {
		return errors.New("the address of the webhook cannot be called")
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write(body)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "shoal")
	req.Header.Set("X-Shoal-Delivery", f.ID)
	req.Header.Set("X-Shoal-Signature", hex.EncodeToString(mac.Sum(nil)))
	resp, err := w.client.Do(req)
	if err != nil {
		return hookError(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return fmt.Errorf("the webhook answers %d", resp.StatusCode)
	}
	return nil
}

var errPrivate = errors.New("the webhook has an address that is not public: " + ReceiversVariable + "=any allows it")

// hookError hides details of the network, which could tell of other hosts.
func hookError(err error) error {
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, errPrivate):
		return errPrivate
	case errors.As(err, &timeout) && timeout.Timeout():
		return errors.New("the webhook does not answer in time")
	}
	return errors.New("the webhook cannot be reached")
}

// newClient returns the client for webhooks. It follows no redirect, and calls the address that it
// has checked.
func (w *Watches) newClient() *http.Client {
	dialer := &net.Dialer{Timeout: sendTime, Control: func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil || !w.anyReceiver() && !origin.Public(at.Addr()) {
			return errPrivate
		}
		return nil
	}}
	return &http.Client{
		Timeout: sendTime,
		Transport: &http.Transport{
			Proxy: nil, DialContext: dialer.DialContext, TLSHandshakeTimeout: sendTime, ResponseHeaderTimeout: sendTime,
			DisableKeepAlives: true, MaxResponseHeaderBytes: 16 << 10, ForceAttemptHTTP2: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// anyReceiver reports whether receivers may be anywhere.
func (w *Watches) anyReceiver() bool {
	text, _ := w.d.Lookup(ReceiversVariable)
	return strings.EqualFold(strings.TrimSpace(text), "any")
}

// pageOf is the page of a watch.
func (w *Watches) pageOf(x *catalog.Watch) string {
	return w.d.BaseURL() + "/watches/" + url.PathEscape(x.ID)
}

// letter writes what was found as a mail.
func (w *Watches) letter(to string, x *catalog.Watch, f *Found) mail.Letter {
	var text strings.Builder
	fmt.Fprintf(&text, "Your watch %q found %d in %s:\n\n", x.Name, f.Total, f.Repo)
	for _, h := range f.Hits {
		if h.Path != "" {
			fmt.Fprintf(&text, "%s\n", h.Path)
		}
		fmt.Fprintf(&text, "%s\n%s\n\n", h.Title, h.URL)
	}
	if more := f.Total - len(f.Hits); more > 0 {
		fmt.Fprintf(&text, "and %d more\n\n", more)
	}
	fmt.Fprintf(&text, "%s\n\nChange or delete the watch there.\n", w.pageOf(x))
	return mail.Letter{To: to, Subject: oneLine(x.Name) + ": " + oneLine(f.Repo), Text: text.String()}
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// Webhook is the answer that shows the secret of a webhook, this once.
type Webhook struct {
	URL    string `json:"url"`
	Secret string `json:"secret"`
}

// SetWebhook sends what a watch finds from now on to an address. It makes a new secret.
func (w *Watches) SetWebhook(ctx context.Context, v catalog.Viewer, id, address string) (*Webhook, error) {
	x, err := w.own(v, id)
	if err != nil {
		return nil, err
	}
	address = strings.TrimSpace(address)
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || len(address) > 1000 || u.Scheme != "https" && (u.Scheme != "http" || !w.anyReceiver()) {
		return nil, call.Fail(call.ErrInvalid, "url: want the address of a webhook, such as https://hooks.example.com/shoal; http:// needs %s=any", ReceiversVariable)
	}
	if at, err := netip.ParseAddr(u.Hostname()); err == nil && !origin.Public(at) && !w.anyReceiver() {
		return nil, call.Fail(call.ErrInvalid, "url: %v", errPrivate)
	}
	var random [32]byte
	rand.Read(random[:])
	secret := hex.EncodeToString(random[:])
	changed := *x
	changed.URL = address
	if changed.Secret, err = w.box.Seal(ctx, []byte(secret), x.ID); err != nil {
		return nil, call.WriteError(err)
	}
	if _, err := w.propose(ctx, v, changed, false); err != nil {
		return nil, err
	}
	return &Webhook{address, secret}, nil
}

// EndWebhook ends the webhook of a watch.
func (w *Watches) EndWebhook(ctx context.Context, v catalog.Viewer, id string) (*Info, error) {
	x, err := w.own(v, id)
	if err != nil {
		return nil, err
	}
	changed := *x
	changed.URL, changed.Secret = "", nil
	return w.propose(ctx, v, changed, false)
}
