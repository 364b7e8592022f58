package node_test

import (
	"io"
	"net"
	"regexp"
	"strings"
	"testing"

	"github.com/emersion/go-smtp"

	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/nodetest"
)

// letterbox is a mail server that takes every letter.
type letterbox chan string

func (b letterbox) NewSession(*smtp.Conn) (smtp.Session, error) { return b, nil }
func (letterbox) Mail(string, *smtp.MailOptions) error          { return nil }
func (letterbox) Rcpt(string, *smtp.RcptOptions) error          { return nil }
func (letterbox) Reset()                                        {}
func (letterbox) Logout() error                                 { return nil }
func (b letterbox) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	b <- string(text)
	return err
}

// Somebody who is invited comes in by the letter, and by the link alone where no letter can be sent.
func TestInvitation_letsAPersonInByMailOrByLink(t *testing.T) {
	t.Parallel()
	box := make(letterbox, 1)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := smtp.NewServer(box)
	go func() { _ = server.Serve(ln) }()
	t.Cleanup(func() { _ = server.Close() })

	for address, want := range map[string]string{ln.Addr().String(): "sent to ann@example.com", "127.0.0.1:1": "not sent to ann@example.com, hand it on yourself: mail server 127.0.0.1:1: "} {
		n := nodetest.Start(t, nodetest.Config{Env: map[string]string{"SMTP_CONNECTION_URL": "smtp://" + address, "EMAIL_FROM_ADDRESS": "shoal@example.com"}})
		if _, err := n.People.CreateUser(t.Context(), account.Operator(), account.CreateUserRequest{Email: "ann@example.com"}); err != nil {
			t.Fatal(err)
		}
		made, err := n.Passwords.NewLink(t.Context(), account.Operator(), account.NewLinkRequest{User: "ann@example.com", Join: true})
		if err != nil || !strings.HasPrefix(made.Mail, want) || strings.Contains(made.Mail, made.Token) {
			t.Fatalf("%s: %+v, %v", address, made, err)
		}
		token, result := made.Token, "failed"
		if address == ln.Addr().String() {
			// Lines that are too long for a letter are broken by "=".
			letter := strings.ReplaceAll(<-box, "=\r\n", "")
			found := regexp.MustCompile(`http://shoal\.test/join\?link=3D([0-9a-f]{64})`).FindStringSubmatch(letter)
			if found == nil {
				t.Fatalf("no link in\n%s", letter)
			}
			token, result = found[1], "sent"
		}
		if _, err := n.Passwords.BeginWithLink(t.Context(), token, "correct horse battery", account.SignIn{}); err != nil {
			t.Errorf("%s: %v", address, err)
		}
		all, err := n.Metrics.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range all {
			for _, m := range family.GetMetric() {
				if family.GetName() == "shoal_letters_total" && (m.GetCounter().GetValue() == 1) != (m.GetLabel()[0].GetValue() == result) {
					t.Errorf("%s: %v", address, m)
				}
			}
		}
	}
}
