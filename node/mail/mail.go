// Package mail sends people the links by which they come in, where the environment of a node
// names a mail server. Only the environment counts, no configuration: whoever could name
// another server would be sent the password of this one.
package mail

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"
)

// serverTimeout is how long a mail server may take for one letter: an owner waits for it.
const serverTimeout = 15 * time.Second

// Sender sends letters by one mail server. It is safe for concurrent use.
type Sender struct {
	host, user   string
	port         int
	implicit     bool // TLS from the first byte; otherwise by STARTTLS
	password     string
	passwordFile string // read for each letter; "" for password
	from         string
	tls          *tls.Config // nil means the authorities of the machine
}

// Read makes a Sender of the variables of a node; nil where they name no server. Its errors
// never have a value: a URL may hold a password.
func Read(lookup func(name string) (string, bool)) (*Sender, error) {
	s := new(Sender)
	if text, _ := lookup("SMTP_CONNECTION_URL"); text != "" {
		if !s.readURL(text) {
			return nil, errors.New("SMTP_CONNECTION_URL: want smtp://HOST:587, or smtps://HOST:465 for TLS from the first byte; a user may stand before the host")
		}
	}
	if host, _ := lookup("SMTP_HOST"); s.host == "" {
		s.host = host
	}
	if s.host == "" {
		return nil, nil
	}
	if port, _ := lookup("SMTP_PORT"); s.port == 0 {
		var err error
		if s.port, err = strconv.Atoi(cmp.Or(port, "587")); err != nil || s.port < 1 || s.port > 65535 {
			return nil, errors.New("SMTP_PORT: want a number from 1 to 65535")
		}
		s.implicit = s.implicit || s.port == 465
	}

	// A value in the URL wins.
	user, _ := lookup("SMTP_USERNAME")
	password, _ := lookup("SMTP_PASSWORD")
	s.user, s.password = cmp.Or(s.user, user), cmp.Or(s.password, password)
	s.passwordFile, _ = lookup("SMTP_PASSWORD_FILE")

	s.from, _ = lookup("EMAIL_FROM_ADDRESS")
	if err := gomail.NewMsg().From(s.from); err != nil {
		return nil, errors.New("EMAIL_FROM_ADDRESS: a mail server is named, so it must be the address that letters come from")
	}
	return s, nil
}

// readURL takes host, port, user and password from an smtp or smtps URL. It reports whether the URL
// is valid.
func (s *Sender) readURL(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Scheme != "smtp" && u.Scheme != "smtps" {
		return false
	}
	s.host, s.implicit = u.Hostname(), u.Scheme == "smtps"
	s.user = u.User.Username()
	s.password, _ = u.User.Password()
	usual := "587"
	if s.implicit {
		usual = "465"
	}
	s.port, err = strconv.Atoi(cmp.Or(u.Port(), usual))
	return err == nil
}

// Letter is what somebody is sent.
type Letter struct {
	To, Subject, Text string
}

// Send hands a letter to the server. A password travels by TLS alone.
func (s *Sender) Send(ctx context.Context, l Letter) error {
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	msg := gomail.NewMsg()
	if err := errors.Join(msg.From(s.from), msg.To(l.To)); err != nil {
		return fmt.Errorf("the letter has no address: %w", err)
	}
	msg.Subject(l.Subject)
	msg.SetBodyString(gomail.TypeTextPlain, l.Text)

	client, err := s.client()
	if err != nil {
		return err
	}
	if err := client.DialAndSendWithContext(ctx, msg); err != nil {
		return fmt.Errorf("mail server %s: %w", net.JoinHostPort(s.host, strconv.Itoa(s.port)), err)
	}
	return nil
}

func (s *Sender) client() (*gomail.Client, error) {
	options := []gomail.Option{gomail.WithPort(s.port), gomail.WithTimeout(serverTimeout), gomail.WithTLSPolicy(gomail.TLSOpportunistic)}
	if s.user != "" {
		password := s.password
		if s.passwordFile != "" {
			text, err := os.ReadFile(s.passwordFile)
			if err != nil {
				return nil, fmt.Errorf("SMTP_PASSWORD_FILE: %w", err)
			}
			password = strings.TrimSpace(string(text))
		}
		options = append(options, gomail.WithTLSPolicy(gomail.TLSMandatory), gomail.WithSMTPAuth(gomail.SMTPAuthAutoDiscover),
			gomail.WithUsername(s.user), gomail.WithPassword(password))
	}
	if s.implicit {
		options = append(options, gomail.WithSSL())
	}
	if s.tls != nil {
		options = append(options, gomail.WithTLSConfig(s.tls))
	}
	return gomail.NewClient(s.host, options...)
}
